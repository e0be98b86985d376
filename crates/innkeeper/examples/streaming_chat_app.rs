//! A chat application that keeps its own model and history and adds tools.
//!
//! `cargo run --example streaming_chat_app -- [--ollama URL] path/to/mcp-server [arguments]`
//!
//! Each line on stdin is one user message; try `add 2 3`. Without `--ollama`, the model is a small
//! script, so that the example needs no model server. Replace `Model` with your own.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::io::Write as _;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use innkeeper::compat::{
    ChatIntegrationConfig, LlmError, LlmProvider as _, LlmRequest, McpChatIntegration, McpClient,
    OllamaProvider, ProcessedToken,
};
use innkeeper::conversation::{AssistantMessage, Message as ModelMessage};
use serde_json::{Value, json};
use tokio::sync::Mutex;

/// A message of the conversation, which the application owns.
struct Message {
    role: &'static str,
    text: String,
}

/// The application's model, with the application's own settings.
struct Model {
    /// The model server; `None` for the script.
    server: Option<Arc<OllamaProvider>>,
    temperature: f64,
}

/// The words of a response.
type Words = stream::Iter<std::vec::IntoIter<String>>;

type WordsFuture = Pin<Box<dyn Future<Output = Result<Words, LlmError>>>>;

impl Model {
    /// Responds to the conversation, word by word.
    fn respond(&self, history: &[Message]) -> WordsFuture {
        let words = |text: &str| {
            let words: Vec<String> = text.split_inclusive(' ').map(str::to_owned).collect();
            stream::iter(words)
        };
        let Some(server) = self.server.clone() else {
            let response = words(&self.script(history));
            return Box::pin(async { Ok(response) });
        };
        let request = self.request(history);
        Box::pin(async move { Ok(words(&server.generate(request).await?.message.visible_text())) })
    }

    /// Returns the request to the model server: the history and the settings of the application.
    fn request(&self, history: &[Message]) -> LlmRequest {
        let (system, others): (Vec<&Message>, Vec<&Message>) =
            history.iter().partition(|message| message.role == "system");
        let message = |message: &Message| match message.role {
            "assistant" => {
                ModelMessage::Assistant(AssistantMessage::from_text(message.text.clone()).into())
            }
            _ => ModelMessage::User(message.text.clone().into()),
        };
        LlmRequest {
            system: system.into_iter().map(|message| message.text.as_str()).collect(),
            messages: others.into_iter().map(message).collect(),
            temperature: Some(self.temperature),
            ..LlmRequest::default()
        }
    }

    fn script(&self, history: &[Message]) -> String {
        let prompt = history.last().map_or("", |message| message.text.as_str());
        let words: Vec<&str> = prompt.split_whitespace().collect();
        match words[..] {
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
        }
    }
}

/// Removes `--ollama URL` from the front of the arguments.
fn model_server(words: &mut Vec<String>) -> Option<Arc<OllamaProvider>> {
    if words.first()? != "--ollama" {
        return None;
    }
    let url = words.drain(..2.min(words.len())).nth(1)?;
    let model = "llama3.1:8b".to_owned();
    Some(Arc::new(OllamaProvider::with_config(model, url, Duration::from_secs(120))))
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut words: Vec<String> = std::env::args().skip(1).collect();
    let model = Model { server: model_server(&mut words), temperature: 0.7 };
    let (server, arguments) = words.split_first().ok_or("usage: SERVER [ARGUMENTS]")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let integration =
        McpChatIntegration::new(client.clone(), ChatIntegrationConfig::default()).await?;

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
                model.respond(&history)
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
