//! A server with a shim: the host side of the control socket.

use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_supervisor::wire::{
    KILL, LaunchStage, MAX_REPORT_BYTES, MainExit, Report, SEND_FLAGS, TERMINATE,
};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, Shutdown};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{StdioPipes, launch, pid, pipes, reap, record};
use crate::ledger::{Ledger, LedgerEntry, ProcessKind};
use crate::sweep::{SweepTarget, sweep, sweep_deadline};
use crate::tree_tag::TreeTag;
use crate::{ExitStatus, ProcessLimit, ProcessSpec, SpawnError};

/// Timeout for a shim to start the server: executing a program is slow only on an unresponsive file
/// system.
const START_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug)]
pub(super) struct ShimProcess {
    id: u32,
    shim: ShimChild,
    received: Vec<u8>,
    exit_status: Option<ExitStatus>,
    limit_state: LimitState,
    reaped: Option<oneshot::Receiver<()>>,
}

/// The limits that can explain the exit of a server.
#[derive(Clone, Copy, Debug)]
struct LimitState {
    /// Whether CPU time is limited; otherwise SIGXCPU has another sender.
    cpu_limited: bool,
    /// Whether the server exceeded its process limit.
    processes_exceeded: bool,
}

impl LimitState {
    /// Returns the limit that caused the exit if known, else the status.
    fn attribute_exit(self, exit: ExitStatus) -> ExitStatus {
        match exit {
            ExitStatus::Signal(signal) if self.cpu_limited && signal == Signal::XCPU.as_raw() => {
                ExitStatus::LimitExceeded(ProcessLimit::CpuSeconds)
            }
            ExitStatus::Signal(_) if self.processes_exceeded => {
                ExitStatus::LimitExceeded(ProcessLimit::Processes)
            }
            exit => exit,
        }
    }
}

/// The control socket of a shim; keeps neither the shim nor the tree alive.
#[derive(Clone, Debug)]
pub(super) struct ShimControl(Arc<UnixStream>);

impl ShimControl {
    pub(super) fn kill(&self) {
        self.send_command(KILL);
    }

    /// Shuts down the socket, also for all clones; the shim treats this as the exit of the host.
    fn close(&self) {
        let _ = rustix::net::shutdown(&*self.0, Shutdown::Both);
    }

    /// Sends a command byte. The send fails only if thousands of commands are unread; they include
    /// this command.
    fn send_command(&self, command: u8) {
        let _ = rustix::net::send(&*self.0, &[command], SEND_FLAGS);
    }
}

/// The shim process. Dropping it signals the shim that the host is gone, and starts the reaping.
#[derive(Debug)]
struct ShimChild {
    control: ShimControl,
    child: Option<Child>,
    id: u32,
    entries: Vec<LedgerEntry>,
    /// The main process of the server, with its start time where the system reports the time.
    server: Option<(Pid, Option<u64>)>,
    /// Tag of every process of the tree.
    tag: TreeTag,
    tree_gone: bool,
}

impl ShimChild {
    fn start(
        mut command: Command,
        process_tag: TreeTag,
        ledger: Option<&Ledger>,
    ) -> io::Result<Self> {
        let (host_end, shim_end) = std::os::unix::net::UnixStream::pair()?;
        host_end.set_nonblocking(true)?;
        let control = ShimControl(Arc::new(UnixStream::from_std(host_end)?));
        let child = command
            .stdin(OwnedFd::from(shim_end))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let id = child.id();
        let entries =
            record(ledger, ProcessKind::Shim, id, Some(&process_tag)).into_iter().collect();
        Ok(Self {
            control,
            child: Some(child),
            id,
            entries,
            server: None,
            tag: process_tag,
            tree_gone: false,
        })
    }

    /// Starts reaping the shim; `None` if reaping was started before.
    fn reap(&mut self) -> Option<oneshot::Receiver<()>> {
        let mut child = self.child.take()?;
        let entries = std::mem::take(&mut self.entries);
        let is_tree_gone = self.tree_gone;
        let process_tag = self.tag.clone();
        let session = pid(self.id);
        let server = self.server;
        reap(move || {
            let exited = if server.is_none() { terminate_unverified(&mut child) } else { None };
            // The shim is reaped last, so that the system cannot reuse the id of its session.
            let session = session.filter(|_| exited.is_none());
            let is_clean = match exited {
                Some(status) => status.success(),
                None => session.is_some_and(exits_with_success),
            };
            // A shim that exits with a failure was killed and left its tree running.
            if !is_tree_gone && !is_clean {
                let server =
                    server.filter(|(server, start)| crate::tree::start_time(*server) == *start);
                let server = server.map(|(server, _)| server);
                let tag = Some(&process_tag);
                sweep(
                    SweepTarget { session, server, tag, adopted: true, above: None },
                    sweep_deadline(),
                );
            }
            let _ = child.wait();
            drop(entries);
        })
    }

