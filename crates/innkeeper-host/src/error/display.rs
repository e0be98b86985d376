//! Formatting helpers for error messages.

use std::fmt;
use std::time::Duration;

use super::{CallError, ProtocolError, ServerFailure, UnavailableReason};

/// Maximum number of characters of a server's text in a message; the error stores the full text.
const MAX_MESSAGE_CHARS: usize = 1_000;

pub(super) struct JoinedList<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for JoinedList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

pub(super) struct Suggestion<'a>(pub(super) &'a Option<Box<str>>);

impl fmt::Display for Suggestion<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(suggestion) => write!(f, "; did you mean `{suggestion}`?"),
            None => Ok(()),
        }
    }
}

pub(super) struct OptionalDetail<'a>(pub(super) &'a str);

impl fmt::Display for OptionalDetail<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// The start of an HTTP body after a colon; empty for a page, whose first words say nothing.
pub(super) struct BodyWords<'a>(pub(super) &'a str);

impl fmt::Display for BodyWords<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_empty = self.0 == "{}" || self.0.starts_with('<');
        OptionalDetail(if is_empty { "" } else { self.0 }).fmt(f)
    }
}

/// Text of a server, truncated for display.
pub(super) struct TruncatedMessage<'a>(pub(super) &'a str);

impl fmt::Display for TruncatedMessage<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(MAX_MESSAGE_CHARS) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}… ({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

/// A call error without the server's text, for the log: that text may repeat arguments.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct RedactedCallError(String);

impl RedactedCallError {
    /// Returns `None` if the error contains no text of the server.
    pub(crate) fn from_call_error(error: &CallError) -> Option<Self> {
        match error {
            CallError::Server { server, item, error } => {
                let code = error.code;
                Some(Self(format!(
                    "server `{server}` returned an error for `{item}` (code {code})"
                )))
            }
            CallError::Protocol { source: ProtocolError::HttpStatus { status, .. }, .. } => {
                Some(Self(format!("{error}: HTTP status {status}")))
            }
            CallError::Unavailable {
                server,
                reason:
                    reason @ (UnavailableReason::Busy { .. }
                    | UnavailableReason::Exited { .. }
                    | UnavailableReason::Starting { .. }),
                may_have_run,
                attempts,
            } => {
                let error = CallError::Unavailable {
                    server: server.clone(),
                    reason: reason.without_server_text(),
                    may_have_run: *may_have_run,
                    attempts: *attempts,
                };
                Some(Self(error.to_string()))
            }
            CallError::Routing(_)
            | CallError::Validation { .. }
            | CallError::Unavailable { .. }
            | CallError::Timeout { .. }
            | CallError::Protocol { .. }
            | CallError::Withheld { .. } => None,
        }
    }
}

pub(super) struct AttemptCount(pub(super) u32);

impl fmt::Display for AttemptCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " (after {} attempts)", self.0) } else { Ok(()) }
    }
}

/// A timeout, and whether it is the server's total one.
pub(super) struct TimeoutLimit(pub(super) Duration, pub(super) bool);

impl fmt::Display for TimeoutLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(timeout, is_total) = *self;
        write!(f, "{}{}", Seconds(timeout), if is_total { " (`maxTotalTimeout`)" } else { "" })
    }
}

pub(super) struct Seconds(pub(super) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

/// An error with all its causes.
pub(super) struct ErrorChain<'a>(pub(super) &'a dyn std::error::Error);

impl fmt::Display for ErrorChain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = self.0.source();
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

pub(super) struct FailureList<'a>(pub(super) &'a [ServerFailure]);

impl fmt::Display for FailureList<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, failure) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{failure}")?;
            if failure.attempts > 1 {
                write!(f, " (after {} launches)", failure.attempts)?;
            }
            for line in failure.stderr.lines() {
                write!(f, "\n    | {line}")?;
            }
        }
        Ok(())
    }
}
