//! Innkeeper, an MCP host for Rust applications.
//!
//! The host starts the servers of an `mcp.json`, offers their tools, prompts and resources through
//! one API, and stops the servers without leaving a process behind. An agent lets a language model
//! call the tools. The library installs no logger, no signal handler and no panic hook, and reads
//! the process environment only in [`Config::from_file`], [`Environment::from_process`] and
//! [`compat::McpClient::connect`].
//!
//! | Module or type | Purpose |
//! | --- | --- |
//! | [`Host`], [`Catalog`], [`CallOptions`] | start servers, list their tools, call tools |
//! | [`Config`], [`config`], [`reload`] | read `mcp.json`, apply a changed configuration |
//! | [`Callback`], [`CallbackCapabilities`], [`auth`] | answer servers, sign in at servers |
//! | [`Connector`] | host a server in the process of the application |
//! | [`Lock`], [`TrustPolicy`], [`lock`], [`trust`] | pin tool definitions, approve server launches |
//! | [`HostEvent`], [`Telemetry`], [`event`], [`audit`] | lifecycle events, metrics, security log |
//! | [`Agent`], [`agent`], [`conversation`], [`provider`], [`transport`] | run a model with tools |
//! | [`chat`] | add tools to the streamed text of an application's own model |
//! | [`safety`], [`tools`] | approve and limit calls, run tools that are not on a server |
//! | [`toolcall`], [`protocol`] | tool calls in text and MCP messages, without I/O |
//! | [`compat`] | the names of other MCP libraries |
//!
//! # Host: servers and their tools
//!
//! [`Host::start`] starts all servers in dependency order. [`Host::catalog`] lists the tools as
//! `SERVER.TOOL`. [`Host::call_tool`] sends a call and returns the server's result unchanged; a
//! failure that the tool reports is also a result ([`ToolResult::is_error`]). The host restarts a
//! failed server if the configuration says so. [`Host::shutdown`] stops all servers and reports how
//! each server stopped.
//!
//! ```no_run
//! use innkeeper::{Config, Host};
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::start(Config::from_file("mcp.json")?).await?;
//!     for name in host.catalog().tool_names() {
//!         println!("{name}");
//!     }
//!     let result = host.call_tool("filesystem.read_text_file", json!({"path": "a.txt"})).await?;
//!     println!("{}", result.raw());
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Agent: a model with tools
//!
//! An [`Agent`] owns a model, its tools and their conversation. [`Agent::run`] sends one user
//! message, runs the tools that the model calls, and returns the model's last response. A [`Host`]
//! is a source of tools; [`tools::ToolRunner`] is the trait for other sources.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use innkeeper::agent::AgentSettings;
//! use innkeeper::transport::{ModelSelector, get_llm_client};
//! use innkeeper::{Agent, Config, Environment, Host};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::start(Config::from_file("mcp.json")?).await?;
//!     let selector = ModelSelector {
//!         provider: "ollama".to_owned(),
//!         model: Some("llama3.1:8b".to_owned()),
//!         ..Default::default()
//!     };
//!     let model = get_llm_client(&selector, &Environment::from_process())?;
//!     let agent = Agent::new(Arc::new(model), Arc::new(host.clone()), AgentSettings::default());
//!
//!     let result = agent.run("Summarize a.txt in one sentence.").await;
//!     println!("{}", result.text);
//!     for call in &result.tool_calls {
//!         println!("{} {}", call.tool, call.arguments);
//!     }
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Chat: tools for a model of the application
//!
//! A [`Chat`](chat::Chat) reads the streamed text of a model that the application calls itself. The
//! chat separates tool calls from visible text, runs the calls, and returns their results as a
//! message for the model.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use futures_util::stream;
//! use innkeeper::chat::{Chat, ChatSettings};
//! use innkeeper::{Config, Host};
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let host = Host::start(Config::from_file("mcp.json")?).await?;
//!     let chat = Chat::new(Arc::new(host.clone()), ChatSettings::default())?;
//!     println!("{}", chat.enhance_system_prompt("You are a friendly assistant."));
//!
//!     // The streamed response of your model, in chunks of any size.
//!     let chunks = stream::iter(["Hello".to_owned(), ", world.".to_owned()]);
//!     let mut response = chat.start_run().read_response(chunks)?;
//!     while let Some(segment) = response.segment_stream.recv().await {
//!         print!("{}", segment.visible_text().unwrap_or_default());
//!     }
//!     if let Some(message) = response.results_as_message().await {
//!         println!("{message}");
//!     }
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Process trees
//!
//! A supervisor process runs each server. It stops the server's whole process tree when the host
//! requests a stop, when the server exits, and when the host is killed. The supervisor is the
//! program `innkeeper-shim` in the directory of the application. Alternatively, an application
//! calls [`shim::run_if_requested`] first in `main` and passes [`Supervisor::this_program`] to
//! [`HostBuilder::supervisor`]. Without a supervisor, each server runs in a process group, which a
//! daemon can leave. [`Host::status`] reports which containment a server has.

