//! Error types of the host; each variant names its server, tool or key and stores its source.
//!
//! Reading order: the class of all errors, call errors with their reasons, start, stop and
//! restart errors, display helpers.

mod class;

mod auth;
mod call;
mod protocol;
mod routing;
mod unavailable_reason;

mod connector;
mod restart;
mod start;
mod stop;

pub(crate) mod display;

pub use auth::{AuthError, AuthErrorKind};
pub use call::{CallError, CallErrorKind};
pub use class::ErrorClass;
pub use connector::{ConnectError, ConnectorError};
pub use protocol::ProtocolError;
pub use restart::RestartError;
pub use routing::RoutingError;
pub use start::{ServerFailure, StartError, StartFailureReason, StartPhase};
pub use stop::StopError;
pub use unavailable_reason::{ConnectFailureKind, UnavailableReason};

pub use innkeeper_schema::Violation;

#[cfg(test)]
mod tests;
