//! A chat application that keeps its own model and history and adds tools.
//!
//! `cargo run --example streaming_chat_app -- path/to/mcp-server [arguments]`
//!
//! Each line on stdin is one user message; try `add 2 3`. The model is a small script, so that the
//! example needs no model server. Replace `Model` with your own.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::convert::Infallible;
use std::error::Error;
use std::io::Write as _;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{ChatIntegrationConfig, McpChatIntegration, McpClient, ProcessedToken};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// A message of the conversation, which the application owns.
struct Message {
    role: &'static str,
    text: String,
}

/// The application's model, with the application's own settings.
struct Model {
    temperature: f64,
}

impl Model {
    /// Responds to the conversation, word by word.
    fn respond(&self, history: &[Message]) -> stream::Iter<std::vec::IntoIter<String>> {
        let prompt = history.last().map_or("", |message| message.text.as_str());
        let words: Vec<&str> = prompt.split_whitespace().collect();
        let text = match words[..] {
            ["add", a, b] => {
                let number = |text: &str| text.parse::<f64>().unwrap_or_default();
                let call = json!({"tool": "add", "params": {"a": number(a), "b": number(b)}});
                format!("Let me add that.\n{call}\n")
            }
            _ if prompt.starts_with("Results of the tools") => {
                let line = prompt.lines().nth(1).unwrap_or_default();
                let result: Value = serde_json::from_str(line).unwrap_or_default();
                format!("The tool says {}.", result["result"])
            }
            _ => format!("You said `{prompt}`, and I am {} warm.", self.temperature),
        };
        let chunks: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
        stream::iter(chunks)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("usage: SERVER [ARGUMENTS]")?;
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
        let mut user_input = Some(line);
        let response = std::cell::RefCell::new(String::new());
        let run = integration.run_rounds(
            |results| {
                let mut history = history.borrow_mut();
                if results.is_some() {
                    history.push(Message { role: "assistant", text: response.take() });
                }
                let text = results.or_else(|| user_input.take()).unwrap_or_default();
                history.push(Message { role: "user", text });
                let stream = model.respond(&history);
                async { Ok::<_, Infallible>(stream) }
            },
            |token| match token {
                ProcessedToken::Narrative(text) => {
                    print!("{text}");
                    // A closed terminal ends the program at the next write.
                    std::io::stdout().flush().unwrap_or_default();
                    response.borrow_mut().push_str(&text);
                }
                ProcessedToken::ToolCall(text) => response.borrow_mut().push_str(&text),
                ProcessedToken::Buffered(_) => {}
            },
        );
        let iterations = run.await?;
        history.borrow_mut().push(Message { role: "assistant", text: response.take() });
        println!("\n({} tools)", iterations.executions.len());
    }
    let roles: Vec<&str> = history.borrow().iter().map(|message| message.role).collect();
    println!("{}", roles.join(" "));
    client.lock().await.close().await;
    Ok(())
}
