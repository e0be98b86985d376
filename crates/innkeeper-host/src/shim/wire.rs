//! What host and shim say to each other over the control socket.
//!
//! The host sends one launch, a length and JSON with the server's three pipe ends attached, and
//! then single bytes; the shim answers with short lines. The end of the stream means on either
//! side that the other one is gone.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};

use rustix::net::SendFlags;
use serde::{Deserialize, Serialize};

use crate::server::process::Exit;

/// Asks the tree to end: SIGTERM for every process.
pub(crate) const TERMINATE: u8 = b'T';

/// Ends the tree: SIGKILL until nothing is left.
pub(crate) const KILL: u8 = b'K';

/// How bytes are sent: at once or not at all, and without SIGPIPE if nobody is left to read them.
#[cfg(not(target_vendor = "apple"))]
pub(crate) const SEND: SendFlags = SendFlags::DONTWAIT.union(SendFlags::NOSIGNAL);

/// Apple systems have no such flag; Rust and Python programs ignore the signal.
#[cfg(target_vendor = "apple")]
pub(crate) const SEND: SendFlags = SendFlags::DONTWAIT;

/// The longest launch in bytes: Linux takes 6 MiB of arguments and environment at most, and JSON
/// spends up to six characters on a byte.
pub(crate) const LAUNCH_LIMIT: usize = 36 << 20;

/// The longest line of a report in bytes; the longest there is has under 40.
pub(crate) const REPORT_LIMIT: usize = 64;

/// What the shim starts.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Start {
    pub(crate) program: Os,
    pub(crate) args: Vec<Os>,
    pub(crate) env: Vec<(Os, Os)>,
    pub(crate) cwd: Option<Os>,
    /// The program that confines itself and then becomes the server; none without bounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) confine: Option<Confine>,
    /// How many processes the tree may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) processes: Option<u64>,
}

/// How a server is confined.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Confine {
    /// What was started as this shim, and will know the bounds when it sees them.
    pub(crate) program: Os,
    pub(crate) args: Vec<Os>,
    pub(crate) bounds: Bounds,
}

/// What a process may use and touch.
#[derive(Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Bounds {
    pub(crate) memory: Option<u64>,
    pub(crate) cpu_seconds: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) file_size: Option<u64>,
    pub(crate) sandbox: Option<Sandbox>,
}

/// What a process may touch; every path is absolute.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Sandbox {
    pub(crate) read: Vec<Os>,
    pub(crate) write: Vec<Os>,
    pub(crate) network: bool,
}

impl Start {
    /// The launch as it is sent.
    pub(crate) fn encode(&self) -> io::Result<Vec<u8>> {
        let mut frame = vec![0; 4];
        serde_json::to_writer(&mut frame, self)?;
        with_length(frame)
    }
}

/// Writes the length of a frame over its first four bytes.
fn with_length(mut frame: Vec<u8>) -> io::Result<Vec<u8>> {
    let length = frame.len() - 4;
    if length > LAUNCH_LIMIT {
        return Err(io::ErrorKind::ArgumentListTooLong.into());
    }
    frame[..4].copy_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes());
    Ok(frame)
}

/// An operating system string, which need not be text.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Os {
    Text(String),
    Bytes(Vec<u8>),
}

impl Os {
    pub(crate) fn to_os_string(&self) -> OsString {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsStr::from_bytes(bytes).to_owned(),
        }
    }
}

impl From<&OsStr> for Os {
    fn from(text: &OsStr) -> Self {
        match text.to_str() {
            Some(text) => Self::Text(text.to_owned()),
            None => Self::Bytes(text.as_bytes().to_vec()),
        }
    }
}

impl From<Os> for OsString {
    fn from(os: Os) -> Self {
        match os {
            Os::Text(text) => text.into(),
            Os::Bytes(bytes) => Self::from_vec(bytes),
        }
    }
}

/// Which part of a launch failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    Program,
    Directory,
    Bounds,
}

/// What the shim tells the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    /// The server runs under this process id.
    Started(u32),
    /// The server could not be started, for this `errno`; the shim ends.
    Failed(Part, i32),
    /// The tree has more processes than it may have; the shim ends it.
    TooMany,
    /// The server's main process ended.
    Exited(Exit),
    /// No process of the tree is left; the shim ends.
    Gone,
}

