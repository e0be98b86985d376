//! Why a host, or one of its servers, could not be started.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::words::{Chain, Failures, Seconds};
use super::{CallError, ErrorClass, Lost, ProtocolFault};
use crate::config::ConfigError;
use crate::server::process::Exit;
use crate::transport::auth::AuthFault;

/// Why a host could not be started; nothing is left running.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration cannot be used; nothing was started.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// One or more required servers did not become ready; everything started was stopped.
    #[error("{}", Failures(.0))]
    Servers(Vec<ServerFailure>),
}

impl StartError {
    /// The class shared with call errors.
    pub fn class(&self) -> ErrorClass {
        match self {
            Self::Config(_) => ErrorClass::Configuration,
            Self::Servers(_) => ErrorClass::ServerStartup,
        }
    }
}

/// One server that did not become ready.
#[derive(Debug, thiserror::Error)]
#[error("server `{server}` failed {phase}: {reason}")]
pub struct ServerFailure {
    /// The server.
    pub server: Arc<str>,
    /// How far it had come.
    pub phase: Phase,
    /// What went wrong.
    pub reason: StartReason,
    /// The last lines it wrote to stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// How often it was launched.
    pub attempts: u32,
}

impl ServerFailure {
    /// Whether it is for want of a person to sign in.
    pub fn wants_a_person(&self) -> bool {
        let StartReason::Call(error) = &self.reason else { return false };
        let CallError::Unavailable { reason: Lost::NotSignedIn(fault), .. } = &**error else {
            return false;
        };
        **fault == AuthFault::Nobody
    }
}

/// How far a server's start had come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Waiting for the servers it depends on.
    Dependencies,
    /// Creating the process.
    Launch,
    /// The launcher was fetching or installing the server.
    Install,
    /// Agreeing on era and revision.
    Handshake,
    /// Reading tools, prompts and resources.
    Lists,
}

impl fmt::Display for Phase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Dependencies => "while waiting for its dependencies",
            Self::Launch => "at launch",
            Self::Install => "while its launcher was installing it",
            Self::Handshake => "during the handshake",
            Self::Lists => "while its tools were listed",
        })
    }
}

/// What went wrong when a server was started.
#[derive(Debug, thiserror::Error)]
pub enum StartReason {
    /// Its process could not be created.
    #[error("{0}")]
    Spawn(Box<str>),
    /// Its process ended.
    #[error("its process ended with {0}")]
    Exited(Exit),
    /// It did not become ready in time.
    #[error("not ready within {}", Seconds(*.0))]
    TimedOut(Duration),
    /// A request of the handshake failed.
    #[error("{}", Chain(.0))]
    Call(#[source] Box<CallError>),
    /// A server it depends on is not available.
    #[error("it depends on `{0}`, which is not available")]
    Dependency(Arc<str>),
    /// The time for the whole start was over.
    #[error("the start limit of {} for all servers was over", Seconds(*.0))]
    StartLimit(Duration),
}

impl StartReason {
    /// Whether a server that was asked over Streamable HTTP may know the older transport only.
    pub(crate) fn speaks_older_http(&self) -> bool {
        let Self::Call(error) = self else { return false };
        let CallError::Protocol { source, .. } = &**error else { return false };
        matches!(source, ProtocolFault::Status { status: 400 | 404 | 405, .. })
    }

    /// The time for it, if that was over.
    pub(crate) fn late(&self) -> Option<Duration> {
        match self {
            Self::TimedOut(time) | Self::StartLimit(time) => Some(*time),
            Self::Spawn(_) | Self::Exited(_) | Self::Call(_) | Self::Dependency(_) => None,
        }
    }

    /// Whether launching again may help (C2: never for a refusal of versions or a missing program).
    pub(crate) fn may_pass(&self) -> bool {
        match self {
            Self::Exited(_) => true,
            // A connection that is not taken yet or was cut off in the middle says no to nothing.
            Self::Call(error) => match &**error {
                CallError::Unavailable { reason, .. } => {
                    !matches!(reason, Lost::Refused(_) | Lost::NotSignedIn(_))
                }
                _ => false,
            },
            Self::Spawn(_) | Self::TimedOut(_) | Self::Dependency(_) | Self::StartLimit(_) => false,
        }
    }
}
