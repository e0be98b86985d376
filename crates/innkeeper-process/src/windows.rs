//! Server processes on Windows, contained in a job object.
//!
//! This code compiles for `x86_64-pc-windows-gnu` and has not been run yet.

use std::future::poll_fn;
use std::pin::pin;
use std::process::{self, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
use tokio::process::{ChildStderr, ChildStdin, ChildStdout};

use super::{
    ExitStatus, KillHandle, LaunchProbe, ProcessContainment, ProcessSpec, SpawnError, StdioPipes,
    Supervisor,
};
use crate::ledger::Ledger;

/// Flag that suppresses the console window of a console program.
const CREATE_NO_WINDOW: u32 = 0x0800_0000;

/// The host's end of a server's stdin; dropping it sends end of file.
pub type Stdin = ChildStdin;
/// The host's end of a server's stdout.
pub type Stdout = ChildStdout;
/// The host's end of a server's stderr.
pub type Stderr = ChildStderr;

type Job = Mutex<Box<dyn ChildWrapper>>;

/// A running server process with its descendants. Dropping it kills the whole tree; the system also
/// closes the job when the host exits.
#[derive(Debug)]
pub struct Process {
    id: u32,
    job: Arc<Job>,
    exit: Option<ExitStatus>,
}

/// Starts a server in a job object; needs neither a supervisor nor the ledger.
///
/// # Errors
/// The program or its working directory is unusable, or a sandbox is requested.
pub async fn spawn(
    launch: &ProcessSpec,
    supervisor: &Supervisor,
    _ledger: Option<&Ledger>,
) -> Result<(Process, StdioPipes), SpawnError> {
    let command = launch.command.as_str();
    if let Some(why) = launch.confinement.sandbox_unavailable_reason(supervisor) {
        return Err(SpawnError::confinement(command, why));
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
        Some(cwd) if !cwd.is_dir() => {
            SpawnError::WorkingDirectory { command: command.into(), source }
        }
        _ => SpawnError::from_exec(command, source, launch.program.exists()),
    })?;
    let missing = || SpawnError::other(command, std::io::ErrorKind::BrokenPipe);
    let pipes = StdioPipes {
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

/// Terminates every process of the job; ignores the error of an empty job.
fn terminate_job(job: &Job) {
    let _ = lock(job).start_kill();
}

impl Process {
    /// Returns the id of the server's main process.
    pub fn id(&self) -> u32 {
        self.id
    }

    /// Returns how the tree is contained.
    pub fn containment(&self) -> ProcessContainment {
        ProcessContainment::Job
    }

    /// Waits until the main process exits; cancel-safe, and can be called repeatedly.
    pub async fn wait(&mut self) -> ExitStatus {
        if let Some(exit) = self.exit {
            return exit;
        }
        let status = poll_fn(|context| self.poll_main(context)).await;
        let exit = match status.map(|status| status.code()) {
            Ok(Some(code)) => ExitStatus::Code(code),
            Ok(None) | Err(_) => ExitStatus::Unknown,
        };
        self.exit = Some(exit);
        // As on Unix, the exit of the main process terminates the tree.
        self.kill();
        exit
    }

    /// Waits for the process inside the job wrapper, because the wrapper waits for the whole job.
    /// Each poll may create a new future: the child stores the state of the wait.
    fn poll_main(&self, context: &mut Context<'_>) -> Poll<std::io::Result<process::ExitStatus>> {
        let mut job = lock(&self.job);
        let main = job.inner_mut().wait();
        pin!(main).poll(context)
    }

    /// Returns the exit status of the main process, if a wait has observed it.
    pub fn exit_status(&self) -> Option<ExitStatus> {
        self.exit
    }

    /// Does nothing: Windows has no termination request for programs without a window.
    pub fn terminate(&self) {}

    /// Kills every process of the tree; never blocks.
    pub fn kill(&self) {
        terminate_job(&self.job);
    }

    /// Waits until the main process has exited and the job is terminated; cancel-safe.
    pub async fn wait_tree(&mut self) {
        self.wait().await;
    }

    /// Returns a handle that can kill the tree and does not keep it alive.
    pub fn kill_handle(&self) -> KillHandle {
        let job = Arc::downgrade(&self.job);
        KillHandle::new(move || {
            if let Some(job) = job.upgrade() {
                terminate_job(&job);
            }
        })
    }

    /// Returns `None`: this system does not report whether a launcher has started the server.
    pub fn has_started(&self, _launching: &mut LaunchProbe) -> Option<bool> {
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
