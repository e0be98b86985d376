//! Innkeeper, an MCP host for Rust applications.
//!
//! The host starts the servers of an `mcp.json`, offers their tools, prompts and resources through
//! one API, and stops the servers without leaving a process behind. An agent lets a language model
//! call the tools.
//!
//! # Call a tool
//!
//! [`Host::start`] starts all servers in dependency order. [`Host::catalog`] lists the tools as
//! `SERVER.TOOL`. [`Host::call_tool`] returns the result of the server unchanged; a failure that the
//! tool reports is also a result ([`ToolResult::is_error`]). [`Host::shutdown`] stops all servers
//! and reports how each server stopped.
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
//!     let result = host.call_tool("files.read_text_file", json!({"path": "a.txt"})).await?;
//!     println!("{}", result.raw());
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Let a model use the tools
//!
//! An [`Agent`] owns a model, its tools and their conversation. [`Agent::run`] sends one user
//! message, runs the tools that the model calls, and returns the model's last response. A [`Host`]
//! is a source of tools; [`tools::ToolRunner`] is the trait for other sources.
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use innkeeper::transport::{ModelSelector, get_llm_client};
//! use innkeeper::{Agent, AgentSettings, Config, Environment, Host};
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
//! # Answer the servers
//!
//! A server can ask for user input (elicitation), for a model's message (sampling) and for the
//! directories of the user (roots). [`HostBuilder::callback`] registers a [`Callback`] for such
//! requests. [`ServerRequest::call`] names the call that the server works on, if the protocol says
//! which call this is.
//! A [`server_requests::ServerRequestHandler`] is a callback that asks a model and the user.
//!
//! ```no_run
//! use innkeeper::{CallbackCapabilities, Config, Host, ServerRequest};
//! use serde_json::json;
//!
//! #[tokio::main]
//! async fn main() -> Result<(), Box<dyn std::error::Error>> {
//!     let answer = |request: ServerRequest| async move {
//!         println!("{} asks: {:?}", request.server, request.params);
//!         Ok(json!({"action": "accept", "content": {"city": "Graz"}}))
//!     };
//!     let host = Host::builder(Config::from_file("mcp.json")?)
//!         .callback(&CallbackCapabilities::elicitation(), answer)
//!         .start()
//!         .await?;
//!     host.call_tool("weather.forecast", ()).await?;
//!     host.shutdown().await;
//!     Ok(())
//! }
//! ```
//!
//! # Further uses
//!
//! [`HostBuilder::connect`] adds a server that runs in the process of the application. A
//! [`Chat`](chat::Chat) finds the tool calls in the streamed text of a model that the application
//! calls itself. The examples of this crate are one program per use: `call_a_tool`, `ask_a_model`,
//! `answer_a_server`, `server_in_process` and `stream_a_chat`.
//!
//! # Modules
//!
//! The root has the names of these uses. A module has all names of its subject. An example on
//! another page may use the crate that defines an item: read `innkeeper_host::Host` as
//! `innkeeper::Host`.
//!
//! | Module | Contents |
//! | --- | --- |
//! | [`config`] | read `mcp.json`: servers, transports, and diagnostics with their positions |
//! | [`catalog`] | tools, prompts and resources of the servers |
//! | [`call`] | arguments, options, progress, results and records of calls |
//! | [`callback`] | requests of servers to the application |
//! | [`server`] | states and reports of servers, and servers in the process of the application |
//! | [`event`] | events of a running host, and the level of log messages |
//! | [`reload`] | apply a changed configuration to a running host |
//! | [`shutdown`] | reports on stopped servers |
//! | [`error`] | errors of the host |
//! | [`auth`] | sign-in at remote servers |
//! | [`trust`] | approve server launches |
//! | [`lock`] | pin tool definitions and find changes |
//! | [`guard`] | findings of the scan for attacks |
//! | [`audit`] | log entries of security-relevant events |
//! | [`text`] | display of untrusted text |
//! | [`telemetry`] | metrics and OpenTelemetry providers |
//! | [`process`] | supervisor, containment and exit of server processes |
//! | [`agent`] | run a model with tools |
//! | [`ghost`] | one prompt with servers of its own, one result |
//! | [`golden`] | record a run, and replay it as a test |
//! | [`chat`] | add tools to the streamed text of an application's own model |
//! | [`conversation`], [`content`] | messages of user, model and tools, and their content |
//! | [`provider`], [`transport`] | the trait of models, and models over HTTP |
//! | [`tool_search`] | offer a search for tools in place of many tools |
//! | [`tools`], [`tool_output`] | the trait that runs tools, and tool output as content |
//! | [`safety`] | approve, block and limit calls of models |
//! | [`server_requests`] | answer requests of servers with a model and the user |
//! | [`run`], [`run_json`] | a run as a state machine without I/O, and its result as JSON |
//! | [`compat`] | the names of other MCP libraries |
//!
//! The parser of tool calls and the messages of MCP are crates of their own, without I/O:
//! `innkeeper-toolcall` and `innkeeper-protocol`.
//!
//! # Global state
//!
//! The library installs no logger, no signal handler and no panic hook, and reads the process
//! environment only in [`Config::from_file`], [`Environment::from_process`] and
//! [`compat::McpClient::connect`]. A supervisor that the library does not contain receives `PATH` and
//! `LD_LIBRARY_PATH`.
//!
//! # Process trees
//!
//! A supervisor process runs each server, and stops the server's whole process tree when the host
//! requests a stop, when the server exits, and when the host is killed. On Linux on
//! x86-64 and ARM64, the library contains the supervisor, a program of 34 kB, and runs it from a
//! file in memory ([`Supervisor::embedded`]). On other systems, and where the system executes no
//! file in memory, the supervisor is the program `innkeeper-shim` in the directory of the
//! application. Alternatively, an application calls [`process::shim::run_if_requested`] first in
//! `main` and passes [`Supervisor::this_program`] to [`HostBuilder::supervisor`]. Without a
//! supervisor, each server runs in a process group, which a daemon can leave. [`Host::status`]
//! reports which containment a server has.
//!
//! An application that owns its process calls two more functions in `main`, as the command line
//! does: [`process::host_process::hide`] hides the environment and the memory of the application
//! from its servers, and [`process::host_process::adopt_orphans`] lets the host find each process
//! that a killed supervisor leaves.

