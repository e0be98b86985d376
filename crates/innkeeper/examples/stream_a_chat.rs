//! Adds tools to an application that calls its own model: a chat reads the streamed text of the
//! model, hides the tool calls, runs the calls, and returns their results for the model.
//!
//! `cargo run --example stream_a_chat -- mcp.json SERVER.TOOL '{"key": "value"}'`
//!
//! The model is a small script that calls this tool, so that the example needs no model server.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use futures_util::{Stream, stream};
use innkeeper::chat::{Chat, ChatSettings, ResponseItem};
use innkeeper::{Config, Host};

const USAGE: &str = "usage: stream_a_chat CONFIG SERVER.TOOL [ARGUMENTS]";

/// The model of the application. Replace the model with your own.
struct Model {
    tool: String,
    arguments: String,
}

impl Model {
    /// Responds to the last message in chunks of seven characters.
    fn respond(&self, history: &[String]) -> impl Stream<Item = String> + Send + Unpin + 'static {
        let text = match history {
            [_system, _user] => {
                let Self { tool, arguments } = self;
                let call = format!(r#"{{"tool": "{tool}", "params": {arguments}}}"#);
                format!("I call the tool.\n{call}\n")
            }
            [.., results] => format!("The tool returned {} bytes.", results.len()),
            [] => String::new(),
        };
        let characters: Vec<char> = text.chars().collect();
        let chunks: Vec<String> =
            characters.chunks(7).map(|chunk| chunk.iter().collect()).collect();
        stream::iter(chunks)
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [config, tool, arguments @ ..] = &words[..] else { return Err(USAGE.into()) };
    let arguments = arguments.first().cloned().unwrap_or_else(|| "{}".to_owned());
    let model = Model { tool: tool.clone(), arguments };
    let host = Host::start(Config::from_file(config)?).await?;
    let chat = Chat::new(Arc::new(host.clone()), ChatSettings::default())?;

    // The system prompt describes the tools.
    let system = chat.enhance_system_prompt("You are a friendly assistant.");
    let mut history = vec![system, "Use the tool.".to_owned()];
    let run = chat.start_run();
    loop {
        let mut response = run.read_response(model.respond(&history))?;
        let mut text = String::new();
        while let Some(item) = response.next_item().await {
            match item {
                ResponseItem::Segment(segment) => {
                    print!("{}", segment.visible_text().unwrap_or_default());
                    text.push_str(segment.text());
                }
                ResponseItem::Execution(call) => println!("[`{}` has ended]", call.tool),
            }
        }
        println!();
        history.push(text);
        // Without results the model has given its last response.
        let Some(results) = response.results_as_message().await else { break };
        println!("for the model: {results}");
        history.push(results);
    }
    host.shutdown().await;
    Ok(())
}
