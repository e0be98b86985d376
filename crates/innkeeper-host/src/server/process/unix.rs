//! Server processes on Unix: beside a shim, or in a group of the host's own.

mod confine;
mod group;
mod pipes;
mod shim;
mod sweep;

use rustix::process::Pid;
use tokio::net::unix::pipe;
use tokio::sync::oneshot;

use super::{Exit, Isolation, Launch, Launching, Pipes, SpawnError, Supervisor};
use crate::ledger::{Entry, Ledger};

pub(crate) use sweep::{Left, sweep};

/// The host's end of a server's stdin; dropping it sends end of file.
pub(crate) type Stdin = pipe::Sender;
/// The host's end of a server's stdout.
pub(crate) type Stdout = pipe::Receiver;
/// The host's end of a server's stderr.
pub(crate) type Stderr = pipe::Receiver;

/// A running server process and everything it starts. Dropping it kills the whole tree, on any
/// thread, with or without a runtime; it does not wait for the end.
#[derive(Debug)]
pub(crate) struct Process(Kept);

#[derive(Debug)]
enum Kept {
    Shim(shim::Supervised),
    Group(group::Grouped),
    #[cfg(test)]
    Simulated {
        process: crate::simulation::Process,
    },
}

/// Starts a server. Cancelling kills what was started.
///
/// # Errors
/// The program, its working directory, its sandbox or the supervisor cannot be used.
pub(crate) async fn spawn(
    launch: &Launch,
    supervisor: &Supervisor,
    ledger: Option<&Ledger>,
) -> Result<(Process, Pipes), SpawnError> {
    if let Some(why) = launch.bounds.refused(supervisor) {
        return Err(SpawnError::bounds(&launch.command, why));
    }
    Ok(match supervisor {
        Supervisor::Shim { program, args } => {
            let (process, pipes) = shim::spawn(launch, (program, args), ledger).await?;
            (Process(Kept::Shim(process)), pipes)
        }
        Supervisor::Group => {
            let (process, pipes) = group::spawn(launch, ledger)?;
            (Process(Kept::Group(process)), pipes)
        }
    })
}

#[cfg(test)]
impl From<crate::simulation::Process> for Process {
    fn from(process: crate::simulation::Process) -> Self {
        Self(Kept::Simulated { process })
    }
}

impl Process {
    /// The id of the server's main process.
    pub(crate) fn id(&self) -> u32 {
        match &self.0 {
            Kept::Shim(process) => process.id(),
            Kept::Group(process) => process.id(),
            #[cfg(test)]
            Kept::Simulated { process } => process.id(),
        }
    }

    /// What keeps the tree together.
    pub(crate) fn isolation(&self) -> Isolation {
        match &self.0 {
            Kept::Shim(_) if cfg!(target_os = "linux") => Isolation::Tree,
            Kept::Shim(_) | Kept::Group(_) => Isolation::Group,
            #[cfg(test)]
            Kept::Simulated { .. } => Isolation::Group,
        }
    }

    /// Waits until the server's main process has ended; cancel-safe, and may be asked again.
    pub(crate) async fn exited(&mut self) -> Exit {
        match &mut self.0 {
            Kept::Shim(process) => process.exited().await,
            Kept::Group(process) => process.exited().await,
            #[cfg(test)]
            Kept::Simulated { process } => process.exited().await,
        }
    }

    /// How the main process ended, as far as a wait has noticed.
    pub(crate) fn exit(&self) -> Option<Exit> {
        match &self.0 {
            Kept::Shim(process) => process.exit(),
            Kept::Group(process) => process.exit(),
            #[cfg(test)]
            Kept::Simulated { process } => process.exit(),
        }
    }

    /// Asks every process of the tree to end (SIGTERM); never blocks.
    pub(crate) fn terminate(&self) {
        match &self.0 {
            Kept::Shim(process) => process.terminate(),
            Kept::Group(process) => process.terminate(),
            #[cfg(test)]
            Kept::Simulated { process } => process.terminate(),
        }
    }

