//! How a server's main process ended.

use std::fmt;

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Exit {
    /// It returned this code.
    Code(i32),
    /// This signal ended it.
    Signal(i32),
    /// It ended, and something else in the application took the status first.
    Unknown,
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
    use super::Exit;

    #[test]
    fn an_exit_is_worded_with_its_code_or_the_name_of_its_signal() {
        assert_eq!(Exit::Code(3).to_string(), "exit code 3");
        assert_eq!(Exit::Unknown.to_string(), "an unknown status");
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
