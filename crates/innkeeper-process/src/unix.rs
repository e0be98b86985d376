//! Server processes on Unix, with a shim or in a process group.

mod group;
mod launch;
mod pipes;
mod shim;

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::{
    ExitStatus, KillHandle, LaunchProbe, ProcessContainment, ProcessSpec, SpawnError, StdioPipes,
    Supervisor,
};
use crate::ledger::{Ledger, LedgerEntry};
use crate::shim::check_not_requested;
use crate::tree_tag::TreeTag;

/// The host's end of a server's stdin; dropping it sends end of file.
pub type Stdin = pipe::Sender;
/// The host's end of a server's stdout.
pub type Stdout = pipe::Receiver;
/// The host's end of a server's stderr.
pub type Stderr = pipe::Receiver;

/// A running server process with its descendants. Dropping it kills the whole tree, on any thread,
/// with or without a runtime, and does not wait for the exit.
#[derive(Debug)]
pub struct Process(ProcessHandle);

#[derive(Debug)]
enum ProcessHandle {
    Shim(shim::ShimProcess),
    Group(group::GroupProcess),
}

/// Starts a server. Cancellation kills the started processes.
///
/// # Errors
/// The program, its working directory, its sandbox or the supervisor is unusable.
pub async fn spawn(
    launch: &ProcessSpec,
    supervisor: &Supervisor,
    ledger: Option<&Ledger>,
) -> Result<(Process, StdioPipes), SpawnError> {
    if let Some(reason) = launch.confinement.sandbox_unavailable_reason(supervisor) {
        return Err(SpawnError::confinement(&launch.command, reason));
    }
    Ok(match supervisor {
        Supervisor::Embedded(supervisor) => {
            let (process, pipes) = shim::spawn(launch, supervisor.command(), ledger).await?;
            (Process(ProcessHandle::Shim(process)), pipes)
        }
        Supervisor::Shim { program, args } => {
            check_not_requested()
                .map_err(|error| SpawnError::supervisor(&launch.command, error))?;
            let command = shim_command(program, args);
            let (process, pipes) = shim::spawn(launch, command, ledger).await?;
            (Process(ProcessHandle::Shim(process)), pipes)
        }
        Supervisor::Group => {
            let (process, pipes) = group::spawn(launch, ledger)?;
            (Process(ProcessHandle::Group(process)), pipes)
        }
    })
}

/// Returns the command of a program that runs as the supervisor.
#[expect(clippy::disallowed_methods, reason = "this is where a shim's process is made")]
fn shim_command(program: &Path, args: &[OsString]) -> Command {
    let mut command = Command::new(program);
    command.args(args).env_clear().envs(crate::shim::environment());
    command
}

impl Process {
    /// Returns the id of the server's main process.
    pub fn id(&self) -> u32 {
        match &self.0 {
            ProcessHandle::Shim(process) => process.id(),
            ProcessHandle::Group(process) => process.id(),
        }
    }

    /// Returns how the tree is contained.
    pub fn containment(&self) -> ProcessContainment {
        match &self.0 {
            ProcessHandle::Shim(_) if cfg!(target_os = "linux") => ProcessContainment::Tree,
            ProcessHandle::Shim(_) | ProcessHandle::Group(_) => ProcessContainment::Group,
        }
    }

    /// Waits until the main process exits; cancel-safe, and can be called repeatedly.
    pub async fn wait(&mut self) -> ExitStatus {
        match &mut self.0 {
            ProcessHandle::Shim(process) => process.wait().await,
            ProcessHandle::Group(process) => process.wait().await,
        }
    }

    /// Returns the exit status of the main process, if a wait has observed it.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        match &self.0 {
            ProcessHandle::Shim(process) => process.exit_status(),
            ProcessHandle::Group(process) => process.exit_status(),
        }
    }

    /// Sends SIGTERM to every process of the tree; never blocks.
    pub fn terminate(&self) {
        match &self.0 {
            ProcessHandle::Shim(process) => process.terminate(),
            ProcessHandle::Group(process) => process.terminate(),
        }
    }

    /// Kills every process of the tree; never blocks.
    pub fn kill(&self) {
        match &self.0 {
            ProcessHandle::Shim(process) => process.kill(),
            ProcessHandle::Group(process) => process.kill(),
        }
    }

    /// Waits until the whole tree is gone and reaped; cancel-safe. Completes after a kill, and
    /// after the exit of the main process.
    pub async fn wait_tree(&mut self) {
        match &mut self.0 {
            ProcessHandle::Shim(process) => process.wait_tree().await,
            ProcessHandle::Group(process) => process.wait_tree().await,
        }
    }

    /// Returns a handle that can kill the tree and does not keep it alive.
    pub fn kill_handle(&self) -> KillHandle {
        match &self.0 {
            ProcessHandle::Shim(process) => {
                let control = process.kill_handle();
                KillHandle::new(move || control.kill())
            }
            ProcessHandle::Group(process) => {
                let leader = process.kill_handle();
                KillHandle::new(move || leader.signal(rustix::process::Signal::KILL))
            }
        }
    }

    /// Returns a copy of the host's end of the control socket.
    #[cfg(test)]
    pub fn control_socket(&self) -> Option<std::os::fd::OwnedFd> {
        match &self.0 {
            ProcessHandle::Shim(process) => process.control_socket().ok(),
            ProcessHandle::Group(_) => None,
        }
    }

    /// Returns whether the main process, a launcher, has started the server; `None` if the system
    /// does not report it.
    #[cfg(target_os = "linux")]
    pub fn has_started(&self, launching: &mut LaunchProbe) -> Option<bool> {
        Some(pid(self.id()).is_some_and(|pid| launching.has_started(pid)))
    }

    /// Returns `None`: this system does not report whether a launcher has started the server.
    #[cfg(not(target_os = "linux"))]
    pub fn has_started(&self, _launching: &mut LaunchProbe) -> Option<bool> {
        None
    }
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(id.try_into().ok()?)
}

/// Records a process in the ledger. If this fails, the server runs anyway: the record matters only
/// if the host is killed.
fn record(
    ledger: Option<&Ledger>,
    kind: crate::ledger::ProcessKind,
    id: u32,
    tag: Option<&TreeTag>,
) -> Option<LedgerEntry> {
    let noted = ledger?.record(kind, id, tag.cloned());
    noted
        .inspect_err(|error| {
            tracing::error!(severity = "critical", %error, "process not recorded in the ledger");
        })
        .ok()
}

/// Waits on a separate thread, because the host installs no signal handler in the application and
/// needs no runtime here; the wait is short. `None` if the thread cannot be started.
fn reap(wait: impl FnOnce() + Send + 'static) -> Option<oneshot::Receiver<()>> {
    let (done, reaped) = oneshot::channel();
    let thread = std::thread::Builder::new().name("innkeeper-reap".to_owned());
    let spawned = thread.spawn(move || {
        wait();
        let _ = done.send(());
    });
    spawned
        .inspect_err(
            |error| tracing::warn!(%error, "cannot start a thread to reap a child process"),
        )
        .ok()?;
    Some(reaped)
}
