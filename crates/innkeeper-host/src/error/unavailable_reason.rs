//! The reason why a server is unavailable.

use std::fmt;
use std::time::Duration;

use innkeeper_process::ExitStatus;

use super::AuthErrorKind;
use super::display::{BodyWords, OptionalDetail, Seconds};

/// The kind of a connection that could not be established.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectFailureKind {
    /// No program listens on the port, or no socket exists.
    Refused,
    /// The host name has no address.
    NameNotFound,
    /// The certificate of the server is not trusted.
    Certificate,
    /// Another failure, for example a timeout.
    Other,
}

/// The reason why a server is unavailable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnavailableReason {
    /// The process ended.
    Exited {
        /// Exit status.
        status: ExitStatus,
        /// The line of stderr that says why, escaped for display; empty if there is none, or the
        /// process ended by a signal.
        stderr_line: Box<str>,
    },
    /// The server closed its output while its process was running, or closed its connection.
    ClosedOutput,
    /// Writing to the server's input failed.
    ClosedInput,
    /// The limit of consecutive timeouts was reached (`unavailableAfterTimeouts`). The process
    /// keeps running.
    Unresponsive {
        /// Number of consecutive timeouts.
        calls: u32,
    },
    /// The server never became ready.
    NotStarted(Box<str>),
    /// The entry of the server in the configuration has errors.
    InvalidConfiguration(Box<str>),
    /// The server is still starting.
    Starting {
        /// Why it was unavailable before, if the host starts it again by itself.
        after: Option<Box<Self>>,
    },
    /// The host stopped the server, or is shutting down.
    Shutdown,
    /// Results that the application has not consumed fill the server's memory budget.
    ResultBufferFull,
    /// The server sent too many invalid messages in a row, or lines without an end.
    InvalidMessages,
    /// The connection could not be established.
    Unreachable {
        /// Kind of the failure.
        kind: ConnectFailureKind,
        /// Causes, escaped for display.
        cause: Box<str>,
    },
    /// The connection was lost before the response.
    ConnectionLost(Box<str>),
    /// The server rejected the connection, or does not support the requested protocol.
    ConnectionRejected(Box<str>),
    /// The server requires a token, and no available token is valid.
    Unauthorized(Box<AuthErrorKind>),
    /// The server or a proxy accepts no requests now: HTTP 429 or 503; or a proxy got no response of
    /// the server: HTTP 502.
    Busy {
        /// HTTP status code.
        status: u16,
        /// Requested wait (`Retry-After`).
        retry_after: Option<Duration>,
        /// Start of the response body, escaped for display; empty if there is none.
        body: Box<str>,
    },
    /// The application did not permit to send the request ([`SendCheck`](crate::SendCheck)).
    NotSent(Box<str>),
}

impl UnavailableReason {
    /// Returns the name in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Exited { .. } => "exited",
            Self::ClosedOutput => "closed_output",
            Self::ClosedInput => "closed_input",
            Self::Unresponsive { .. } => "silent",
            Self::NotStarted(_) => "not_started",
            Self::InvalidConfiguration(_) => "invalid_configuration",
            Self::Starting { .. } => "starting",
            Self::Shutdown => "shutdown",
            Self::ResultBufferFull => "results_not_taken",
            Self::InvalidMessages => "noise",
            Self::Unreachable { .. } => "unreachable",
            Self::ConnectionLost(_) => "broken",
            Self::ConnectionRejected(_) => "refused",
            Self::Unauthorized(_) => "not_signed_in",
            Self::Busy { .. } => "busy",
            Self::NotSent(_) => "not_sent",
        }
    }
}

impl UnavailableReason {
    /// Returns the reason without text of the server, which may repeat arguments.
    pub fn without_server_text(&self) -> Self {
        let mut reason = self.clone();
        if let Self::Busy { body: text, .. } | Self::Exited { stderr_line: text, .. } = &mut reason
        {
            *text = "".into();
        } else if let Self::Starting { after: Some(before) } = &mut reason {
            **before = before.without_server_text();
        }
        reason
    }

    /// Returns whether the server failed, so that a restart can help.
    pub(crate) fn is_failure(&self) -> bool {
        match self {
            Self::Exited { .. }
            | Self::ClosedOutput
            | Self::ClosedInput
            | Self::InvalidMessages
            | Self::Unreachable { .. }
            | Self::ConnectionLost(_)
            | Self::ConnectionRejected(_)
            | Self::Busy { .. } => true,
            // The server may still be working, or is not the cause.
            Self::Unresponsive { .. }
            | Self::NotStarted(_)
            | Self::InvalidConfiguration(_)
            | Self::Starting { .. }
            | Self::Shutdown
            | Self::Unauthorized(_)
            | Self::ResultBufferFull
            | Self::NotSent(_) => false,
        }
    }
}

impl fmt::Display for UnavailableReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited { status, stderr_line } => {
                write!(f, "process ended with {status}{}", OptionalDetail(stderr_line))
            }
            Self::ClosedOutput => f.write_str("the server closed its output"),
            Self::ClosedInput => f.write_str("the server closed its input"),
            Self::Unresponsive { calls: 1 } => f.write_str("a call timed out"),
            Self::Unresponsive { calls } => {
                write!(f, "{calls} consecutive calls timed out")
            }
            Self::NotStarted(reason) => write!(f, "start failed: {reason}"),
            Self::InvalidConfiguration(problems) => {
                write!(f, "invalid configuration: {problems}")
            }
            Self::Starting { after: None } => f.write_str("still starting"),
            Self::Starting { after: Some(reason) } => write!(f, "starting again; before: {reason}"),
            Self::Shutdown => f.write_str("the host stopped the server"),
            Self::ResultBufferFull => {
                f.write_str("result buffer full: earlier results not consumed")
            }
            Self::InvalidMessages => f.write_str("too many invalid messages"),
            Self::Unreachable { cause, .. } => write!(f, "cannot connect: {cause}"),
            Self::ConnectionLost(cause) => write!(f, "connection lost: {cause}"),
            Self::ConnectionRejected(cause) => write!(f, "connection rejected: {cause}"),
            Self::Unauthorized(error) => error.fmt(f),
            Self::Busy { status, retry_after, body } => {
                match status {
                    502 => write!(f, "no response through the proxy (HTTP {status})")?,
                    _ => write!(f, "busy (HTTP {status})")?,
                }
                if let Some(after) = retry_after {
                    write!(f, ", retry after {}", Seconds(*after))?;
                }
                BodyWords(body).fmt(f)
            }
            Self::NotSent(reason) => write!(f, "the request was not sent: {reason}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_server_has_failed_and_a_server_that_may_still_work_has_not() {
        let lost = UnavailableReason::ConnectionLost("reset".into());
        let busy = UnavailableReason::Busy { status: 503, retry_after: None, body: "".into() };
        for reason in [lost, busy, UnavailableReason::ClosedOutput, UnavailableReason::ClosedInput]
        {
            assert!(reason.is_failure(), "{reason}");
        }
        let unresponsive = UnavailableReason::Unresponsive { calls: 1 };
        let unauthorized = UnavailableReason::Unauthorized(Box::new(AuthErrorKind::NoUserAgent));
        for reason in [unresponsive, unauthorized, UnavailableReason::Shutdown] {
            assert!(!reason.is_failure(), "{reason}");
        }
    }
}
