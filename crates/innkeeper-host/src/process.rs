//! The child processes of servers: start, supervision and termination.

mod confinement;
mod environment;
mod error;
mod exit_status;
mod launch_probe;
pub(crate) mod ledger;
mod program;
mod server_process;
pub mod shim;
pub(crate) mod stderr;
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

pub(crate) use confinement::Confinement;
pub(crate) use environment::child_environment;
pub(crate) use error::SpawnError;
pub use exit_status::{ExitStatus, ProcessLimit};
pub(crate) use launch_probe::LaunchProbe;
pub(crate) use platform::{Process, Stderr, Stdin, Stdout, spawn};
pub(crate) use program::resolve;
pub(crate) use server_process::{KillHandle, ServerProcess};
pub(crate) use stop::{ProcessStopStage, stop};
pub use supervisor::Supervisor;
#[cfg(unix)]
pub(crate) use unix::{SweepTarget, sweep};

/// The mechanism that contains all processes of a server, so that all can be terminated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ProcessContainment {
    /// A supervised tree: every descendant, even if it hides or the host is killed.
    Tree,
    /// A process group; descendants that leave the group are not found.
    Group,
    /// A Windows job object: every descendant, even if the host is killed.
    Job,
}

/// The specification of a server process to start.
#[derive(Clone, Debug)]
pub(crate) struct ProcessSpec {
    /// Command as the user wrote it; errors quote this and never `program`.
    pub(crate) command: String,
    /// File to execute, found by [`resolve`].
    pub(crate) program: PathBuf,
    /// Arguments, passed literally without a shell.
    pub(crate) args: Vec<OsString>,
    /// Complete environment; no other variable is inherited.
    pub(crate) env: Vec<(OsString, OsString)>,
    /// Working directory. Default: the working directory of the host.
    pub(crate) cwd: Option<PathBuf>,
    /// Resource limits and sandbox of the processes.
    pub(crate) confinement: Confinement,
}

/// The host's ends of a server's standard streams.
#[derive(Debug)]
pub(crate) struct StdioPipes {
    /// Standard input; dropping it sends end of file.
    pub(crate) stdin: Stdin,
    pub(crate) stdout: Stdout,
    pub(crate) stderr: Stderr,
}
