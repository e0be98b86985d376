//! The error of a host or server start.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::ConfigError;
use innkeeper_process::ExitStatus;
use serde::Serialize;

use super::display::{ErrorChain, FailureList, Seconds};
use super::{
    AuthErrorKind, CallError, ConnectorError, ErrorClass, ProtocolError, UnavailableReason,
};

/// The reason why a host could not start; no server is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid; no server was started.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// One or more required servers did not become ready; all started servers were stopped.
    #[error("{}", FailureList(.0))]
    Servers(Vec<ServerFailure>),
}

impl StartError {
    /// Returns the class, which call errors share.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_) => ErrorClass::Configuration,
            Self::Servers(_) => ErrorClass::ServerStartup,
        }
    }
}

/// The failed start of one server.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}` failed {phase}: {reason}")]
pub struct ServerFailure {
    /// Name of the server.
    pub server: Arc<str>,
    /// Phase of the start that failed.
    pub phase: StartPhase,
    /// Reason of the failure.
    pub reason: StartFailureReason,
    /// Last lines on stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// Number of launches.
    pub attempts: u32,
}

impl ServerFailure {
    /// Returns whether the start failed because a user must sign in.
    pub fn needs_user_sign_in(&self) -> bool {
        let StartFailureReason::Call(error) = &self.reason else { return false };
        let CallError::Unavailable { reason: UnavailableReason::Unauthorized(auth_error), .. } =
            &**error
        else {
            return false;
        };
        **auth_error == AuthErrorKind::NoUserAgent
    }
}

/// The phase of a server start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StartPhase {
    /// Waiting for dependencies.
    Dependencies,
    /// Creating the process or the connection.
    Launch,
    /// Downloading or installing the server with its package runner.
    Install,
    /// Negotiating era and revision.
    Handshake,
    /// Listing tools, prompts and resources.
    Lists,
}

impl fmt::Display for StartPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dependencies => "while waiting for dependencies",
            Self::Launch => "at launch",
            Self::Install => "during installation",
            Self::Handshake => "during the handshake",
            Self::Lists => "while listing tools",
        })
    }
}

/// The reason why a server start failed.
#[derive(Debug, thiserror::Error)]
pub enum StartFailureReason {
    /// The process could not be created.
    #[error("{0}")]
    Spawn(Box<str>),
    /// The host has no stream to an in-process server.
    #[error("{}", ErrorChain(.0))]
    Connector(#[source] ConnectorError),
    /// The process ended.
    #[error("process ended with {0}")]
    Exited(ExitStatus),
    /// The server did not become ready in time.
    #[error("not ready within {}", Seconds(*.0))]
    TimedOut(Duration),
    /// A request of the handshake failed.
    #[error("{}", ErrorChain(.0))]
    Call(#[source] Box<CallError>),
    /// A dependency is unavailable.
    #[error("dependency `{0}` is unavailable")]
    Dependency(Arc<str>),
    /// The start timeout for all servers expired.
    #[error("`startTimeout` ({}) expired", Seconds(*.0))]
    StartTimeout(Duration),
}

impl StartFailureReason {
    /// Returns whether the server may support only the older HTTP transport.
    pub(crate) fn suggests_legacy_http(&self) -> bool {
        let Self::Call(error) = self else { return false };
        let CallError::Protocol { source, .. } = &**error else { return false };
        matches!(source, ProtocolError::HttpStatus { status: 400 | 404 | 405, .. })
    }

    /// Returns the expired timeout, if the start failed because of one.
    pub(crate) fn elapsed_timeout(&self) -> Option<Duration> {
        match self {
            Self::TimedOut(time) | Self::StartTimeout(time) => Some(*time),
            Self::Spawn(_)
            | Self::Connector(_)
            | Self::Exited(_)
            | Self::Call(_)
            | Self::Dependency(_) => None,
        }
    }

    /// Returns whether another launch may help (C2: never after a version mismatch or a missing
    /// program).
    pub(crate) fn is_transient(&self) -> bool {
        match self {
            Self::Exited(_) | Self::Connector(ConnectorError::Failed(_)) => true,
            // A connection that was not accepted yet or was cut off is no rejection.
            Self::Call(error) => match &**error {
                CallError::Unavailable { reason, .. } => !matches!(
                    reason,
                    UnavailableReason::ConnectionRejected(_) | UnavailableReason::Unauthorized(_)
                ),
                _ => false,
            },
            Self::Spawn(_)
            | Self::Connector(
                ConnectorError::Panicked | ConnectorError::AlreadyUsed | ConnectorError::Missing,
            )
            | Self::TimedOut(_)
            | Self::Dependency(_)
            | Self::StartTimeout(_) => false,
        }
    }
}