    /// Resumes a shim that the server has stopped.
    fn wake(&self) {
        if let (Some(_), Some(shim)) = (&self.child, pid(self.id)) {
            let _ = rustix::process::kill_process(shim, Signal::CONT);
        }
    }
}

/// Waits until a child exits, without reaping the child; returns whether its exit code is 0.
fn exits_with_success(child: Pid) -> bool {
    let ended = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
    let status = rustix::io::retry_on_intr(|| waitid(WaitId::Pid(child), ended));
    status.is_ok_and(|status| status.is_some_and(|status| status.exit_status() == Some(0)))
}

/// Kills a program that has not proved to be a shim, unless it exits within a second. Returns how
/// the program exited by itself.
fn terminate_unverified(child: &mut Child) -> Option<std::process::ExitStatus> {
    const MAX_POLLS: usize = 200;
    const POLL_INTERVAL: Duration = Duration::from_millis(5);
    for _ in 0..MAX_POLLS {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) => {}
            Err(_) => return None,
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    let _ = child.kill();
    None
}

impl Drop for ShimChild {
    fn drop(&mut self) {
        self.control.close();
        self.wake();
        let _ = self.reap();
    }
}

/// Starts a shim, sends the launch, and waits for the id of the server process.
pub(super) async fn spawn(
    spec: &ProcessSpec,
    supervisor: Command,
    ledger: Option<&Ledger>,
) -> Result<(ShimProcess, StdioPipes), SpawnError> {
    let command = spec.command.as_str();
    let spawn_error = |error: io::Error| SpawnError::supervisor(command, error);
    let tag = TreeTag::new();
    let frame = launch::encode_launch(spec, &tag).map_err(|error| match error.kind() {
        io::ErrorKind::ArgumentListTooLong => SpawnError::TooLarge { command: command.into() },
        _ => SpawnError::other(command, error),
    })?;
    let (pipes, server_ends) = pipes::open().map_err(|error| SpawnError::other(command, error))?;
    let shim = ShimChild::start(supervisor, tag, ledger).map_err(spawn_error)?;
    let buffer = Vec::with_capacity(MAX_REPORT_BYTES);
    let limit_outcome = LimitState {
        cpu_limited: spec.confinement.limits.cpu_seconds.is_some(),
        processes_exceeded: false,
    };
    let mut process = ShimProcess {
        id: 0,
        shim,
        received: buffer,
        exit_status: None,
        limit_state: limit_outcome,
        reaped: None,
    };
    let started = timeout(START_TIMEOUT, async {
        process.shim.control.send_launch(&frame, server_ends).await?;
        process.next_report().await
    });
    match started.await {
        Ok(Ok(Some(Report::Started(id)))) => {
            process.id = id;
            process.shim.server = pid(id).map(|pid| (pid, crate::tree::start_time(pid)));
            process.shim.entries.extend(record(ledger, ProcessKind::Server, id, None));
            Ok((process, pipes))
        }
        Ok(Ok(Some(Report::Failed(LaunchStage::WorkingDirectory, errno)))) => {
            Err(SpawnError::WorkingDirectory {
                command: command.into(),
                source: io::Error::from_raw_os_error(errno),
            })
        }
        Ok(Ok(Some(Report::Failed(LaunchStage::Confinement, errno)))) => {
            Err(SpawnError::confinement(command, launch::describe_errno(errno)))
        }
        Ok(Ok(Some(Report::Failed(LaunchStage::Program, errno)))) => {
            let error = io::Error::from_raw_os_error(errno);
            Err(SpawnError::from_exec(command, error, spec.program.exists()))
        }
        Ok(Ok(_)) => Err(spawn_error(missing_report(io::ErrorKind::UnexpectedEof))),
        Ok(Err(error)) if is_disconnect(error.kind()) => {
            Err(spawn_error(missing_report(error.kind())))
        }
        Ok(Err(error)) => Err(spawn_error(error)),
        Err(_) => Err(spawn_error(missing_report(io::ErrorKind::TimedOut))),
    }
}

