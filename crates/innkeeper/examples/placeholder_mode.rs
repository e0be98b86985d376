//! Replaces each tool call in the visible text with a placeholder.
//!
//! `cargo run --example placeholder_mode -- path/to/mcp-server [arguments]`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{
    ChatIntegrationConfig, McpChatIntegration, McpClient, ProcessedToken, StreamingMode,
};
use tokio::sync::Mutex;

const RESPONSE: [&str; 5] = [
    "Two sums: ",
    "{\"tool\": \"add\", \"params\": {\"a\": 1, \"b\": 2}}",
    " and ",
    "{\"tool\": \"add\", \"params\": {\"a\": 3, \"b\": 4}}",
    ".",
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("usage: SERVER [ARGUMENTS]")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let config = ChatIntegrationConfig {
        streaming_mode: StreamingMode::WithPlaceholders {
            placeholder_text: "[calculating]".to_owned(),
        },
        ..ChatIntegrationConfig::default()
    };
    let integration = McpChatIntegration::new(client.clone(), config).await?;

    let response = stream::iter(RESPONSE.map(str::to_owned));
    let mut handle = integration.process_streaming_response(response).await?;
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => print!("{text}"),
            ProcessedToken::ToolCall(_) | ProcessedToken::Buffered(_) => {}
        }
    }
    println!();
    let mut tools = Vec::new();
    while let Some(tool) = handle.tool_stream.recv().await {
        tools.push(tool);
    }
    tools.sort_by_key(|tool| tool.index);
    for tool in tools {
        println!("{} {} = {}", tool.tool_name, tool.parameters, tool.result["content"][0]["text"]);
    }
    client.lock().await.close().await;
    Ok(())
}
