//! How a server's main process ended.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It used up what its configuration allows of this, and was ended for it.
    OverLimit(Limit),
    /// Its supervisor was killed, so how it ended is not known; what it left was ended, too.
    Unsupervised,
    /// It ended, and something else in the application took the status first.
    Unknown,
}

/// A limit of which it is known that a process was ended for it.
///
/// Memory and open files are not among them: a program is refused more, and how it ends then, if
/// it does, is its own affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// `limits.cpuSeconds`.
    CpuSeconds,
    /// `limits.processes`.
    Processes,
}

impl Limit {
    /// The key of the configuration.
    pub fn key(self) -> &'static str {
        match self {
            Self::CpuSeconds => "limits.cpuSeconds",
            Self::Processes => "limits.processes",
        }
    }
}

impl Exit {
    /// Whether it returned code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for Exit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            Self::OverLimit(limit) => write!(f, "its limit reached (`{}`)", limit.key()),
            Self::Unsupervised => f.write_str("an unknown status, since its supervisor was killed"),
            Self::Unknown => f.write_str("an unknown status"),
        }
    }
}

#[cfg(unix)]
fn signal_name(signal: i32) -> Option<&'static str> {
    signal_hook::low_level::signal_name(signal)
}

#[cfg(not(unix))]
fn signal_name(_signal: i32) -> Option<&'static str> {
    None
}

#[cfg(test)]
mod tests {
    use super::{Exit, Limit};

    #[test]
    fn an_exit_is_worded_with_its_code_or_the_name_of_its_signal() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Unknown.to_string(), "an unknown status");
        let unsupervised = "an unknown status, since its supervisor was killed";
        assert_eq!(Exit::Unsupervised.to_string(), unsupervised);
        let over = Exit::OverLimit(Limit::CpuSeconds);
        assert_eq!(over.to_string(), "its limit reached (`limits.cpuSeconds`)");
        assert_eq!(Exit::Signal(250).to_string(), "signal 250");
        if cfg!(unix) {
            assert_eq!(Exit::Signal(9).to_string(), "signal 9 (SIGKILL)");
        }
    }

    #[test]
    fn only_code_zero_is_success() {
        assert!(Exit::Code(0).success());
        assert!(!Exit::Code(1).success());
        assert!(!Exit::Signal(15).success());
        assert!(!Exit::Unknown.success());
    }
}