pub use innkeeper_agent::agent::{Agent, AgentSettings};
pub use innkeeper_host::{
    Arguments, CallError, CallOptions, Callback, CallbackCapabilities, Catalog, CatalogTool,
    Config, ConfigError, Connector, Environment, Host, HostBuilder, HostEvent, Progress,
    ServerRequest, ServerState, ServerStatus, ShutdownReport, StartError, Supervisor, ToolResult,
};

/// The configuration of a host: servers, transports, and diagnostics with their positions.
pub mod config {
    pub use innkeeper_host::config::{
        ApiKeyConfig, ApprovalConfig, BindingConfig, CacheConfig, CallConfig, Config, ConfigError,
        ConfigOrigin, ConfigWatcher, ConfinementConfig, ConsoleConfig, DenyReason, Diagnostic,
        EndpointConfig, EnterpriseConfig, Environment, ExpandedValue, ExtraKeys, ForeignDefinition,
        GuardMode, GuardModes, HostConfig, IdToken, InheritedEnvironment, InvalidServer, KeyDigest,
        LargeResults, LifecycleConfig, MAX_FILE_BYTES, NameStyle, OauthConfig, OauthGrant,
        Position, Rate, RateConfig, ResourceLimits, RestartPolicy, RetryPolicy, SandboxConfig,
        Secret, ServeAuth, ServeConfig, ServeLimits, ServeOauth, ServerConfig, Severity, Share,
        TokenAlgorithm, ToolFilter, TransportConfig, UnknownServer, foreign, json_schema, name,
        redact_argument, redact_url, server_names,
    };
    pub use innkeeper_host::writable_own_files;
}

/// The tools, prompts and resources of the servers, by public name.
pub mod catalog {
    pub use innkeeper_host::catalog::{
        Catalog, CatalogPrompt, CatalogResource, CatalogServer, CatalogTemplate, CatalogTool,
        SecurityWarning, UnavailableCatalogServer, UnavailableCatalogTool,
    };
    pub use innkeeper_host::{Definition, MissingList, ServerListing, split_name};
}

/// Calls: arguments, options, progress, results and records.
pub mod call {
    pub use innkeeper_host::call::{
        Arguments, CallOptions, CompletionReference, RemoteClient, RoundTripMode,
        StructuredContentError, TaskMode, ToolResult,
    };
    pub use innkeeper_host::event::{CallOutcome, CallRecord, CallReference};
    pub use innkeeper_host::{CallError, CallErrorKind, CallHold, Progress, SendCheck};
}

/// Callbacks: the application handles requests of servers.
pub mod callback {
    pub use innkeeper_host::CallReference;
    pub use innkeeper_host::callback::{
        Callback, CallbackCapabilities, CallbackError, CallbackFuture, CallbackResult,
        ServerRequest, to_callback_result,
    };
}

/// States and reports of servers, and connectors to servers in the process of the application.
pub mod server {
    pub use innkeeper_host::error::{ConnectError, ConnectorError};
    pub use innkeeper_host::{
        CacheMetrics, CallRates, ConnectFuture, Connector, LatencySummary, RunnerCheck,
        ServerMetrics, ServerState, ServerStatus, ServerStream,
    };
}

