//! The names under which other documents know what is here. Thin wrappers; each type says what it
//! stands for.
//!
//! # Tools for a chat application
//!
//! A crate that knows these names as `gamecode_mcp_host` needs one line in its manifest:
//! `gamecode_mcp_host = { package = "innkeeper", … }`, and `::compat` in its imports.
//!
//! ```no_run
//! # use innkeeper::compat as gamecode_mcp_host;
//! # use innkeeper::compat as gamecode_mcp_client;
//! # use std::sync::Arc;
//! # use tokio::sync::Mutex;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let token_stream = futures_util::stream::iter([String::from("Hello")]);
//! use gamecode_mcp_host::{
//!     McpChatIntegration, ChatIntegrationConfig, StreamingMode,
//!     ProcessedToken, InstrumentationConfig,
//! };
//!
//! // Initialize MCP client
//! let mcp_client = Arc::new(Mutex::new(
//!     gamecode_mcp_client::McpClient::connect("path/to/mcp-server", &[]).await?
//! ));
//!
//! // Configure integration
//! let config = ChatIntegrationConfig {
//!     streaming_mode: StreamingMode::SmartBuffering { max_buffer_chars: 150 },
//!     enhance_system_prompts: true,
//!     max_tool_rounds: 3,
//!     instrumentation: InstrumentationConfig {
//!         log_path: Some("mcp_debug.log".to_string()),
//!         log_token_classifications: false,
//!         log_performance_metrics: true,
//!     },
//! };
//!
//! // Create integration
//! let integration = McpChatIntegration::new(mcp_client, config).await?;
//!
//! // Process streaming response
//! let mut handle = integration.process_streaming_response(token_stream).await?;
//!
//! // Handle tokens
//! while let Some(token) = handle.token_stream.recv().await {
//!     match token {
//!         ProcessedToken::Narrative(text) => {
//!             // Display to user
//!         }
//!         ProcessedToken::ToolCall(_) => {
//!             // Hidden from user
//!         }
//!         ProcessedToken::Buffered(_) => {
//!             // Still being analyzed
//!         }
//!     }
//! }
//!
//! // Handle tool executions
//! while let Some(tool) = handle.tool_stream.recv().await {
//!     println!("Tool {} executed in {}ms", tool.tool_name, tool.execution_time_ms);
//! }
//! # Ok(())
//! # }
//! ```

mod client;
mod integration;
mod received;

pub use client::McpClient;
pub use integration::{
    ChatIntegrationConfig, InstrumentationConfig, McpChatIntegration, StreamingResponseHandle,
};
pub use received::{ExecutedTool, ExecutedTools, ProcessedToken, ProcessedTokens};

/// What is done with the calls in a model's text.
pub use innkeeper_agent::chat::Mode as StreamingMode;
/// How a model is told to write a call, so that it can be found while its text streams.
pub use innkeeper_agent::chat::prompt::RULES as STREAMING_FRIENDLY_TOOL_PROMPT;
/// Reads the log of [`InstrumentationConfig`] again.
pub use innkeeper_agent::chat::record::LogAnalyzer;
/// One line of that log, and what happened.
pub use innkeeper_agent::chat::record::{Kind as McpEventType, Line as McpEvent};
