//! A server at hand, and the model's text left alone.
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

const ANSWER: [&str; 3] =
    ["I would call ", "{\"tool\": \"echo\", \"params\": {\"message\": \"hello\"}}", " for that."];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (server, arguments) = words.split_first().ok_or("name the program of a server")?;
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let config = ChatIntegrationConfig {
        streaming_mode: StreamingMode::Passthrough,
        max_tool_rounds: 0,
        ..ChatIntegrationConfig::default()
    };
    let integration = McpChatIntegration::new(client.clone(), config).await?;

    let answer = stream::iter(ANSWER.map(str::to_owned));
    let mut handle = integration.process_streaming_response(answer).await?;
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => println!("as it came: {text}"),
            ProcessedToken::ToolCall(_) | ProcessedToken::Buffered(_) => println!("never here"),
        }
    }
    let mut tools = 0;
    while handle.tool_stream.recv().await.is_some() {
        tools += 1;
    }
    println!("{tools} tools were run");
    // The program may still call tools by itself.
    let client = client.lock().await;
    let output = client.call_tool("echo", json!({"message": "by hand"})).await?;
    println!("{}", output.raw());
    client.close().await;
    Ok(())
}