impl Report {
    /// The report as one line.
    pub(crate) fn line(self) -> String {
        match self {
            Self::Started(pid) => format!("started {pid}\n"),
            Self::Failed(Part::Program, errno) => format!("failed program {errno}\n"),
            Self::Failed(Part::Directory, errno) => format!("failed directory {errno}\n"),
            Self::Failed(Part::Bounds, errno) => format!("failed bounds {errno}\n"),
            Self::TooMany => "toomany\n".to_owned(),
            Self::Exited(Exit::Code(code)) => format!("exited code {code}\n"),
            Self::Exited(Exit::Signal(signal)) => format!("exited signal {signal}\n"),
            Self::Exited(Exit::OverLimit(_) | Exit::Unsupervised | Exit::Unknown) => {
                "exited unknown\n".to_owned()
            }
            Self::Gone => "gone\n".to_owned(),
        }
    }

    /// Reads one line without its end; `None` if it is no report.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let report = match (words.next()?, words.next(), words.next()) {
            ("started", Some(pid), None) => Self::Started(pid.parse().ok()?),
            ("failed", Some("program"), Some(errno)) => {
                Self::Failed(Part::Program, errno.parse().ok()?)
            }
            ("failed", Some("directory"), Some(errno)) => {
                Self::Failed(Part::Directory, errno.parse().ok()?)
            }
            ("failed", Some("bounds"), Some(errno)) => {
                Self::Failed(Part::Bounds, errno.parse().ok()?)
            }
            ("toomany", None, None) => Self::TooMany,
            ("exited", Some("code"), Some(code)) => Self::Exited(Exit::Code(code.parse().ok()?)),
            ("exited", Some("signal"), Some(signal)) => {
                Self::Exited(Exit::Signal(signal.parse().ok()?))
            }
            ("exited", Some("unknown"), None) => Self::Exited(Exit::Unknown),
            ("gone", None, None) => Self::Gone,
            _ => return None,
        };
        words.next().is_none().then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_report_is_read_back_as_it_was_written() {
        for report in [
            Report::Started(4_194_304),
            Report::Failed(Part::Program, 2),
            Report::Failed(Part::Directory, 20),
            Report::Failed(Part::Bounds, 95),
            Report::TooMany,
            Report::Exited(Exit::Code(-1)),
            Report::Exited(Exit::Signal(9)),
            Report::Exited(Exit::Unknown),
            Report::Gone,
        ] {
            let line = report.line();
            assert!(line.len() <= REPORT_LIMIT, "{line:?} is longer than a report may be");
            assert_eq!(line.strip_suffix('\n').and_then(Report::parse), Some(report));
        }
    }

    #[test]
    fn a_line_that_is_no_report_is_not_taken_for_one() {
        for line in ["", "gone now", "started", "started x", "exited code", "exited code 1 2"] {
            assert_eq!(Report::parse(line), None, "{line:?}");
        }
    }

    #[test]
    fn a_launch_keeps_strings_that_are_not_text() {
        let odd = OsStr::from_bytes(b"/bin/\xff\x80");
        let quoted = OsStr::new("\"; rm -rf $HOME\n");
        let start = Start {
            program: odd.into(),
            args: vec![quoted.into()],
            env: vec![(OsStr::new("K").into(), odd.into())],
            cwd: None,
            confine: None,
            processes: None,
        };
        let frame = start.encode().unwrap();
        assert_eq!(frame[..4], u32::try_from(frame.len() - 4).unwrap().to_le_bytes());
        let read: Start = serde_json::from_slice(&frame[4..]).unwrap();
        assert_eq!(OsString::from(read.program), odd);
        assert_eq!(OsString::from(read.args.into_iter().next().unwrap()), quoted);
    }

    #[test]
    fn a_launch_at_the_limit_is_sent_and_one_byte_more_is_refused() {
        assert!(with_length(vec![0; LAUNCH_LIMIT + 4]).is_ok());
        let refused = with_length(vec![0; LAUNCH_LIMIT + 5]).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ArgumentListTooLong);
    }
}
