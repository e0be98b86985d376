//! A server beside its shim: the host's half of the control socket.

use std::ffi::OsString;
use std::io::{self, IoSlice};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, Shutdown};
use rustix::process::Signal;
use tokio::io::Interest;
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::sweep::{Left, Mark, soon, sweep};
use super::{Pipes, confine, pid, pipes, reap, record};
use crate::ledger::{Entry, Kind, Ledger};
use crate::server::process::{Exit, Launch, Limit, SpawnError};
use crate::shim::wire::{KILL, Part, REPORT_LIMIT, Report, SEND, Start, TERMINATE};

/// How long a shim may take to start the server: it executes two programs, which only a file
/// system that does not answer makes slow.
const START_LIMIT: Duration = Duration::from_secs(20);

/// A server's process and the shim beside it.
#[derive(Debug)]
pub(super) struct Supervised {
    id: u32,
    shim: Shim,
    heard: Vec<u8>,
    exit: Option<Exit>,
    over: Over,
    reaped: Option<oneshot::Receiver<()>>,
}

/// What is known of limits when the server ends.
#[derive(Clone, Copy, Debug)]
struct Over {
    /// Whether its processor time is limited: else that signal has another sender.
    cpu: bool,
    /// Whether it had too many processes.
    processes: bool,
}

impl Over {
    /// How it ended, by its limit where that is known.
    fn exit(self, exit: Exit) -> Exit {
        match exit {
            Exit::Signal(signal) if self.cpu && signal == Signal::XCPU.as_raw() => {
                Exit::OverLimit(Limit::CpuSeconds)
            }
            Exit::Signal(_) if self.processes => Exit::OverLimit(Limit::Processes),
            exit => exit,
        }
    }
}

/// The way to a shim; keeps neither it nor the tree alive.
#[derive(Clone, Debug)]
pub(super) struct Control(Arc<UnixStream>);

impl Control {
    pub(super) fn kill(&self) {
        self.ask(KILL);
    }

    /// Ends the conversation, also for the clones; the shim takes it for the end of the host.
    fn close(&self) {
        let _ = rustix::net::shutdown(&*self.0, Shutdown::Both);
    }

    /// One byte always fits unless thousands are unread, and then the same was asked before.
    fn ask(&self, what: u8) {
        let _ = rustix::net::send(&*self.0, &[what], SEND);
    }
}

/// The shim process. Dropping it tells the shim that the host is gone and has it reaped.
#[derive(Debug)]
struct Shim {
    control: Control,
    child: Option<Child>,
    id: u32,
    entries: Vec<Entry>,
    server: Option<u32>,
    /// What each process of the tree has in its environment, unless it took it out.
    mark: Mark,
    gone: bool,
}

impl Shim {
    #[expect(clippy::disallowed_methods, reason = "this is where a shim's process is made")]
    fn start(
        program: &PathBuf,
        args: &[OsString],
        mark: Mark,
        ledger: Option<&Ledger>,
    ) -> io::Result<Self> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        let control = Control(Arc::new(UnixStream::from_std(ours)?));
        let child = Command::new(program)
            .args(args)
            .stdin(OwnedFd::from(theirs))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let id = child.id();
        let entries = record(ledger, Kind::Shim, id).into_iter().collect();
        Ok(Self { control, child: Some(child), id, entries, server: None, mark, gone: false })
    }

    /// Has the shim waited for; `None` if that was asked before.
    fn reap(&mut self) -> Option<oneshot::Receiver<()>> {
        let mut child = self.child.take()?;
        let entries = std::mem::take(&mut self.entries);
        let (gone, mark) = (self.gone, self.mark.clone());
        let (session, server) = (pid(self.id), self.server.and_then(pid));
        reap(move || {
            if server.is_none() {
                end_unproven(&mut child);
            }
            let clean = child.wait().is_ok_and(|status| status.success());
            // A shim that did not end by itself was killed, and left the tree behind.
            if !gone && !clean {
                sweep(Left { session, server, mark: Some(&mark) }, soon());
            }
            drop(entries);
        })
    }

    /// Lets a shim that the server has stopped go on.
    fn wake(&self) {
        if let (Some(_), Some(shim)) = (&self.child, pid(self.id)) {
            let _ = rustix::process::kill_process(shim, Signal::CONT);
        }
    }
}

/// Ends a program that has not shown to be a shim, unless it ends by itself within a second.
fn end_unproven(child: &mut Child) {
    const ROUNDS: usize = 200;
    const PAUSE: Duration = Duration::from_millis(5);
    for _ in 0..ROUNDS {
        if !matches!(child.try_wait(), Ok(None)) {
            return;
        }
        std::thread::sleep(PAUSE);
    }
    drop(child.kill());
}

impl Drop for Shim {
    fn drop(&mut self) {
        self.control.close();
        self.wake();
        drop(self.reap());
    }
}

