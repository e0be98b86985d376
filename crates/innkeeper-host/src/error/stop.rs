//! The error of a server stop.

/// The reason why a server was not stopped.
#[derive(Debug, thiserror::Error)]
pub enum StopError {
    /// No server of the configuration has this name.
    #[error("no server `{0}`")]
    UnknownServer(Box<str>),
    /// The host is shutting down or was shut down.
    #[error("the host is shutting down")]
    Shutdown,
}
