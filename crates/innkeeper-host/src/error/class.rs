//! The error class of calls, starts and configurations.

use serde::Serialize;

/// The class of an error, the same in every language and interface (TR6.1 and routing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The configuration is invalid; no server was started.
    Configuration,
    /// A required server did not become ready; all started servers were stopped.
    ServerStartup,
    /// The server is unavailable; the request was not sent or has no response.
    ServerUnavailable,
    /// The arguments are invalid; nothing was sent.
    Validation,
    /// No response in time; the host sent a cancellation to the server.
    Timeout,
    /// The response violates the protocol.
    Protocol,
    /// The name does not determine a server.
    Routing,
    /// The server returned a JSON-RPC error.
    Server,
    /// The guard withheld the server's response.
    Withheld,
}
