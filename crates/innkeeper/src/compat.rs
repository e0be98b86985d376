//! Compatibility API: the names of `gamecode_mcp_host` and `mcp_host`, as wrappers of this crate.
//!
//! Use this module to port a program that was written against these names. New programs use
//! [`Host`](crate::Host), [`Agent`](crate::Agent) and [`Chat`](crate::chat::Chat) directly. The root
//! of the crate also exports the names that the documents import from there.
//!
//! | Name here | Purpose | Based on |
//! | --- | --- | --- |
//! | [`McpClient`] | connection to one server | [`SingleServer`](crate::tools::SingleServer) |
//! | [`McpChatIntegration`] | tools for a chat application | [`Chat`](crate::chat::Chat) |
//! | [`StreamingInterceptor`] | text and tool calls of a response, without I/O | [`ToolCallParser`](innkeeper_toolcall::ToolCallParser) |
//! | [`McpHost`] | model with tools and a conversation | [`Agent`](crate::Agent) |
//! | [`OllamaProvider`] | model of an Ollama server | [`HttpProvider`](crate::transport::HttpProvider) |
//! | [`PromptTemplate`] | tools in a prompt | [`Template`](innkeeper_toolcall::prompt::Template) |
//!
//! # Document 001: tools for a chat application
//!
//! The quoted lines of the document compile with these lines in the manifest and no change in the
//! source code:
//!
//! ```toml
//! gamecode_mcp_host = { package = "innkeeper", path = "…/crates/innkeeper" }
//! gamecode_mcp_client = { package = "innkeeper-mcp-client", path = "…/crates/innkeeper-mcp-client" }
//! ```
//!
//! The program `streaming-application` of this workspace contains the quick start.
//! [`StreamingInterceptor`] and [`InterceptorState`] are the document's state machine.
//!
//! # Document 004: tools for any model, in its prompt
//!
//! ```toml
//! mcp_host = { package = "innkeeper", path = "…/crates/innkeeper" }
//! mcp_client = { package = "innkeeper-mcp-client", path = "…/crates/innkeeper-mcp-client" }
//! ```
//!
//! The program `prompt-application` of this workspace contains the usage, and its tests
//! contain the configuration, the trait and the template of the document. Every setting of
//! [`McpHostConfig`] has a default. A custom model implements two methods of the trait
//! [`LlmProvider`], `generate` and `name`:
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

mod client;
mod integration;
mod interceptor;
mod ollama;
mod processed;
mod prompt_host;
mod template;

pub use client::{CommandArguments, McpClient};
pub use integration::{
    ChatIntegrationConfig, InstrumentationConfig, McpChatIntegration, StreamingResponseHandle,
};
pub use interceptor::{InterceptedText, InterceptorState, StreamingInterceptor};
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
