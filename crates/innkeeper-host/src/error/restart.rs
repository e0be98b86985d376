//! Why a server was not started again.

use super::ServerFailure;

/// Why a server was not started again.
#[derive(Debug, thiserror::Error)]
pub enum RestartError {
    /// No server of the configuration has this name.
    #[error("no server `{0}`")]
    Unknown(Box<str>),
    /// It was stopped and did not become ready again; it is unavailable.
    #[error(transparent)]
    Failed(Box<ServerFailure>),
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}
