//! Server processes on Windows: a job object holds the whole tree.
//!
//! Compiled for `x86_64-pc-windows-gnu`, and not run yet.

use std::future::poll_fn;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{Exit, Isolation, Launch, Launching, Pipes, SpawnError, Supervisor};
use crate::ledger::Ledger;

/// A console program gets no console window of its own.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// The host's end of a server's stdin; dropping it sends end of file.
pub(crate) type Stdin = ChildStdin;
/// The host's end of a server's stdout.
pub(crate) type Stdout = ChildStdout;
/// The host's end of a server's stderr.
pub(crate) type Stderr = ChildStderr;

type Job = Mutex<Box<dyn ChildWrapper>>;

/// A running server process and everything it starts. Dropping it kills the whole tree, and so
/// does the end of the host: the system closes the job then.
#[derive(Debug)]
pub(crate) struct Process {
    id: u32,
    job: Arc<Job>,
    exit: Option<Exit>,
}

/// Starts a server in a job object; there is no supervisor and nothing to note in a ledger.
///
/// # Errors
/// The program or its working directory cannot be used, or a sandbox is asked for.
pub(crate) async fn spawn(
    launch: &Launch,
    supervisor: &Supervisor,
    _ledger: Option<&Ledger>,
) -> Result<(Process, Pipes), SpawnError> {
    let command = launch.command.as_str();
    if let Some(why) = launch.bounds.refused(supervisor) {
        return Err(SpawnError::bounds(command, why));
    }
    let mut wrap = CommandWrap::with_new(&launch.program, |made| {
        made.args(&launch.args)
            .env_clear()
            .envs(launch.env.iter().map(|(name, value)| (name, value)))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some(cwd) = &launch.cwd {
            made.current_dir(cwd);
        }
    });
    let mut flags = CreationFlags(Default::default());
    flags.0.0 = CREATE_NO_WINDOW;
    wrap.wrap(flags).wrap(KillOnDrop).wrap(JobObject);
    let mut child = wrap.spawn().map_err(|source| match &launch.cwd {
        Some(cwd) if !cwd.is_dir() => SpawnError::Directory { command: command.into(), source },
        _ => SpawnError::from_exec(command, source, launch.program.exists()),
    })?;
    let missing = || SpawnError::other(command, std::io::ErrorKind::BrokenPipe);
    let pipes = Pipes {
        stdin: child.stdin().take().ok_or_else(missing)?,
        stdout: child.stdout().take().ok_or_else(missing)?,
        stderr: child.stderr().take().ok_or_else(missing)?,
    };
    let id = child.id().ok_or_else(missing)?;
    Ok((Process { id, job: Arc::new(Mutex::new(child)), exit: None }, pipes))
}

fn lock(job: &Job) -> MutexGuard<'_, Box<dyn ChildWrapper>> {
    job.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every process of the job; a job that is already empty refuses, and that is as well.
fn end(job: &Job) {
    drop(lock(job).start_kill());
}

impl Process {
    /// The id of the server's main process.
    pub(crate) fn id(&self) -> u32 {
        self.id
    }

    /// What keeps the tree together.
    pub(crate) fn isolation(&self) -> Isolation {
        Isolation::Job
    }

    /// Waits until the server's main process has ended; cancel-safe, and may be asked again.
    pub(crate) async fn exited(&mut self) -> Exit {
        if let Some(exit) = self.exit {
            return exit;
        }
        let status = poll_fn(|context| self.poll_main(context)).await;
        let exit = match status.map(|status| status.code()) {
            Ok(Some(code)) => Exit::Code(code),
            Ok(None) | Err(_) => Exit::Unknown,
        };
        self.exit = Some(exit);
        // A server whose main process has ended is over, as on Unix.
        self.kill();
        exit
    }

    /// Waits for the process inside the job wrapper, which would wait for the whole job. The
    /// future may be made anew for each poll: what it waits on is part of the child.
    fn poll_main(&self, context: &mut Context<'_>) -> Poll<std::io::Result<ExitStatus>> {
        let mut job = lock(&self.job);
        let main = job.inner_mut().wait();
        pin!(main).poll(context)
    }

    /// How the main process ended, as far as a wait has noticed.
    pub(crate) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    /// Does nothing: Windows has no request to end that a program without a window gets.
    pub(crate) fn terminate(&self) {}

    /// Kills every process of the tree; never blocks.
    pub(crate) fn kill(&self) {
        end(&self.job);
    }

    /// Waits until the main process is gone and the job was ended; cancel-safe.
    pub(crate) async fn gone(&mut self) {
        self.exited().await;
    }

    /// A handle that can kill the tree, and does not keep it alive.
    pub(crate) fn killer(&self) -> Killer {
        Killer(Arc::downgrade(&self.job))
    }

    /// Whether the main process, a launcher, has started the server; not known here.
    pub(crate) fn has_started(&self, _launching: &mut Launching) -> Option<bool> {
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Kills one server's tree, from any thread; has no effect once it is gone.
#[derive(Clone, Debug)]
pub(crate) struct Killer(Weak<Job>);

impl Killer {
    /// Kills every process of the tree; never blocks.
    pub(crate) fn kill(&self) {
        if let Some(job) = self.0.upgrade() {
            end(&job);
        }
    }
}
