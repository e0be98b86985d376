//! Runs the usage of specification document 004 with the Ollama server of this machine.

// The package names of the document.
extern crate innkeeper as mcp_host;
extern crate innkeeper_mcp_client as mcp_client;

use std::error::Error;

// Document 004, "Usage", first lines.
use mcp_host::{McpHost, McpHostConfig, OllamaProvider};
use std::sync::Arc;

#[tokio::main]
#[expect(clippy::print_stdout, reason = "a program prints the answer of the model")]
async fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", list_files().await?);
    Ok(())
}

#[rustfmt::skip]
#[expect(clippy::str_to_string, reason = "the lines are those of the document")]
async fn list_files() -> Result<String, Box<dyn Error>> {
    // Document 004, "Usage", after the imports.

    // Initialize MCP client
    let mcp_client = mcp_client::McpClient::connect(
        "path/to/mcp-server",
        &["--tools", "tools.yaml"],
    ).await?;
    let mcp_client = Arc::new(mcp_client);

    // Create LLM provider
    let ollama = OllamaProvider::new("llama3.1:8b".to_string());

    // Build MCP host
    let mut host = McpHost::builder()
        .with_llm_provider(Box::new(ollama))
        .with_mcp_client(mcp_client)
        .with_config(McpHostConfig::default())
        .build()?;

    // Process messages
    let response = host.process_message("List files in the current directory").await?;

    // After the lines of the document.
    Ok(response)
}