/// Starts a shim, hands it the launch, and waits for the server's process id.
pub(super) async fn spawn(
    launch: &Launch,
    (program, args): (&PathBuf, &[OsString]),
    ledger: Option<&Ledger>,
) -> Result<(Supervised, Pipes), SpawnError> {
    let command = launch.command.as_str();
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::ArgumentListTooLong => SpawnError::TooLarge { command: command.into() },
        _ => SpawnError::supervisor(command, error),
    };
    let mark = Mark::new();
    let frame = frame(launch, &mark, program, args).map_err(failed)?;
    let (pipes, ends) = pipes::open().map_err(|error| SpawnError::other(command, error))?;
    let shim = Shim::start(program, args, mark, ledger).map_err(failed)?;
    let heard = Vec::with_capacity(REPORT_LIMIT);
    let over = Over { cpu: launch.bounds.limits.cpu_seconds.is_some(), processes: false };
    let mut process = Supervised { id: 0, shim, heard, exit: None, over, reaped: None };
    let started = timeout(START_LIMIT, async {
        process.shim.control.send(&frame, ends).await?;
        process.report().await
    });
    match started.await {
        Ok(Ok(Some(Report::Started(id)))) => {
            process.id = id;
            process.shim.server = Some(id);
            process.shim.entries.extend(record(ledger, Kind::Server, id));
            Ok((process, pipes))
        }
        Ok(Ok(Some(Report::Failed(Part::Directory, errno)))) => Err(SpawnError::Directory {
            command: command.into(),
            source: io::Error::from_raw_os_error(errno),
        }),
        Ok(Ok(Some(Report::Failed(Part::Bounds, errno)))) => {
            Err(SpawnError::bounds(command, confine::words(errno)))
        }
        Ok(Ok(Some(Report::Failed(Part::Program, errno)))) => {
            let error = io::Error::from_raw_os_error(errno);
            Err(SpawnError::from_exec(command, error, launch.program.exists()))
        }
        Ok(Ok(_)) => Err(failed(io::ErrorKind::UnexpectedEof.into())),
        Ok(Err(error)) => Err(failed(error)),
        Err(_) => Err(failed(io::ErrorKind::TimedOut.into())),
    }
}

fn frame(launch: &Launch, mark: &Mark, shim: &Path, shim_args: &[OsString]) -> io::Result<Vec<u8>> {
    let env = launch.env.iter().map(|(k, v)| (k.as_os_str().into(), v.as_os_str().into()));
    let start = Start {
        program: launch.program.as_os_str().into(),
        args: launch.args.iter().map(|arg| arg.as_os_str().into()).collect(),
        env: env.chain([mark.variable()]).collect(),
        cwd: launch.cwd.as_ref().map(|cwd| cwd.as_os_str().into()),
        confine: confine::confine(&launch.bounds, shim, shim_args)?,
        processes: launch.bounds.limits.processes,
    };
    start.encode()
}

impl Control {
    /// Sends the launch with the server's ends attached, and closes them here.
    async fn send(&self, frame: &[u8], ends: pipes::Ends) -> io::Result<()> {
        let fds = [ends.stdin.as_fd(), ends.stdout.as_fd(), ends.stderr.as_fd()];
        let sent = self
            .0
            .async_io(Interest::WRITABLE, || {
                let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(3))];
                let mut ancillary = SendAncillaryBuffer::new(&mut space);
                ancillary.push(SendAncillaryMessage::ScmRights(&fds));
                let slices = [IoSlice::new(frame)];
                Ok(rustix::net::sendmsg(&*self.0, &slices, &mut ancillary, SEND)?)
            })
            .await?;
        let mut rest = &frame[sent..];
        while !rest.is_empty() {
            self.0.writable().await?;
            match self.0.try_write(rest) {
                Ok(written) => rest = &rest[written..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Supervised {
    pub(super) fn id(&self) -> u32 {
        self.id
    }

    pub(super) fn exit(&self) -> Option<Exit> {
        self.exit
    }

    pub(super) fn killer(&self) -> Control {
        self.shim.control.clone()
    }

    #[cfg(test)]
    pub(super) fn control_socket(&self) -> io::Result<OwnedFd> {
        self.shim.control.0.as_fd().try_clone_to_owned()
    }

    pub(super) fn terminate(&self) {
        self.shim.control.ask(TERMINATE);
    }

    pub(super) fn kill(&self) {
        self.shim.control.kill();
        self.shim.wake();
    }

    pub(super) async fn exited(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.exit {
                return exit;
            }
            self.hear().await;
        }
    }

    pub(super) async fn gone(&mut self) {
        while self.reaped.is_none() && self.shim.child.is_some() {
            if !self.hear().await {
                // A shim that is not understood is not to be waited for as if it were.
                self.shim.control.close();
                self.reaped = self.shim.reap();
            }
        }
        if let Some(reaped) = &mut self.reaped {
            drop(reaped.await);
            self.reaped = None;
        }
    }

    /// Takes in the next report; `false` once there will be none.
    async fn hear(&mut self) -> bool {
        match self.report().await {
            Ok(Some(Report::Exited(exit))) => self.exit = Some(self.over.exit(exit)),
            Ok(Some(Report::TooMany)) => self.over.processes = true,
            Ok(Some(Report::Gone)) => self.shim.gone = true,
            Ok(Some(Report::Started(_) | Report::Failed(..))) => {}
            Ok(None) | Err(_) => {
                self.exit.get_or_insert(Exit::Unsupervised);
                return false;
            }
        }
        true
    }

    /// The next report, `None` when the shim has ended; cancel-safe, as what was read is kept.
    async fn report(&mut self) -> io::Result<Option<Report>> {
        loop {
            if let Some(end) = self.heard.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.heard.drain(..=end).collect();
                let report = std::str::from_utf8(&line[..end]).ok().and_then(Report::parse);
                return report.map(Some).ok_or(io::ErrorKind::InvalidData.into());
            }
            if self.heard.len() > REPORT_LIMIT {
                return Err(io::ErrorKind::InvalidData.into());
            }
            let control = &self.shim.control.0;
            control.readable().await?;
            let mut bytes = [0; REPORT_LIMIT];
            match control.try_read(&mut bytes) {
                Ok(0) => return Ok(None),
                Ok(count) => self.heard.extend_from_slice(&bytes[..count]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => return Ok(None),
                Err(error) => return Err(error),
            }
        }
    }
}
