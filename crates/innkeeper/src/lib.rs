//! Innkeeper: the MCP host for applications.
//!
//! An application hands over an `mcp.json`. The host starts those servers in dependency order,
//! learns their tools, prompts and resources, routes calls to them, survives their failures, and
//! closes without leaving a process behind.
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
//! The library is a guest: it installs no logger, no signal handler and no panic hook, and reads
//! the environment only where [`Config::from_file`] and [`Environment::of_process`] say so.
//!
//! # Process trees
//!
//! Each server runs under a small supervising process, which ends the server's whole tree when the
//! host asks for it, when the server exits, and when the host is killed. It is found as
//! `innkeeper-shim` beside the application; an application that calls
//! [`shim::run_if_requested`] first in `main` can be its own supervisor
//! ([`Supervisor::this_program`]). Without either, servers get a process group, which daemons can
//! leave; [`Host::status`] tells which it is.

pub mod compat;

pub use innkeeper_host::{
    CallError, CallKind, CallOptions, Catalog, CatalogServer, Change, ChangeClass, ClientInfo,
    Config, ConfigError, Decisions, Environment, ErrorClass, Event, Exit, Host, HostBuilder,
    Isolation, LaunchSpec, Lock, LockError, Offer, Offered, PinPolicy, Progress, ReloadError,
    ReloadOptions, ReloadReport, RestartError, ServerMetrics, ServerState, ServerStatus,
    ShutdownReport, StartError, Supervisor, Telemetry, ToolResult, Trust, display_safe, split_name,
};

/// A model, tools that it may call, and the conversation with it.
pub use innkeeper_agent::agent::{self, Agent};
/// Tools for a chat application's model, while its text streams.
pub use innkeeper_agent::chat;
/// What was said between a person, a model and the tools.
pub use innkeeper_agent::conversation;
/// Models behind one trait.
pub use innkeeper_agent::provider;
/// What a model may do.
pub use innkeeper_agent::safety;
/// Who runs the tools that a model calls.
pub use innkeeper_agent::tools;
/// Models over HTTP.
pub use innkeeper_agent::transport;
/// The rules of one message, without I/O.
pub use innkeeper_agent::turn;
/// The lines of the log that matter to security.
pub use innkeeper_host::audit;
/// The configuration in detail: servers, transports, problems with their places.
pub use innkeeper_host::config;
/// Errors in detail.
pub use innkeeper_host::error;
/// What a host tells while it runs.
pub use innkeeper_host::event;
/// Pins in detail: what a lock holds and how locks differ.
pub use innkeeper_host::lock;
/// How another configuration is taken up.
pub use innkeeper_host::reload;
/// How an application becomes its own supervisor.
pub use innkeeper_host::shim;
/// How servers were stopped.
pub use innkeeper_host::shutdown;
/// Whose word a server is started on.
pub use innkeeper_host::trust;
/// The protocol without I/O, and lenient views of what servers send.
pub use innkeeper_protocol as protocol;
/// A model's text without I/O: calls in it, found, repaired and checked.
pub use innkeeper_toolcall as toolcall;
