//! A chat: the program keeps its model and its history, and gets tools beside them.
//!
//! `cargo run --example streaming_chat_app -- path/to/mcp-server [arguments]`
//!
//! One line on stdin is one thing the user says; try `add 2 3`. The model is a small script, so that
//! the example needs none: `Model` is where yours goes.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{ChatIntegrationConfig, McpChatIntegration, McpClient, ProcessedToken};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// One message of the conversation, which is the program's own.
struct Message {
    role: &'static str,
    text: String,
}

/// What the program knows of its model: where it is, how warm it is, what it is allowed to cost.
struct Model {
    temperature: f64,
}

impl Model {
    /// Answers the conversation, word by word.
    fn answer(&self, history: &[Message]) -> stream::Iter<std::vec::IntoIter<String>> {
        let asked = history.last().map_or("", |message| message.text.as_str());
        let words: Vec<&str> = asked.split_whitespace().collect();
        let text = match words[..] {
            ["add", a, b] => {
                let number = |text: &str| text.parse::<f64>().unwrap_or_default();
                let call = json!({"tool": "add", "params": {"a": number(a), "b": number(b)}});
                format!("Let me add that.\n{call}\n")
            }
            _ if asked.starts_with("Results of the tools") => {
                let line = asked.lines().nth(1).unwrap_or_default();
                let result: Value = serde_json::from_str(line).unwrap_or_default();
                format!("The tool says {}.", result["result"])
            }
            _ => format!("You said `{asked}`, and I am {} warm.", self.temperature),
        };
        let pieces: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        stream::iter(pieces)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("name the program of a server")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let integration =
        McpChatIntegration::new(client.clone(), ChatIntegrationConfig::default()).await?;

    let model = Model { temperature: 0.7 };
    let system = integration.enhance_system_prompt("You are a friendly assistant.");
    let history = std::cell::RefCell::new(vec![Message { role: "system", text: system }]);
    for line in std::io::stdin().lines() {
        let line = line?;
        println!("> {line}");
        let mut said = Some(line);
        let answer = std::cell::RefCell::new(String::new());
        let turn = integration.run_rounds(
            |results| {
                let mut history = history.borrow_mut();
                if results.is_some() {
                    history.push(Message { role: "assistant", text: answer.take() });
                }
                let text = results.or_else(|| said.take()).unwrap_or_default();
                history.push(Message { role: "user", text });
                let stream = model.answer(&history);
                async { Ok::<_, Infallible>(stream) }
            },
            |token| match token {
                ProcessedToken::Narrative(text) => {
                    print!("{text}");
                    // A terminal that is gone ends the program elsewhere.
                    std::io::stdout().flush().unwrap_or_default();
                    answer.borrow_mut().push_str(&text);
                }
                ProcessedToken::ToolCall(text) => answer.borrow_mut().push_str(&text),
                ProcessedToken::Buffered(_) => {}
            },
        );
        let rounds = turn.await?;
        history.borrow_mut().push(Message { role: "assistant", text: answer.take() });
        println!("\n({} tools)", rounds.executed.len());
    }
    let roles: Vec<&str> = history.borrow().iter().map(|message| message.role).collect();
    println!("{}", roles.join(" "));
    client.lock().await.close().await;
    Ok(())
}
