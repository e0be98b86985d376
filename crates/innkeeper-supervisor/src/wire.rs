//! The protocol between host and supervisor over the control socket.
//!
//! The host sends one [launch](crate::launch_request) with the server's three pipe ends attached,
//! and then single-byte commands; the supervisor sends short lines. For each side, the end of the
//! stream means that the other side is gone.

use core::fmt::Write as _;

use crate::text::FixedText;

/// Command to terminate the tree: SIGTERM for every process.
pub const TERMINATE: u8 = b'T';

/// Command to kill the tree: SIGKILL until no process remains.
pub const KILL: u8 = b'K';

/// Maximum size of a report line in bytes; the longest report has under 40.
pub const MAX_REPORT_BYTES: usize = 64;

/// Send flags: never block, and never raise SIGPIPE if the peer is gone.
#[cfg(all(unix, not(target_vendor = "apple")))]
pub const SEND_FLAGS: rustix::net::SendFlags =
    rustix::net::SendFlags::DONTWAIT.union(rustix::net::SendFlags::NOSIGNAL);

/// Send flags for Apple systems, which lack `MSG_NOSIGNAL`; Rust and Python programs ignore
/// SIGPIPE.
#[cfg(target_vendor = "apple")]
pub const SEND_FLAGS: rustix::net::SendFlags = rustix::net::SendFlags::DONTWAIT;

/// The stage of a launch that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaunchStage {
    /// The program cannot be executed.
    Program,
    /// The working directory cannot be entered.
    WorkingDirectory,
    /// The limits or the sandbox cannot be applied.
    Confinement,
}

/// How the main process of a server ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MainExit {
    /// The process exited with this code.
    Code(i32),
    /// This signal terminated the process.
    Signal(i32),
    /// The system does not say.
    Unknown,
}

/// A report of the supervisor to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Report {
    /// The server runs with this process id.
    Started(u32),
    /// The server could not be started because of this `errno`; the supervisor exits.
    Failed(LaunchStage, i32),
    /// The tree exceeds its process limit; the supervisor kills the tree.
    TooManyProcesses,
    /// The server's main process exited.
    Exited(MainExit),
    /// No process of the tree remains; the supervisor exits.
    Gone,
}

impl Report {
    /// Formats the report as one line.
    pub fn to_line(self) -> FixedText<MAX_REPORT_BYTES> {
        let mut line = FixedText::default();
        // Every report fits.
        let _ = match self {
            Self::Started(pid) => writeln!(line, "started {pid}"),
            Self::Failed(LaunchStage::Program, errno) => writeln!(line, "failed program {errno}"),
            Self::Failed(LaunchStage::WorkingDirectory, errno) => {
                writeln!(line, "failed directory {errno}")
            }
            Self::Failed(LaunchStage::Confinement, errno) => {
                writeln!(line, "failed bounds {errno}")
            }
            Self::TooManyProcesses => writeln!(line, "toomany"),
            Self::Exited(MainExit::Code(code)) => writeln!(line, "exited code {code}"),
            Self::Exited(MainExit::Signal(signal)) => writeln!(line, "exited signal {signal}"),
            Self::Exited(MainExit::Unknown) => writeln!(line, "exited unknown"),
            Self::Gone => writeln!(line, "gone"),
        };
        line
    }

    /// Parses one line without its line end; `None` if the line is not a report.
    pub fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split(' ');
        let report = match (fields.next()?, fields.next(), fields.next()) {
            ("started", Some(pid), None) => Self::Started(pid.parse().ok()?),
            ("failed", Some("program"), Some(errno)) => {
                Self::Failed(LaunchStage::Program, errno.parse().ok()?)
            }
            ("failed", Some("directory"), Some(errno)) => {
                Self::Failed(LaunchStage::WorkingDirectory, errno.parse().ok()?)
            }
            ("failed", Some("bounds"), Some(errno)) => {
                Self::Failed(LaunchStage::Confinement, errno.parse().ok()?)
            }
            ("toomany", None, None) => Self::TooManyProcesses,
            ("exited", Some("code"), Some(code)) => {
                Self::Exited(MainExit::Code(code.parse().ok()?))
            }
            ("exited", Some("signal"), Some(signal)) => {
                Self::Exited(MainExit::Signal(signal.parse().ok()?))
            }
            ("exited", Some("unknown"), None) => Self::Exited(MainExit::Unknown),
            ("gone", None, None) => Self::Gone,
            _ => return None,
        };
        fields.next().is_none().then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_read_back_as_it_was_written() {
        for report in [
            Report::Started(4_194_304),
            Report::Failed(LaunchStage::Program, 2),
            Report::Failed(LaunchStage::WorkingDirectory, 20),
            Report::Failed(LaunchStage::Confinement, i32::MIN),
            Report::TooManyProcesses,
            Report::Exited(MainExit::Code(-1)),
            Report::Exited(MainExit::Signal(9)),
            Report::Exited(MainExit::Unknown),
            Report::Gone,
        ] {
            let line = report.to_line();
            assert_eq!(line.as_str().strip_suffix('\n').and_then(Report::parse), Some(report));
        }
    }

    #[test]
    fn a_line_that_is_no_report_is_not_taken_for_one() {
        for line in ["", "gone now", "started", "started x", "exited code", "exited code 1 2"] {
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }
}
