//! Writes and reads a chat's log: three responses and their log entries.
//!
//! `cargo run --example instrumentation_demo -- LOG path/to/mcp-server [arguments]`

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;
use std::sync::Arc;

use futures_util::stream;
use innkeeper::compat::{
    ChatIntegrationConfig, InstrumentationConfig, LogAnalyzer, McpChatIntegration, McpClient,
};
use tokio::sync::Mutex;

/// Three responses: with a single call, with a call inside a sentence, and with several calls.
const RESPONSES: [(&str, &str); 3] = [
    ("clean", "Sure.\n\n{\"tool\": \"echo\", \"params\": {\"message\": \"1\"}}"),
    ("mixed", "I'll use {\"tool\": \"add\", \"params\": {\"a\": 1, \"b\": 2}} to help."),
    (
        "several",
        "{\"tool\": \"echo\", \"params\": {\"message\": \"2\"}}\n{\"tool\": \"fail\", \"params\": {}}\n",
    ),
];

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [log, server, arguments @ ..] = &words[..] else {
        return Err("usage: LOG SERVER [ARGUMENTS]".into());
    };
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let client = Arc::new(Mutex::new(McpClient::connect(server, &arguments).await?));
    let config = ChatIntegrationConfig {
        instrumentation: InstrumentationConfig {
            log_path: Some(log.clone()),
            log_token_classifications: true,
            log_performance_metrics: true,
        },
        ..ChatIntegrationConfig::default()
    };
    let integration = McpChatIntegration::new(client.clone(), config).await?;

    for (pattern, response) in RESPONSES {
        let chunks: Vec<String> = response.split_inclusive(' ').map(str::to_owned).collect();
        let mut handle = integration.process_streaming_response(stream::iter(chunks)).await?;
        while handle.token_stream.recv().await.is_some() {}
        let mut tools = Vec::new();
        while let Some(tool) = handle.tool_stream.recv().await {
            tools.push(tool.tool_name);
        }
        tools.sort_unstable();
        println!("{pattern}: {}", tools.join(", "));
    }
    client.lock().await.close().await;

    let log = LogAnalyzer::from_file(log)?;
    for (tool, stats) in log.tool_execution_stats() {
        println!("{tool}: {} calls, {} errors", stats.calls, stats.errors);
    }
    let timed = log.performance_timeline().count();
    println!("{timed} durations");
    Ok(())
}
