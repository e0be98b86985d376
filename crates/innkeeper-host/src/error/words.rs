//! The parts from which the messages of errors are put together.

use std::fmt;
use std::time::Duration;

use super::{CallError, ProtocolFault, ServerFailure};

/// How many characters of a server's words stand in a message; the error has all of them.
const WORDS: usize = 1_000;

pub(super) struct Listed<'a, T>(pub(super) &'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            write!(f, "{}{item}", if index == 0 { "" } else { "; " })?;
        }
        Ok(())
    }
}

pub(super) struct Meant<'a>(pub(super) &'a Option<Box<str>>);

impl fmt::Display for Meant<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(meant) => write!(f, "; did you mean `{meant}`?"),
            None => Ok(()),
        }
    }
}

pub(super) struct Quoted<'a>(pub(super) &'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() { Ok(()) } else { write!(f, ": {}", self.0) }
    }
}

/// The words of a server, cut where they are long.
pub(super) struct Cut<'a>(pub(super) &'a str);

impl fmt::Display for Cut<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.char_indices().nth(WORDS) {
            None => f.write_str(self.0),
            Some((end, _)) => write!(f, "{}… ({} bytes)", &self.0[..end], self.0.len()),
        }
    }
}

/// A failed call in our own words, for the log: what a server says may repeat arguments.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct OwnWords(String);

impl OwnWords {
    /// `None` where the error has no words of a server's choice.
    pub(crate) fn of(error: &CallError) -> Option<Self> {
        match error {
            CallError::Server { server, item, error } => {
                let code = error.code;
                Some(Self(format!("server `{server}` refused `{item}` (code {code})")))
            }
            CallError::Protocol { source: ProtocolFault::Status { status, .. }, .. } => {
                Some(Self(format!("{error}: it answered with HTTP {status}")))
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

pub(super) struct Tries(pub(super) u32);

impl fmt::Display for Tries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 1 { write!(f, " (after {} attempts)", self.0) } else { Ok(()) }
    }
}

pub(super) struct Seconds(pub(super) Duration);

impl fmt::Display for Seconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} s", self.0.as_secs_f64())
    }
}

pub(super) struct Chain<'a>(pub(super) &'a CallError);

impl fmt::Display for Chain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)?;
        let mut source = std::error::Error::source(self.0);
        while let Some(cause) = source {
            write!(f, ": {cause}")?;
            source = cause.source();
        }
        Ok(())
    }
}

pub(super) struct Failures<'a>(pub(super) &'a [ServerFailure]);

impl fmt::Display for Failures<'_> {
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
