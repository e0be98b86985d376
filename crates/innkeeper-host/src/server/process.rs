//! The process room: a server's child processes, how they start, and how the last one is gone.

mod bounds;
mod environment;
mod error;
mod exit;
mod launching;
mod program;
mod stop;
mod supervisor;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(test)]
#[cfg(target_os = "linux")]
pub(crate) mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub(crate) use bounds::Bounds;
pub(crate) use environment::child_environment;
pub(crate) use error::SpawnError;
pub use exit::{Exit, Limit};
pub(crate) use launching::Launching;
pub(crate) use platform::{Killer, Process, Stderr, Stdin, Stdout, spawn};
pub(crate) use program::resolve;
pub(crate) use stop::{Stopped, stop};
pub use supervisor::Supervisor;
#[cfg(unix)]
pub(crate) use unix::{Left, sweep};

/// What keeps a server's processes together, so that all of them can be ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// Every descendant, whatever it does to hide, and also when the host is killed.
    Tree,
    /// The process group; a descendant that leaves the group is not found.
    Group,
    /// A Windows job object: every descendant, and also when the host is killed.
    Job,
}

/// One server process to start.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    /// The command as the user wrote it; errors quote this and never `program`.
    pub(crate) command: String,
    /// The file to execute, found by [`resolve`].
    pub(crate) program: PathBuf,
    /// The arguments, each handed on as it is: no shell reads them.
    pub(crate) args: Vec<OsString>,
    /// The whole environment; nothing is inherited beside it.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// The working directory; that of the host if absent.
    pub(crate) cwd: Option<PathBuf>,
    /// What its processes may use and touch.
    pub(crate) bounds: Bounds,
}

/// The host's ends of a server's standard streams.
#[derive(Debug)]
pub(crate) struct Pipes {
    /// Dropping it sends end of file.
    pub(crate) stdin: Stdin,
    pub(crate) stdout: Stdout,
    pub(crate) stderr: Stderr,
}