/// Events of a running host, and the level of the log messages of servers.
pub mod event {
    pub use innkeeper_host::LogLevel;
    pub use innkeeper_host::event::{
        CallOutcome, CallRecord, CallReference, HostEvent, REPORTED_TARGET,
    };
}

/// Application of a changed configuration to a running host.
pub mod reload {
    pub use innkeeper_host::reload::{ReloadError, ReloadOptions, ReloadReport, ServerChange};
}

/// The shutdown of a host: how each server stopped.
pub mod shutdown {
    pub use innkeeper_host::shutdown::{ServerStopReport, ShutdownReport, StopStage};
}

/// Errors of the host; each error names its server, tool or key.
pub mod error {
    pub use innkeeper_host::error::{
        AuthError, AuthErrorKind, CallError, CallErrorKind, ConnectError, ConnectFailureKind,
        ConnectorError, ErrorClass, ProtocolError, RestartError, RoutingError, ServerFailure,
        StartError, StartFailureReason, StartPhase, StopError, UnavailableReason, Violation,
    };
}

/// Authorization at remote servers: user agent, token provider and token store.
pub mod auth {
    pub use innkeeper_host::config::Secret;
    pub use innkeeper_host::{
        AuthError, AuthErrorKind, AuthorizationRequest, Challenge, ProtectedResource,
        RedirectFuture, TokenFuture, TokenProvider, TokenStore, UserAgent,
    };
}

/// Trust: the approval of server launches.
pub mod trust {
    pub use innkeeper_host::trust::{
        GatewaySpec, LaunchProgram, LaunchSpec, RemoteTarget, TrustDecisions, TrustPolicy,
    };
}

/// Pins: the recorded definition of each tool, and the changes since then.
pub mod lock {
    pub use innkeeper_host::lock::{
        ChangeClass, InProcessType, LOCK_FILE_NAME, Lock, LockError, MAX_LOCK_BYTES, Package,
        PinChange, PinPolicy, PinnedLaunch, PinnedServer, PinnedText, PinnedTool, RunnerPackages,
        ServerIdentity,
    };
}

/// The guard: possible attacks in definitions, arguments and results.
pub mod guard {
    pub use innkeeper_host::config::{GuardMode, GuardModes};
    pub use innkeeper_host::{Finding, FindingKind, find_credentials};
}

/// The log entries of security-relevant events.
pub mod audit {
    pub use innkeeper_host::audit::TARGET;
}

/// Untrusted text: escapes for display, and the detection of deceptive characters.
pub mod text {
    pub use innkeeper_host::{display_safe, is_deceptive_char};
}

/// Counts and latencies per server, and the OpenTelemetry providers of the application.
pub mod telemetry {
    pub use innkeeper_host::{CacheMetrics, CallRates, LatencySummary, ServerMetrics, Telemetry};
}

/// Server processes: supervisor, containment, environment and exit status.
pub mod process {
    #[cfg(target_os = "linux")]
    pub use innkeeper_host::peer;
    pub use innkeeper_host::{
        EmbeddedSupervisor, ExitStatus, ProcessContainment, ProcessLimit, Supervisor, host_process,
        inherited_environment, shim,
    };
}

#[doc(inline)]
pub use innkeeper_agent::agent;
#[doc(inline)]
pub use innkeeper_agent::chat;
#[doc(inline)]
pub use innkeeper_agent::content;
#[doc(inline)]
pub use innkeeper_agent::conversation;
#[doc(inline)]
pub use innkeeper_agent::ghost;
#[doc(inline)]
pub use innkeeper_agent::golden;
#[doc(inline)]
pub use innkeeper_agent::provider;
#[doc(inline)]
pub use innkeeper_agent::run;
#[doc(inline)]
pub use innkeeper_agent::run_json;
#[doc(inline)]
pub use innkeeper_agent::safety;
#[doc(inline)]
pub use innkeeper_agent::server_requests;
#[doc(inline)]
pub use innkeeper_agent::tool_output;
#[doc(inline)]
pub use innkeeper_agent::tool_search;
#[doc(inline)]
pub use innkeeper_agent::tools;
#[doc(inline)]
pub use innkeeper_agent::transport;

#[cfg(doctest)]
mod pages;

pub mod compat;

/// The names that the specification documents import from the root; see [`compat`].
#[doc(hidden)]
pub use compat::{
    ChatIntegrationConfig, InstrumentationConfig, InterceptorState, LlmProvider, LlmRequest,
    LlmResponse, McpChatIntegration, McpHost, McpHostConfig, OllamaProvider, ProcessedToken,
    PromptTemplate, Result, SafetyConfig, StreamingInterceptor, StreamingMode, async_trait,
};
