//! An MCP host: starts servers, reads their lists, routes calls, handles server failures, and
//! leaves no process behind.
//!
//! Reading order of the modules: the host, the steps of one call, the catalog, one server from its
//! process to its connection, start and stop of all servers, the configuration.

pub mod host;

mod arguments;
pub mod audit;
mod backoff;
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

mod restart;
pub mod shutdown;
mod start;

pub mod reload;
pub mod trust;

pub mod config;
pub mod error;
pub mod event;
mod ledger;
pub mod lock;
mod metrics;
mod tasks;
mod telemetry;
mod text;
mod transport;

#[cfg(test)]
#[cfg(unix)]
mod simulation;

pub use call::{CallOptions, CompletionReference, ToolResult};
pub use callback::{Callback, CallbackCapabilities, CallbackError, ServerRequest};
pub use catalog::{Catalog, CatalogServer, SecurityWarning};
pub use config::{Config, ConfigError, Environment};
pub use error::{CallError, CallErrorKind, ErrorClass, RestartError, StartError};
pub use event::HostEvent;
pub use guard::{Finding, FindingKind};
pub use host::{Host, HostBuilder, ServerStatus};
pub use lifecycle::ServerState;
pub use lock::{ChangeClass, Lock, LockError, PinChange, PinPolicy};
pub use metrics::ServerMetrics;
pub use name::split_name;
pub use reload::{ReloadError, ReloadOptions, ReloadReport};
pub use server::handshake::ClientInfo;
pub use server::listing::{Definition, ServerListing};
pub use server::process::{ExitStatus, ProcessContainment, ProcessLimit, Supervisor};
pub use server::session::Progress;
pub use shutdown::ShutdownReport;
pub use telemetry::Telemetry;
pub use text::{display_safe, is_deceptive_char};
pub use transport::auth::{
    AuthError, AuthErrorKind, AuthorizationRequest, Challenge, ProtectedResource, RedirectFuture,
    TokenFuture, TokenProvider, TokenStore, UserAgent,
};
pub use transport::{HttpClientError, http_client};
pub use trust::{LaunchSpec, TrustDecisions, TrustPolicy};

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use transport::fuzz_http_response;