fn exit_status(exit: MainExit) -> ExitStatus {
    match exit {
        MainExit::Code(code) => ExitStatus::Code(code),
        MainExit::Signal(signal) => ExitStatus::Signal(signal),
        MainExit::Unknown => ExitStatus::Unknown,
    }
}

/// Returns whether the error means that the program exited or closed its end of the socket.
fn is_disconnect(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::BrokenPipe | io::ErrorKind::ConnectionReset)
}

/// Returns the error for a program that exited, or was silent until the timeout, without a report
/// about the server.
fn missing_report(kind: io::ErrorKind) -> io::Error {
    let message = "the program sent no report about the server; a program other than \
                   `innkeeper-shim` must call `run_if_requested` first in `main`";
    io::Error::new(kind, message)
}

impl ShimControl {
    /// Sends the launch with the server's pipe ends, and closes them in the host.
    async fn send_launch(
        &self,
        frame: &[u8],
        server_ends: pipes::ServerPipeEnds,
    ) -> io::Result<()> {
        let fds =
            [server_ends.stdin.as_fd(), server_ends.stdout.as_fd(), server_ends.stderr.as_fd()];
        let send = || -> io::Result<usize> {
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
            let mut ancillary = SendAncillaryBuffer::new(&mut space);
            ancillary.push(SendAncillaryMessage::ScmRights(&fds));
            let slices = [IoSlice::new(frame)];
            Ok(rustix::net::sendmsg(&*self.0, &slices, &mut ancillary, SEND_FLAGS)?)
        };
        // A new socket has room, and each server can start while one thread starts the next shim. With
        // several threads that start shims, the servers would take CPU from them.
        let has_one_thread = Handle::current().runtime_flavor() == RuntimeFlavor::CurrentThread;
        let at_once = if has_one_thread { send() } else { Err(io::ErrorKind::WouldBlock.into()) };
        let sent = match at_once {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                self.0.async_io(Interest::WRITABLE, send).await?
            }
            sent => sent?,
        };
        let mut rest = &frame[sent..];
        while !rest.is_empty() {
            self.0.writable().await?;
            match self.0.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl ShimProcess {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit_status(&self) -> Option<ExitStatus> {
        self.exit_status
    }

    pub(super) fn kill_handle(&self) -> ShimControl {
        self.shim.control.clone()
    }

    #[cfg(test)]
    pub(super) fn control_socket(&self) -> io::Result<OwnedFd> {
        self.shim.control.0.as_fd().try_clone_to_owned()
    }

    pub(super) fn terminate(&self) {
        self.shim.control.send_command(TERMINATE);
    }

    pub(super) fn kill(&self) {
        self.shim.control.kill();
        self.shim.wake();
    }

    pub(super) async fn wait(&mut self) -> ExitStatus {
        loop {
            if let Some(exit) = self.exit_status {
                return exit;
            }
            self.handle_report().await;
        }
    }

    pub(super) async fn wait_tree(&mut self) {
        while self.reaped.is_none() && self.shim.child.is_some() {
            if !self.handle_report().await {
                // Close the socket so that the host does not wait for reports of a shim that sends
                // invalid data.
                self.shim.control.close();
                self.reaped = self.shim.reap();
            }
        }
        if let Some(reaped) = &mut self.reaped {
            drop(reaped.await);
            self.reaped = None;
        }
    }

    /// Handles the next report; returns `false` at the end of the reports.
    async fn handle_report(&mut self) -> bool {
        match self.next_report().await {
            Ok(Some(Report::Exited(exit))) => {
                self.exit_status = Some(self.limit_state.attribute_exit(exit_status(exit)));
            }
            Ok(Some(Report::TooManyProcesses)) => self.limit_state.processes_exceeded = true,
            Ok(Some(Report::Gone)) => self.shim.tree_gone = true,
            Ok(Some(Report::Started(_) | Report::Failed(..))) => {}
            Ok(None) | Err(_) => {
                self.exit_status.get_or_insert(ExitStatus::Unsupervised);
                return false;
            }
        }
        true
    }

    /// Returns the next report, `None` after the exit of the shim; cancel-safe, because received
    /// bytes are stored.
    async fn next_report(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(end) = self.received.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.received.drain(..=end).collect();
                let report = std::str::from_utf8(&line[..end]).ok().and_then(Report::parse);
                return report.map(Some).ok_or(io::ErrorKind::InvalidData.into());
            }
            if self.received.len() > MAX_REPORT_BYTES {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let control = &self.shim.control.0;
            control.readable().await?;
            let mut bytes = [0; MAX_REPORT_BYTES];
            match control.try_read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.received.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
