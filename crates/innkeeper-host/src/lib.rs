//! An MCP host: starts servers, reads their lists, routes calls, handles server failures, and
//! leaves no process behind.
//!
//! The modules stand from the bottom up: a module uses only modules before it.

mod backoff;
mod deadline;
mod lifecycle;
mod metadata_address;
mod rate_limiter;
mod tasks;
mod text;

mod remote_session;

mod stderr;

pub mod audit;
pub mod config;

mod guard;

pub mod error;
pub mod event;

mod metrics;

mod arguments;
mod cache;
pub mod callback;
mod schema;
mod telemetry;

mod retry;
mod session;
mod transport;

mod connection;

pub mod catalog;

pub mod lock;

mod own_files;

mod server;
pub mod trust;

mod registry;

pub mod call;
pub mod shutdown;
mod supervise;

mod start;

pub mod reload;

pub mod host;

#[cfg(test)]
#[cfg(unix)]
mod simulation;

pub use innkeeper_config::name::split_name;
pub use innkeeper_config::{Config, ConfigError, Environment};
#[cfg(target_os = "linux")]
pub use innkeeper_process::peer;
pub use innkeeper_process::{
    EmbeddedSupervisor, ExitStatus, ProcessContainment, ProcessLimit, ProcessTable, ProcessUsage,
    Supervisor, host_process, inherited_environment, shim,
};

pub use cache::CacheScope;
pub use call::{
    Arguments, CallOptions, CompletionReference, RemoteClient, RoundTripMode,
    StructuredContentError, TaskMode, ToolResult,
};
pub use callback::{
    Callback, CallbackCapabilities, CallbackError, CallbackFuture, CallbackResult, ServerRequest,
    to_callback_result,
};
pub use catalog::{
    Catalog, CatalogPrompt, CatalogResource, CatalogServer, CatalogTemplate, CatalogTool,
    SecurityWarning, UnavailableCatalogServer, UnavailableCatalogTool,
};

pub use connection::list_ttls::{ListCacheHint, ListCacheHints};
pub use connection::listing::{Definition, MissingList, ServerListing};
pub use connection::log_level::LogLevel;
pub use connection::result_type::ResultType;
pub use error::{
    AuthError, AuthErrorKind, CallError, CallErrorKind, ConnectError, ErrorClass, RestartError,
    StartError, StopError,
};
pub use event::{CallReference, HostEvent};
pub use guard::{Finding, FindingKind, find_credentials};
pub use host::{Host, HostBuilder, RunnerCheck, ServerStatus};
pub use lifecycle::ServerState;
pub use lock::{ChangeClass, Lock, LockError, PinChange, PinPolicy};
pub use metrics::{CacheMetrics, CallRates, LatencySummary, ServerMetrics};
pub use own_files::writable_own_files;
pub use reload::{ReloadError, ReloadOptions, ReloadReport};
pub use remote_session::{RemoteSession, RemoteSessions};
pub use server::launch::StartSlots;
pub use server::{ConnectFuture, Connector, ServerStream};
pub use session::{CallHold, CallNotification, Progress, SendCheck};
pub use shutdown::ShutdownReport;
pub use telemetry::{ServedOutcome, ServedRequest, ServerSpan, Telemetry, TraceContext};
pub use text::{display_safe, is_deceptive_char};
pub use transport::auth::{
    AuthorizationRequest, Challenge, ProtectedResource, RedirectFuture, TokenFuture, TokenProvider,
    TokenStore, UserAgent,
};
#[doc(hidden)]
pub use transport::{HttpClientError, http_client};
pub use trust::{
    GatewaySpec, LaunchProgram, LaunchSpec, RemoteTarget, TrustDecisions, TrustPolicy,
};

#[cfg(any(test, fuzzing))]
#[doc(hidden)]
pub use transport::fuzz_http_response;
