//! Reads one model response and runs the tool that the response calls.
//!
//! `cargo run --example minimal_streaming -- path/to/mcp-server [arguments]`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{ChatIntegrationConfig, McpChatIntegration, McpClient, ProcessedToken};
use tokio::sync::Mutex;

/// A model's response in chunks, which may split the JSON of a call anywhere.
const RESPONSE: [&str; 7] = [
    "Let me say it",
    ".\n\n{\"tool\": \"ec",
    "ho\", \"params\"",
    ": {\"message\": \"hello",
    "\"}",
    "}\n\n",
    "Said.",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("usage: SERVER [ARGUMENTS]")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = McpClient::connect(server, &arguments).await?;
    client.initialize("minimal_streaming", "1.0").await?;
    let client = Arc::new(Mutex::new(client));

    let integration =
        McpChatIntegration::new(client.clone(), ChatIntegrationConfig::default()).await?;
    let response = stream::iter(RESPONSE.map(str::to_owned));
    let mut handle = integration.process_streaming_response(response).await?;
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => print!("{text}"),
            ProcessedToken::ToolCall(_) | ProcessedToken::Buffered(_) => {}
        }
    }
    println!();
    while let Some(tool) = handle.tool_stream.recv().await {
        println!("Tool {} executed in {}ms", tool.tool_name, tool.execution_time_ms);
        println!("{}", tool.result["content"][0]["text"]);
    }
    client.lock().await.close().await;
    Ok(())
}
