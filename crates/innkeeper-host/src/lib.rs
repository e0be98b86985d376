//! Hosts MCP servers: starts them, learns what they offer, routes calls to them, survives their
//! failures, and leaves no process behind.
//!
//! In reading order: the face, the life of one call, the catalog it is looked up in, one server
//! from its process to its connection, how all of them start and stop, the configuration.

pub mod host;

mod arguments;
pub mod audit;
mod cache;
pub mod call;
pub mod callback;
pub mod catalog;
mod guard;
pub(crate) mod name;
mod registry;
mod retry;
mod schema;

pub(crate) mod lifecycle;
pub(crate) mod server;
pub mod shim;

mod revive;
pub mod shutdown;
mod start;

pub mod reload;
pub mod trust;

pub mod config;
pub mod error;
pub mod event;
mod ledger;
pub mod lock;
mod measure;
mod tasks;
mod telemetry;
mod text;
mod transport;

#[cfg(test)]
#[cfg(unix)]
mod simulation;

pub use call::{CallOptions, CompletionOf, ToolResult};
pub use callback::{Answers, Callback, Refusal, ServerRequest};
pub use catalog::{Catalog, CatalogServer, Doubt};
pub use config::{Config, ConfigError, Environment};
pub use error::{CallError, CallKind, ErrorClass, RestartError, StartError};
pub use event::Event;
pub use guard::{Finding, FindingKind};
pub use host::{Host, HostBuilder, ServerStatus};
pub use lifecycle::ServerState;
pub use lock::{Change, ChangeClass, Lock, LockError, PinPolicy};
pub use measure::ServerMetrics;
pub use name::split as split_name;
pub use reload::{ReloadError, ReloadOptions, ReloadReport};
pub use server::connect::ClientInfo;
pub use server::offer::{Offer, Offered};
pub use server::process::{Exit, Isolation, Limit, Supervisor};
pub use server::session::Progress;
pub use shutdown::ShutdownReport;
pub use telemetry::Telemetry;
pub use text::{deceives, display_safe};
pub use transport::auth::{
    AuthError, AuthFault, Authorize, Authorizing, Challenge, Protected, TokenStore, UserAgent,
    Visit, Visiting,
};
pub use transport::{HttpClientError, http_client};
pub use trust::{Decisions, LaunchSpec, Trust};

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use transport::fuzz_http_answer;
