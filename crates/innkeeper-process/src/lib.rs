//! The child processes of servers: start, supervision and termination.

mod confinement;
mod environment;
mod error;
mod exit_status;
pub mod host_process;
mod kill_handle;
mod launch_probe;
pub mod ledger;
mod output;
#[cfg(target_os = "linux")]
pub mod peer;
mod process_table;
mod program;
mod runner_settings;
mod server_process;
pub mod shim;
mod stop;
mod supervisor;
#[cfg(unix)]
mod sweep;
#[cfg(unix)]
mod tree;
mod tree_tag;
#[cfg(unix)]
mod unix;
#[cfg(windows)]
mod windows;

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;

use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

#[cfg(unix)]
use unix as platform;
#[cfg(windows)]
use windows as platform;

pub use confinement::{Confinement, UnappliedSetting};
pub use environment::{child_environment, inherited_environment};
pub use error::SpawnError;
pub use exit_status::{ExitStatus, ProcessLimit};
pub use kill_handle::KillHandle;
pub use launch_probe::LaunchProbe;
pub use output::{OutputError, ProgramOutput, run_to_end};
pub use platform::{Process, Stderr, Stdin, Stdout, spawn};
pub use process_table::{ProcessTable, ProcessUsage};
pub use program::resolve;
pub use runner_settings::is_package_runner;
pub use server_process::ServerProcess;
pub use stop::{ProcessStopStage, StopTimes, stop};
pub use supervisor::{EmbeddedSupervisor, Supervisor};
#[cfg(unix)]
pub use sweep::{SweepTarget, sweep};
pub use tree_tag::TreeTag;

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
pub struct ProcessSpec {
    /// Command as the user wrote it; errors quote this and never `program`.
    pub command: String,
    /// File to execute, found by [`resolve`].
    pub program: PathBuf,
    /// Arguments, passed literally without a shell.
    pub args: Vec<OsString>,
    /// Complete environment; no other variable is inherited.
    pub env: Vec<(OsString, OsString)>,
    /// Working directory. Default: the working directory of the host.
    pub cwd: Option<PathBuf>,
    /// Resource limits and sandbox of the processes.
    pub confinement: Confinement,
}

/// The host's ends of a server's standard streams.
#[derive(Debug)]
pub struct StdioPipes {
    /// Standard input; dropping it sends end of file.
    pub stdin: Stdin,
    /// Standard output.
    pub stdout: Stdout,
    /// Standard error.
    pub stderr: Stderr,
}
