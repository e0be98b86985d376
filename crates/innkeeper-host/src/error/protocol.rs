//! Protocol violations in responses.

use std::time::Duration;

use innkeeper_protocol::{MalformedMessage, ViewError};

use super::display::{OptionalDetail, Seconds};

/// A protocol violation in a response.
#[derive(Debug, thiserror::Error)]
pub enum ProtocolError {
    /// The message is not a JSON-RPC response.
    #[error(transparent)]
    Malformed(#[from] MalformedMessage),
    /// The result does not have the structure that MCP requires.
    #[error("invalid result")]
    InvalidResult(#[from] ViewError),
    /// The response is longer than a message may be.
    #[error("the response is longer than {limit} bytes")]
    TooLarge {
        /// The limit, in bytes.
        limit: usize,
    },
    /// The server uses a protocol revision that this host does not support.
    #[error("unsupported protocol revision `{requested}`, expected {supported}")]
    UnsupportedRevision {
        /// Revision in the server's response.
        requested: Box<str>,
        /// Supported revisions.
        supported: Box<str>,
    },
    /// The request cannot be serialized as JSON.
    #[error("cannot serialize the request: {0}")]
    Serialization(Box<str>),
    /// The server requested input too many times in one call.
    #[error("exceeded {limit} round trips")]
    TooManyRoundTrips {
        /// Maximum number of round trips in one call.
        limit: u32,
    },
    /// The server requested input for the call, and the host or the application rejected the
    /// request.
    #[error("the request `{method}` of the server is rejected: {reason}")]
    InputDenied {
        /// Requested method.
        method: Box<str>,
        /// The reason why the request is rejected.
        reason: Box<str>,
    },
    /// The response has an unexpected `resultType`.
    #[error("unexpected `resultType` {0}")]
    UnexpectedResultType(Box<str>),
    /// The task of the call ended without a result.
    #[error("task is `{status}` without a result{}", OptionalDetail(message))]
    NoTaskResult {
        /// Terminal status of the task.
        status: &'static str,
        /// Status message of the server, escaped for display; empty if there is none.
        message: Box<str>,
    },
    /// The task of the call expired before its result was known.
    #[error("task expired after {}", Seconds(*ttl))]
    TaskExpired {
        /// Lifetime of the task at the server.
        ttl: Duration,
    },
    /// An HTTP error response without JSON-RPC.
    #[error("HTTP status {status}{}", OptionalDetail(body))]
    HttpStatus {
        /// HTTP status code.
        status: u16,
        /// Start of the response body, escaped for display; empty if there is none.
        body: Box<str>,
    },
    /// An HTTP response with a content type that MCP does not define.
    #[error("unexpected content type `{0}`, expected JSON or an event stream")]
    UnexpectedContentType(Box<str>),
    /// An HTTP response without the JSON-RPC response to the request.
    #[error("HTTP response without the JSON-RPC response")]
    MissingResponse,
}
