//! Runs the quick start of specification document 001; each argument is a token of the model.

// The package names of the document.
extern crate innkeeper as gamecode_mcp_host;
extern crate innkeeper_mcp_client as gamecode_mcp_client;

use std::error::Error;
use std::sync::Arc;

use futures_util::{Stream, stream};
use tokio::sync::Mutex;

// Document 001, "Quick Start", first lines.
#[rustfmt::skip]
use gamecode_mcp_host::{
    McpChatIntegration, ChatIntegrationConfig, StreamingMode,
    ProcessedToken, InstrumentationConfig,
};

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let tokens: Vec<String> = std::env::args().skip(1).collect();
    process_response(stream::iter(tokens)).await
}

#[rustfmt::skip]
#[expect(
    unused_variables, clippy::print_stdout, clippy::str_to_string,
    reason = "the lines are those of the document"
)]
async fn process_response(
    token_stream: impl Stream<Item = String> + Send + Unpin + 'static,
) -> Result<(), Box<dyn Error>> {
    // Document 001, "Quick Start", from the second comment of this block to the last loop.

    // Initialize MCP client
    let mcp_client = Arc::new(Mutex::new(
        gamecode_mcp_client::McpClient::connect("path/to/mcp-server", &[]).await?
    ));

    // Configure integration
    let config = ChatIntegrationConfig {
        streaming_mode: StreamingMode::SmartBuffering { max_buffer_chars: 150 },
        enhance_system_prompts: true,
        max_tool_rounds: 3,
        instrumentation: InstrumentationConfig {
            log_path: Some("mcp_debug.log".to_string()),
            log_token_classifications: false,
            log_performance_metrics: true,
        },
    };

    // Create integration
    let integration = McpChatIntegration::new(mcp_client, config).await?;

    // Process streaming response
    let mut handle = integration.process_streaming_response(token_stream).await?;

    // Handle tokens
    while let Some(token) = handle.token_stream.recv().await {
        match token {
            ProcessedToken::Narrative(text) => {
                // Display to user
            }
            ProcessedToken::ToolCall(_) => {
                // Hidden from user
            }
            ProcessedToken::Buffered(_) => {
                // Still being analyzed
            }
        }
    }

    // Handle tool executions
    while let Some(tool) = handle.tool_stream.recv().await {
        println!("Tool {} executed in {}ms", tool.tool_name, tool.execution_time_ms);
    }

    // After the lines of the document: the message for the model.
    println!("{}", handle.results_as_message().await.unwrap_or_default());
    Ok(())
}
