//! Why a server cannot answer any more.

use std::fmt;
use std::time::Duration;

use super::words::Seconds;
use crate::server::process::Exit;
use crate::transport::auth::AuthFault;

/// Why a server cannot answer any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Its process ended.
    Exited(Exit),
    /// It closed its output and its process still ran.
    ClosedOutput,
    /// Its input could not be written to.
    ClosedInput,
    /// It did not answer in time so many calls in a row (`unavailableAfterTimeouts`). Its process
    /// runs on.
    Silent {
        /// The calls.
        calls: u32,
    },
    /// It never became ready.
    NotStarted(Box<str>),
    /// It still starts.
    Starting,
    /// The host is shutting down or was shut down.
    Shutdown,
    /// Results that nobody takes fill the memory set aside for this server.
    ResultsNotTaken,
    /// It writes what nobody can read: so many useless lines in a row, or lines without end.
    Noise,
    /// No connection to its address could be made.
    Unreachable(Box<str>),
    /// The connection broke before the answer came.
    Broken(Box<str>),
    /// It turned the connection down, or does not speak what it was asked for.
    Refused(Box<str>),
    /// It wants a token, and there is none that it takes.
    NotSignedIn(Box<AuthFault>),
    /// It, or what stands before it, takes no requests now: HTTP 429, 502 or 503.
    Busy {
        /// The status of the HTTP answer.
        status: u16,
        /// How long it asks to be left alone (`Retry-After`).
        retry_after: Option<Duration>,
    },
}

impl Lost {
    /// The word used in metrics.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Exited(_) => "exited",
            Self::ClosedOutput => "closed_output",
            Self::ClosedInput => "closed_input",
            Self::Silent { .. } => "silent",
            Self::NotStarted(_) => "not_started",
            Self::Starting => "starting",
            Self::Shutdown => "shutdown",
            Self::ResultsNotTaken => "results_not_taken",
            Self::Noise => "noise",
            Self::Unreachable(_) => "unreachable",
            Self::Broken(_) => "broken",
            Self::Refused(_) => "refused",
            Self::NotSignedIn(_) => "not_signed_in",
            Self::Busy { .. } => "busy",
        }
    }
}

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(exit) => write!(f, "its process ended with {exit}"),
            Self::ClosedOutput => f.write_str("it closed its output"),
            Self::ClosedInput => f.write_str("it closed its input"),
            Self::Silent { calls: 1 } => f.write_str("it did not answer a call in time"),
            Self::Silent { calls } => {
                write!(f, "it did not answer {calls} calls in a row in time")
            }
            Self::NotStarted(reason) => write!(f, "it did not start: {reason}"),
            Self::Starting => f.write_str("it is still starting"),
            Self::Shutdown => f.write_str("the host is shutting down"),
            Self::ResultsNotTaken => f.write_str("earlier results have not been taken"),
            Self::Noise => f.write_str("it writes too much that is no message"),
            Self::Unreachable(why) => write!(f, "it cannot be reached: {why}"),
            Self::Broken(why) => write!(f, "the connection broke: {why}"),
            Self::Refused(why) => write!(f, "it refuses the connection: {why}"),
            Self::NotSignedIn(fault) => fault.fmt(f),
            Self::Busy { status, retry_after: None } => write!(f, "it is busy (HTTP {status})"),
            Self::Busy { status, retry_after: Some(after) } => {
                write!(f, "it is busy (HTTP {status}) and asks to wait {}", Seconds(*after))
            }
        }
    }
}
