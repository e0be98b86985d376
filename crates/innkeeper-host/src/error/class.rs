//! The class of an error, one list for calls, starts and configurations.

use serde::Serialize;

/// The class of an error, the same in every language and edge (TR6.1 and routing).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ErrorClass {
    /// The configuration cannot be used; nothing was started.
    Configuration,
    /// A required server did not become ready; everything started was stopped.
    ServerStartup,
    /// The server is not there (any more); the request was not sent or has no answer.
    ServerUnavailable,
    /// The arguments do not fit; nothing was sent.
    Validation,
    /// No answer in time; the server was told to stop working on it.
    Timeout,
    /// The server's answer breaks the protocol.
    Protocol,
    /// No server could be determined from the name.
    Routing,
    /// The server answered with a JSON-RPC error.
    Server,
    /// The server answered, and the guard keeps the answer back.
    Withheld,
}
