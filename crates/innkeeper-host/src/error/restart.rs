//! The error of a server restart.

use super::ServerFailure;

/// The reason why a server was not restarted.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// No server of the configuration has this name.
    #[error("no server `{0}`")]
    UnknownServer(Box<str>),
    /// The server was stopped and did not become ready again; it is unavailable.
    #[error(transparent)]
    Failed(Box<ServerFailure>),
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}
