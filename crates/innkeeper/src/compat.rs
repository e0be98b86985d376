//! Compatibility API: the names of `gamecode_mcp_host` and `mcp_host`, as wrappers of this crate.
//!
//! Use this module to port a program that was written against these names. New programs use
//! [`Host`](crate::Host), [`Agent`](crate::Agent) and [`Chat`](crate::chat::Chat) directly.
//!
//! | Name here | Purpose | Based on |
//! | --- | --- | --- |
//! | [`McpClient`] | connection to one server | [`SingleServer`](crate::tools::SingleServer) |
//! | [`McpChatIntegration`] | tools for a chat application | [`Chat`](crate::chat::Chat) |
//! | [`McpHost`] | model with tools and a conversation | [`Agent`](crate::Agent) |
//! | [`OllamaProvider`] | model of an Ollama server | [`HttpProvider`](crate::transport::HttpProvider) |
//! | [`PromptTemplate`] | tools in a prompt | [`Template`](crate::toolcall::prompt::Template) |
//!
//! # Tools for a chat application
//!
//! To use these names as `gamecode_mcp_host`, add this line to the manifest and `::compat` to the
//! imports: `gamecode_mcp_host = { package = "innkeeper", … }`.
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
//!
//! # Tools for any model, in its prompt
//!
//! To use these names as `mcp_host`, add `mcp_host = { package = "innkeeper", … }` to the manifest.
//!
//! ```no_run
//! # use innkeeper::compat as mcp_client;
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use innkeeper::compat::{McpHost, McpHostConfig, OllamaProvider};
//! use std::sync::Arc;
//!
//! // Initialize MCP client
//! let mcp_client = mcp_client::McpClient::connect(
//!     "path/to/mcp-server",
//!     &["--tools", "tools.yaml"],
//! ).await?;
//! let mcp_client = Arc::new(mcp_client);
//!
//! // Create LLM provider
//! let ollama = OllamaProvider::new("llama3.1:8b".to_string());
//!
//! // Build MCP host
//! let mut host = McpHost::builder()
//!     .with_llm_provider(Box::new(ollama))
//!     .with_mcp_client(mcp_client)
//!     .with_config(McpHostConfig::default())
//!     .build()?;
//!
//! // Process messages
//! let response = host.process_message("List files in the current directory").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Every setting has a default:
//!
//! ```
//! # use innkeeper::compat::{McpHostConfig, SafetyConfig};
//! let config = McpHostConfig {
//!     max_retries: 3,
//!     retry_delay_ms: 1000,
//!     temperature_reduction: 0.1,
//!     safety_constraints: SafetyConfig {
//!         max_tokens_per_request: 4096,
//!         max_tools_per_request: 5,
//!         rate_limit_per_minute: 30,
//!         blocked_tool_patterns: vec!["rm".to_string()],
//!     },
//! };
//! # let none = SafetyConfig { blocked_tool_patterns: Vec::new(), ..config.safety_constraints.clone() };
//! # assert_eq!(McpHostConfig { safety_constraints: none, ..config }, McpHostConfig::default());
//! ```
//!
//! A custom model implements two methods of the trait [`LlmProvider`]: `generate` and `name`. The
//! other methods have defaults:
//!
//! ```
//! # use innkeeper::compat::{LlmRequest, LlmResponse, Result, async_trait};
//! #[async_trait]
//! pub trait LlmProvider: Send + Sync {
//!     async fn generate(&self, request: LlmRequest) -> Result<LlmResponse>;
//!     fn name(&self) -> &str;
//!     fn supports_tools(&self) -> bool { false }
//! }
//! ```
//!
//! ```
//! use innkeeper::compat::{LlmProvider, LlmRequest, LlmResponse, Result, async_trait};
//!
//! struct Parrot;
//!
//! #[async_trait]
//! impl LlmProvider for Parrot {
//!     async fn generate(&self, request: LlmRequest) -> Result<LlmResponse> {
//!         Ok(LlmResponse::from_text(request.to_prompt_text()))
//!     }
//!     fn name(&self) -> &str {
//!         "parrot"
//!     }
//! }
//! assert!(!Parrot.supports_tools());
//! ```
//!
//! [`PromptTemplate`] selects the prompt for a model:
//!
//! ```
//! # use innkeeper::compat::PromptTemplate;
//! let template = PromptTemplate::new("custom-model");
//! // Customize tool formatting and parsing
//! ```

mod client;
mod integration;
mod ollama;
mod processed;
mod prompt_host;
mod template;

pub use client::{CommandArguments, McpClient};
pub use integration::{
    ChatIntegrationConfig, InstrumentationConfig, McpChatIntegration, StreamingResponseHandle,
};
pub use ollama::OllamaProvider;
pub use processed::{ExecutedTool, ExecutedTools, ProcessedToken, ProcessedTokens};
pub use prompt_host::{
    McpHost, McpHostBuilder, McpHostConfig, McpHostError, SafetyConfig, ToolSource,
};

pub use template::PromptTemplate;

/// The attribute macro for implementations of [`LlmProvider`].
pub use async_trait::async_trait;
/// The model trait, and its request, response, error and token usage types.
pub use innkeeper_agent::provider::{
    LlmError, LlmProvider, Request as LlmRequest, Response as LlmResponse, Usage as TokenUsage,
};

/// Result of a model request.
pub type Result<T, E = LlmError> = std::result::Result<T, E>;

/// How tool calls in a model's text are handled.
pub use innkeeper_agent::chat::StreamingMode;
/// Reads and evaluates the log that [`InstrumentationConfig`] configures.
pub use innkeeper_agent::chat::event_log::LogAnalyzer;
/// A log entry, and the type of its event.
pub use innkeeper_agent::chat::event_log::{LogEntry as McpEvent, LogEventKind as McpEventType};
/// System prompt text that tells a model how to write a call that a streaming parser can find.
pub use innkeeper_toolcall::prompt::TOOL_CALL_RULES as STREAMING_FRIENDLY_TOOL_PROMPT;