    /// Kills every process of the tree; never blocks.
    pub(crate) fn kill(&self) {
        match &self.0 {
            Kept::Shim(process) => process.kill(),
            Kept::Group(process) => process.kill(),
            #[cfg(test)]
            Kept::Simulated { process } => process.kill(),
        }
    }

    /// Waits until the whole tree is gone and nothing of it is left to be reaped; cancel-safe.
    /// Ends after a kill, and by itself once the main process has exited.
    pub(crate) async fn gone(&mut self) {
        match &mut self.0 {
            Kept::Shim(process) => process.gone().await,
            Kept::Group(process) => process.gone().await,
            #[cfg(test)]
            Kept::Simulated { process } => process.gone().await,
        }
    }

    /// A handle that can kill the tree, and does not keep it alive.
    pub(crate) fn killer(&self) -> Killer {
        match &self.0 {
            Kept::Shim(process) => Killer(Reach::Shim(process.killer())),
            Kept::Group(process) => Killer(Reach::Group(process.killer())),
            #[cfg(test)]
            Kept::Simulated { process } => Killer(Reach::Simulated { killer: process.killer() }),
        }
    }

    /// A copy of the host's end of the control socket.
    #[cfg(test)]
    pub(crate) fn control_socket(&self) -> Option<std::os::fd::OwnedFd> {
        match &self.0 {
            Kept::Shim(process) => process.control_socket().ok(),
            Kept::Group(_) | Kept::Simulated { .. } => None,
        }
    }

    /// Whether the main process, a launcher, has started the server; `None` where the system does
    /// not tell.
    #[cfg(target_os = "linux")]
    pub(crate) fn has_started(&self, launching: &mut Launching) -> Option<bool> {
        match &self.0 {
            Kept::Shim(_) | Kept::Group(_) => {
                Some(pid(self.id()).is_some_and(|pid| launching.has_started(pid)))
            }
            #[cfg(test)]
            Kept::Simulated { .. } => None,
        }
    }

    /// Whether the main process, a launcher, has started the server; not known here.
    #[cfg(not(target_os = "linux"))]
    pub(crate) fn has_started(&self, _launching: &mut Launching) -> Option<bool> {
        None
    }
}

/// Kills one server's tree, from any thread; has no effect once it is gone.
#[derive(Clone, Debug)]
pub(crate) struct Killer(Reach);

#[derive(Clone, Debug)]
enum Reach {
    Shim(shim::Control),
    Group(group::Leader),
    #[cfg(test)]
    Simulated {
        killer: crate::simulation::Killer,
    },
}

impl Killer {
    /// Kills every process of the tree; never blocks.
    pub(crate) fn kill(&self) {
        match &self.0 {
            Reach::Shim(control) => control.kill(),
            Reach::Group(leader) => leader.signal(rustix::process::Signal::KILL),
            #[cfg(test)]
            Reach::Simulated { killer } => killer.kill(),
        }
    }
}

fn pid(id: u32) -> Option<Pid> {
    Pid::from_raw(id.try_into().ok()?)
}

/// Notes a process in the ledger. A host that cannot write it runs the server all the same: it
/// only matters if the host is killed.
fn record(ledger: Option<&Ledger>, kind: crate::ledger::Kind, id: u32) -> Option<Entry> {
    let noted = ledger?.record(kind, id);
    let told = |error: &std::io::Error| {
        tracing::error!(severity = "critical", %error, "process not noted in the ledger");
    };
    noted.inspect_err(told).ok()
}

/// Waits on a thread of its own: no signal handler is installed in the application, no runtime is
/// needed, and what is waited for is about to end. `None` if there is no thread to be had.
fn reap(wait: impl FnOnce() + Send + 'static) -> Option<oneshot::Receiver<()>> {
    let (done, waited) = oneshot::channel();
    let thread = std::thread::Builder::new().name("innkeeper-reap".to_owned());
    let spawned = thread.spawn(move || {
        wait();
        let _ = done.send(());
    });
    spawned.inspect_err(|error| tracing::warn!(%error, "no thread to wait for a child")).ok()?;
    Some(waited)
}
