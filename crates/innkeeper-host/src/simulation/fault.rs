//! The faults that a simulated server injects into requests.

/// A fault of a server in the handling of one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum InjectedFault {
    /// Responds late, but within the timeout.
    Delayed,
    /// Sends no response.
    NoResponse,
    /// Responds after the timeout.
    AfterTimeout,
    /// Responds twice.
    Duplicate,
    /// Responds to an unknown id, then to the request.
    UnknownId,
    /// Sends a line that is not a message, then responds.
    Garbage,
    /// Sends a response without result and error.
    Malformed,
    /// Sends invalid UTF-8, then responds.
    InvalidUtf8,
    /// Sends the response in many small chunks.
    Chunked,
    /// Sends several responses at once, the latest first.
    Reordered,
    /// Exits before the tool runs.
    CrashBefore,
    /// Runs the tool and exits without a response.
    CrashAfter,
    /// Responds and stops reading.
    StopsReading,
    /// Closes its output and keeps running.
    ClosesOutput,
    /// Sends many `list_changed` notifications, then responds.
    ListChangedStorm,
    /// Sends a response that exceeds the line limit.
    TooLarge,
    /// Responds with an error.
    Error,
    /// Sends progress for longer than the timeout, then responds.
    Progress,
    /// Sends a request to the application, then responds.
    ServerRequest,
    /// Responds with a tool error.
    ToolError,
    /// The request does not reach the remote server, and the transport reports it.
    NotDelivered,
    /// The connection fails for this request after the request reached the server.
    ConnectionBroken,
    /// Sends invalid lines until the host closes the connection.
    Flood,
}

impl InjectedFault {
    /// All faults. Faults that end a server are rare.
    const ALL: [Self; 32] = [
        Self::Delayed,
        Self::Delayed,
        Self::NoResponse,
        Self::AfterTimeout,
        Self::AfterTimeout,
        Self::Duplicate,
        Self::Duplicate,
        Self::UnknownId,
        Self::UnknownId,
        Self::Garbage,
        Self::Garbage,
        Self::Malformed,
        Self::InvalidUtf8,
        Self::InvalidUtf8,
        Self::Chunked,
        Self::Chunked,
        Self::Reordered,
        Self::Reordered,
        Self::CrashBefore,
        Self::CrashAfter,
        Self::StopsReading,
        Self::ClosesOutput,
        Self::ListChangedStorm,
        Self::TooLarge,
        Self::Error,
        Self::Progress,
        Self::ServerRequest,
        Self::ToolError,
        Self::NotDelivered,
        Self::NotDelivered,
        Self::ConnectionBroken,
        Self::Flood,
    ];

    pub(super) fn pick(rng: &mut fastrand::Rng) -> Self {
        Self::ALL[rng.usize(..Self::ALL.len())]
    }
}
