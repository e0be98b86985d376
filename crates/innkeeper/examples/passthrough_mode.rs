//! Passes the model's text through unchanged and runs no calls.
//!
//! `cargo run --example passthrough_mode -- path/to/mcp-server [arguments]`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{
    ChatIntegrationConfig, McpChatIntegration, McpClient, ProcessedToken, StreamingMode,
};
use serde_json::json;
use tokio::sync::Mutex;

const RESPONSE: [&str; 3] =
    ["I would call ", "{\"tool\": \"echo\", \"params\": {\"message\": \"hello\"}}", " for that."];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("usage: SERVER [ARGUMENTS]")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let config = ChatIntegrationConfig {
        streaming_mode: StreamingMode::Passthrough,
        max_tool_rounds: 0,
        ..ChatIntegrationConfig::default()
    };
    let integration = McpChatIntegration::new(client.clone(), config).await?;

    let response = stream::iter(RESPONSE.map(str::to_owned));
    let mut handle = integration.process_streaming_response(response).await?;
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => println!("text: {text}"),
            ProcessedToken::ToolCall(_) | ProcessedToken::Buffered(_) => {
                println!("unexpected segment");
            }
        }
    }
    let mut tools = 0;
    while handle.tool_stream.recv().await.is_some() {
        tools += 1;
    }
    println!("{tools} tool calls executed");
    // The application can still call tools directly.
    let client = client.lock().await;
    let output = client.call_tool("echo", json!({"message": "by hand"})).await?;
    println!("{}", output.raw());
    client.close().await;
    Ok(())
}
