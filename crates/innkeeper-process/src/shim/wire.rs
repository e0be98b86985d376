//! The protocol between host and shim over the control socket.
//!
//! The host sends one launch, a length prefix and JSON with the server's three pipe ends attached,
//! and then single-byte commands; the shim sends short lines. For each side, the end of the stream
//! means that the other side is gone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::net::SendFlags;
use serde::{Deserialize, Serialize};

use crate::ExitStatus;

/// Command to terminate the tree: SIGTERM for every process.
pub(crate) const TERMINATE: u8 = b'T';

/// Command to kill the tree: SIGKILL until no process remains.
pub(crate) const KILL: u8 = b'K';

/// Send flags: never block, and never raise SIGPIPE if the peer is gone.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Send flags for Apple systems, which lack `MSG_NOSIGNAL`; Rust and Python programs ignore
/// SIGPIPE.
#[cfg(target_vendor = "apple")]
pub const SEND_FLAGS: SendFlags = SendFlags::DONTWAIT;

/// Maximum size of a launch in bytes: Linux allows at most 6 MiB of arguments and environment, and
/// JSON needs up to six characters per byte.
pub(crate) const MAX_LAUNCH_BYTES: usize = 36 << 20;

/// Maximum size of a report line in bytes; the longest report has under 40.
pub(crate) const MAX_REPORT_BYTES: usize = 64;

/// The server process that the shim starts.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct LaunchRequest {
    pub program: WireOsString,
    pub args: Vec<WireOsString>,
    pub env: Vec<(WireOsString, WireOsString)>,
    pub cwd: Option<WireOsString>,
    /// Program that confines itself and then becomes the server; `None` if the shim starts the server
    /// directly.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub confine: Option<ConfineCommand>,
    /// Maximum number of processes in the tree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processes: Option<u64>,
}

/// The confinement of a server with the program that applies it.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ConfineCommand {
    /// Program that was started as this shim and understands the confinement.
    pub program: WireOsString,
    pub args: Vec<WireOsString>,
    #[serde(rename = "bounds")]
    pub confinement: Confinement,
}

/// The resource limits and the sandbox of a process.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confinement {
    pub memory: Option<u64>,
    pub cpu_seconds: Option<u64>,
    pub open_files: Option<u64>,
    pub file_size: Option<u64>,
    /// Hard limit `RLIMIT_LOCKS`, which marks the processes of the tree.
    #[serde(default)]
    pub lock_limit: Option<u64>,
    pub sandbox: Option<Sandbox>,
}

/// The allowed paths and network access of a process; every path is absolute.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    pub read: Vec<WireOsString>,
    pub write: Vec<WireOsString>,
    pub network: bool,
}

impl LaunchRequest {
    /// Encodes the launch with its length prefix.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, self)?;
        write_length_prefix(frame)
    }
}

/// Writes the length of a frame into its first four bytes.
fn write_length_prefix(mut frame: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = frame.len() - 4;
    if length > MAX_LAUNCH_BYTES {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    frame[..4].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    Ok(frame)
}

/// An operating system string, which may not be valid Unicode.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WireOsString {
    Text(String),
    Bytes(Vec<u8>),
}

impl WireOsString {
    pub fn to_os_string(&self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsStr::from_bytes(bytes).to_owned(),
        }
    }
}

impl From<&OsStr> for WireOsString {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<WireOsString> for OsString {
    fn from(os: WireOsString) -> Self {
        match os {
            WireOsString::Text(text) => text.into(),
            WireOsString::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

/// The stage of a launch that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LaunchStage {
    Program,
    WorkingDirectory,
    Confinement,
}

/// A report of the shim to the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ShimReport {
    /// The server runs with this process id.
    Started(u32),
    /// The server could not be started because of this `errno`; the shim exits.
    Failed(LaunchStage, i32),
    /// The tree exceeds its process limit; the shim kills the tree.
    TooManyProcesses,
    /// The server's main process exited.
    Exited(ExitStatus),
    /// No process of the tree remains; the shim exits.
    Gone,
}

impl ShimReport {
    /// Formats the report as one line.
    pub(crate) fn to_line(self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Failed(LaunchStage::Program, errno) => format!("failed program {errno}\n"),
            Self::Failed(LaunchStage::WorkingDirectory, errno) => {
                format!("failed directory {errno}\n")
            }
            Self::Failed(LaunchStage::Confinement, errno) => format!("failed bounds {errno}\n"),
            Self::TooManyProcesses => "toomany\n".to_owned(),
            Self::Exited(ExitStatus::Code(code)) => format!("exited code {code}\n"),
            Self::Exited(ExitStatus::Signal(signal)) => format!("exited signal {signal}\n"),
            Self::Exited(
                ExitStatus::LimitExceeded(_) | ExitStatus::Unsupervised | ExitStatus::Unknown,
            ) => "exited unknown\n".to_owned(),
            Self::Gone => "gone\n".to_owned(),
        }
    }

    /// Parses one line without its line end; `None` if the line is not a report.
    pub(crate) fn parse(line: &str) -> Option<Self> {
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
                Self::Exited(ExitStatus::Code(code.parse().ok()?))
            }
            ("exited", Some("signal"), Some(signal)) => {
                Self::Exited(ExitStatus::Signal(signal.parse().ok()?))
            }
            ("exited", Some("unknown"), None) => Self::Exited(ExitStatus::Unknown),
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
            ShimReport::Started(4_194_304),
            ShimReport::Failed(LaunchStage::Program, 2),
            ShimReport::Failed(LaunchStage::WorkingDirectory, 20),
            ShimReport::Failed(LaunchStage::Confinement, 95),
            ShimReport::TooManyProcesses,
            ShimReport::Exited(ExitStatus::Code(-1)),
            ShimReport::Exited(ExitStatus::Signal(9)),
            ShimReport::Exited(ExitStatus::Unknown),
            ShimReport::Gone,
        ] {
            let line = report.to_line();
            assert!(line.len() <= MAX_REPORT_BYTES, "{line:?} is longer than a report may be");
            assert_eq!(line.strip_suffix('\n').and_then(ShimReport::parse), Some(report));
        }
    }

    #[test]
    fn a_line_that_is_no_report_is_not_taken_for_one() {
        for line in ["", "gone now", "started", "started x", "exited code", "exited code 1 2"] {
            assert_eq!(ShimReport::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_launch_keeps_strings_that_are_not_text() {
        let odd = OsStr::from_bytes(b"/bin/\xff\x80");
        let quoted = OsStr::new("\"; rm -rf $HOME\n");
        let start = LaunchRequest {
            program: odd.into(),
            args: vec![quoted.into()],
            env: vec![(OsStr::new("K").into(), odd.into())],
            cwd: None,
            confine: None,
            processes: None,
        };
        let frame = start.encode().unwrap();
        assert_eq!(frame[..4], u32::try_from(frame.len() - 4).unwrap().to_le_bytes());
        let read: LaunchRequest = serde_json::from_slice(&frame[4..]).unwrap();
        assert_eq!(OsString::from(read.program), odd);
        assert_eq!(OsString::from(read.args.into_iter().next().unwrap()), quoted);
    }

    #[test]
    fn a_launch_at_the_limit_is_sent_and_one_byte_more_is_refused() {
        assert!(write_length_prefix(vec![0; MAX_LAUNCH_BYTES + 4]).is_ok());
        let error = write_length_prefix(vec![0; MAX_LAUNCH_BYTES + 5]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ArgumentListTooLong);
    }
}
