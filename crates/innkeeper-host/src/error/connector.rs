//! The error of a connector.

use std::error::Error;

/// The error that a connector of the application returns.
pub type ConnectError = Box<dyn Error + Send + Sync>;

/// The reason why the host has no stream to an in-process server.
#[derive(Debug, thiserror::Error)]
pub enum ConnectorError {
    /// The connector returned an error.
    #[error("the connector failed")]
    Failed(#[source] ConnectError),
    /// The connector panicked.
    #[error("the connector panicked")]
    Panicked,
    /// The stream of `HostBuilder::connect` was used by an earlier start.
    #[error("the stream was used by an earlier start; `HostBuilder::connector` allows restarts")]
    AlreadyUsed,
    /// The application has no connector with the name of the server.
    #[error("the application has no connector for this server")]
    Missing,
}