pub mod compat;

pub use innkeeper_host::{
    Arguments, CallError, CallErrorKind, CallOptions, CallReference, Callback,
    CallbackCapabilities, CallbackError, Catalog, CatalogServer, CatalogTool, ChangeClass,
    ClientInfo, CompletionReference, Config, ConfigError, ConnectError, Connector, Definition,
    Environment, ErrorClass, ExitStatus, Finding, FindingKind, Host, HostBuilder, HostEvent,
    LaunchSpec, Lock, LockError, LogLevel, PinChange, PinPolicy, ProcessContainment, ProcessLimit,
    Progress, ReloadError, ReloadOptions, ReloadReport, RestartError, SecurityWarning,
    ServerListing, ServerMetrics, ServerRequest, ServerState, ServerStatus, ServerStream,
    ShutdownReport, StartError, StructuredContentError, Supervisor, Telemetry, ToolResult,
    TrustDecisions, TrustPolicy, display_safe, split_name,
};

/// Authorization at remote servers: user agent, token provider, token store.
pub mod auth {
    pub use innkeeper_host::{
        AuthError, AuthErrorKind, AuthorizationRequest, Challenge, ProtectedResource,
        RedirectFuture, TokenFuture, TokenProvider, TokenStore, UserAgent,
    };
}

/// Agents: models that call tools, with their conversations.
pub use innkeeper_agent::agent::{self, Agent};
/// Tools in the streamed text of an application's own model.
pub use innkeeper_agent::chat;
/// Messages between user, model and tools.
pub use innkeeper_agent::conversation;
/// The trait of language models, their requests and responses.
pub use innkeeper_agent::provider;
/// State machine of one agent run, without I/O.
pub use innkeeper_agent::run;
/// Approval, blocklists and rate limits for tool calls.
pub use innkeeper_agent::safety;
/// Execution of tool calls.
pub use innkeeper_agent::tools;
/// HTTP clients of model providers.
pub use innkeeper_agent::transport;
/// Security-relevant log entries.
pub use innkeeper_host::audit;
/// Configuration: servers, transports, and diagnostics with their positions.
pub use innkeeper_host::config;
/// Error types.
pub use innkeeper_host::error;
/// Events of a running host.
pub use innkeeper_host::event;
/// Lock file with pinned tool definitions, and its differences.
pub use innkeeper_host::lock;
/// Application of a changed configuration to a running host.
pub use innkeeper_host::reload;
/// Supervisor mode for applications.
pub use innkeeper_host::shim;
/// Reports on stopped servers.
pub use innkeeper_host::shutdown;
/// Approval of server launches.
pub use innkeeper_host::trust;
/// MCP messages without I/O, with lenient views of messages from servers.
pub use innkeeper_protocol as protocol;
/// Tool calls in model text, without I/O: parsing, repair and validation.
pub use innkeeper_toolcall as toolcall;

/// The names that the specification documents import from the root; see [`compat`].
#[doc(hidden)]
pub use compat::{
    ChatIntegrationConfig, InstrumentationConfig, InterceptorState, LlmProvider, LlmRequest,
    LlmResponse, McpChatIntegration, McpHost, McpHostConfig, OllamaProvider, ProcessedToken,
    PromptTemplate, Result, SafetyConfig, StreamingInterceptor, StreamingMode, async_trait,
};
