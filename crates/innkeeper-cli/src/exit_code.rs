//! The exit codes of the program.

use std::process::ExitCode;

/// An exit code of the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CliExitCode {
    /// Success.
    Success = 0,
    /// The work failed: a tool error, or an unavailable server.
    Failed = 1,
    /// Wrong usage, configuration or arguments; no request was sent.
    Usage = 2,
    /// Ended by SIGINT.
    Interrupted = 130,
    /// Ended by SIGTERM.
    Terminated = 143,
}

impl From<CliExitCode> for ExitCode {
    fn from(code: CliExitCode) -> Self {
        Self::from(code as u8)
    }
}
