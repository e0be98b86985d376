//! The exit status of a server's main process.

use std::fmt;

/// The exit status of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ExitStatus {
    /// The process exited with this code.
    Code(i32),
    /// The process was terminated by this signal.
    Signal(i32),
    /// The process exceeded a configured limit and was killed.
    LimitExceeded(ProcessLimit),
    /// The supervisor was killed, so the status is unknown; the remaining processes were killed.
    Unsupervised,
    /// The process exited, but other code of the application reaped it first.
    Unknown,
}

/// A limit whose violation terminates a process.
///
/// Memory and open files are not included: the system rejects further allocations, and the program
/// decides how to handle that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ProcessLimit {
    /// `limits.cpuSeconds`.
    CpuSeconds,
    /// `limits.processes`.
    Processes,
}

impl ProcessLimit {
    /// Returns the configuration key of the limit.
    pub fn key(self) -> &'static str {
        match self {
            Self::CpuSeconds => "limits.cpuSeconds",
            Self::Processes => "limits.processes",
        }
    }
}

impl ExitStatus {
    /// Returns whether the process exited with code 0.
    pub fn success(self) -> bool {
        self == Self::Code(0)
    }
}

impl fmt::Display for ExitStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Code(code) => write!(f, "exit code {code}"),
            Self::Signal(signal) => match signal_name(*signal) {
                Some(name) => write!(f, "signal {signal} ({name})"),
                None => write!(f, "signal {signal}"),
            },
            Self::LimitExceeded(limit) => write!(f, "an exceeded limit (`{}`)", limit.key()),
            Self::Unsupervised => f.write_str("an unknown status (its supervisor was killed)"),
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
    use super::{ExitStatus, ProcessLimit};

    #[test]
    fn an_exit_status_is_displayed_with_its_code_or_the_name_of_its_signal() {
        assert_eq!(ExitStatus::Code(3).to_string(), "exit code 3");
        assert_eq!(ExitStatus::Unknown.to_string(), "an unknown status");
        let unsupervised = "an unknown status (its supervisor was killed)";
        assert_eq!(ExitStatus::Unsupervised.to_string(), unsupervised);
        let limit_exceeded = ExitStatus::LimitExceeded(ProcessLimit::CpuSeconds);
        assert_eq!(limit_exceeded.to_string(), "an exceeded limit (`limits.cpuSeconds`)");
        assert_eq!(ExitStatus::Signal(250).to_string(), "signal 250");
        if cfg!(unix) {
            assert_eq!(ExitStatus::Signal(9).to_string(), "signal 9 (SIGKILL)");
        }
    }

    #[test]
    fn only_code_zero_is_success() {
        assert!(ExitStatus::Code(0).success());
        assert!(!ExitStatus::Code(1).success());
        assert!(!ExitStatus::Signal(15).success());
        assert!(!ExitStatus::Unknown.success());
    }
}
