//! The main loop of the shim: waits for events and terminates the tree.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::signals::Signals;
use super::wire::{KILL, SEND_FLAGS, ShimReport, TERMINATE};
use super::{launch, tree};
use crate::ExitStatus;

/// Maximum time that descendants may outlive the main process after a termination request. A host
/// kills the server at the end of its grace period, which is earlier unless set to more than a
/// minute.
const LINGER_TIMEOUT: Duration = Duration::from_secs(30);

/// Pause between two rounds of kills while the rounds have an effect.
const INITIAL_BACKOFF: Duration = Duration::from_millis(1);

/// Maximum pause between two rounds, for processes that cannot be killed: stuck in the kernel or
/// running as another user.
const MAX_BACKOFF: Duration = Duration::from_millis(250);

/// Interval of process counts in a tree with a process limit: a chain of forks cannot grow beyond
/// the reach of one round of kills in this time.
const COUNT_INTERVAL: Duration = Duration::from_millis(200);

/// Maximum number of processes reaped before the next round of kills, so that a tree that starts
/// processes quickly cannot delay the round.
const REAP_BATCH: usize = 1024;

/// Process name in process lists; Linux keeps 15 bytes.
#[cfg(target_os = "linux")]
const PROCESS_NAME: &str = "innkeeper-shim";

/// Runs the supervisor until the tree is gone.
pub(super) fn run() -> io::Result<()> {
    let signals = Signals::install()?;
    isolate()?;
    let host_pidfd = open_host_pidfd();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(received) = launch::receive(&control)? else { return Ok(()) };
    control.set_nonblocking(true)?;
    let max_processes = received.request.processes;
    match launch::start(received) {
        Err((stage, errno)) => send_report(&control, ShimReport::Failed(stage, errno)),
        Ok(main_pid) => {
            send_report(
                &control,
                ShimReport::Started(main_pid.as_raw_nonzero().get().unsigned_abs()),
            );
            let phase = SupervisionPhase::Serving;
            let main_ended = false;
            Supervision {
                control,
                signals,
                host_pidfd,
                main_pid,
                main_ended,
                max_processes,
                phase,
            }
            .run();
        }
    }
    Ok(())
}

/// Leaves the terminal, closes inherited files for the server, becomes the subreaper of the tree,
/// and hides the shim's environment (the host's) from the server.
///
/// Only the new session is mandatory: a tree in the host's session could access the host's
/// terminal. Other failures are ignored.
fn isolate() -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
        // Distinguish a program that is its own supervisor from the host process.
        drop(std::fs::write("/proc/self/comm", PROCESS_NAME));
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    Ok(())
}

/// Returns a descriptor that becomes readable when the host exits. A process forked by the host can
/// hold a copy of the control socket, and would hide the end of that socket.
#[cfg(target_os = "linux")]
fn open_host_pidfd() -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, getppid, pidfd_open};
    pidfd_open(getppid()?, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn open_host_pidfd() -> Option<OwnedFd> {
    None
}

/// Sends a report; ignores a failure, because the host is then gone.
fn send_report(control: &UnixStream, report: ShimReport) {
    let _ = rustix::net::send(control, report.to_line().as_bytes(), SEND_FLAGS);
}

#[derive(Clone, Copy)]
enum SupervisionPhase {
    /// The server is running.
    Serving,
    /// The tree has received a termination request.
    Terminating,
    /// The main process has exited after a termination request; the rest has time until the
    /// deadline.
    Lingering { deadline: Instant },
    /// The tree is being killed; `backoff` is the pause after the next round.
    Killing { backoff: Duration },
}

struct Supervision {
    control: UnixStream,
    signals: Signals,
    host_pidfd: Option<OwnedFd>,
    main_pid: Pid,
    /// Whether the main process was reaped; the system may reuse its id.
    main_ended: bool,
    /// Maximum number of processes in the tree.
    max_processes: Option<u64>,
    phase: SupervisionPhase,
}

impl Supervision {
    fn run(mut self) {
        while self.reap() {
            self.enforce_process_limit();
            let wait = match self.phase {
                SupervisionPhase::Serving | SupervisionPhase::Terminating => {
                    self.max_processes.map(|_| COUNT_INTERVAL)
                }
                SupervisionPhase::Lingering { deadline: until } => {
                    Some(until.saturating_duration_since(now()))
                }
                SupervisionPhase::Killing { backoff: delay } => {
                    self.kill_round();
                    self.phase =
                        SupervisionPhase::Killing { backoff: (delay * 2).min(MAX_BACKOFF) };
                    Some(delay)
                }
            };
            self.wait_for_event(wait);
            if matches!(self.phase, SupervisionPhase::Lingering { deadline } if deadline <= now()) {
                self.start_killing();
            }
        }
        // Without adoption, only the process group identifies the rest of the server.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(self.main_pid, Signal::KILL);
        send_report(&self.control, ShimReport::Gone);
    }

    /// Reaps exited processes; returns whether processes of the tree remain.
    fn reap(&mut self) -> bool {
        for _ in 0..REAP_BATCH {
            match rustix::io::retry_on_intr(|| rustix::process::wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) => {
                    if pid == self.main_pid {
                        send_report(&self.control, ShimReport::Exited(exit_status(status)));
                        self.handle_main_exit();
                    }
                    if let SupervisionPhase::Killing { backoff: delay } = &mut self.phase {
                        *delay = INITIAL_BACKOFF;
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn handle_main_exit(&mut self) {
        self.main_ended = true;
        match self.phase {
            SupervisionPhase::Terminating => {
                self.phase = SupervisionPhase::Lingering { deadline: now() + LINGER_TIMEOUT }
            }
            SupervisionPhase::Serving | SupervisionPhase::Lingering { .. } => self.start_killing(),
            SupervisionPhase::Killing { .. } => {}
        }
    }

    /// Kills a tree that exceeds its process limit.
    fn enforce_process_limit(&mut self) {
        let Some(allowed) = self.max_processes else { return };
        if matches!(self.phase, SupervisionPhase::Killing { .. }) {
            return;
        }
        let mut count = 0;
        tree::for_each_descendant(rustix::process::getpid(), |_| count += 1);
        if count > allowed {
            send_report(&self.control, ShimReport::TooManyProcesses);
            self.start_killing();
        }
    }

    fn start_killing(&mut self) {
        if !matches!(self.phase, SupervisionPhase::Killing { .. }) {
            self.phase = SupervisionPhase::Killing { backoff: INITIAL_BACKOFF };
        }
    }

    /// Waits for an event, at most for `limit`.
    fn wait_for_event(&mut self, limit: Option<Duration>) {
        let killing = matches!(self.phase, SupervisionPhase::Killing { .. });
        let mut watched = vec![PollFd::new(&self.signals.child, PollFlags::IN)];
        if !killing {
            watched.push(PollFd::new(&self.control, PollFlags::IN));
            watched.push(PollFd::new(&self.signals.stop, PollFlags::IN));
            watched.extend(self.host_pidfd.iter().map(|host| PollFd::new(host, PollFlags::IN)));
        }
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let polled = poll(&mut watched, limit.as_ref());
        let happened = |index: usize| watched.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let (child, control) = (happened(0), happened(1));
        let limit_reached = happened(2) || happened(3);
        if child {
            self.signals.drain_child();
        }
        if control {
            self.handle_command();
        }
        match polled {
            Ok(_) if limit_reached => self.start_killing(),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // A shim that cannot wait cannot supervise the server.
            Err(_) => {
                self.start_killing();
                std::thread::sleep(INITIAL_BACKOFF);
            }
        }
    }

    /// Handles commands of the host; the exit of the host terminates the tree.
    fn handle_command(&mut self) {
        let mut commands = [0; 64];
        match self.control.read(&mut commands) {
            Ok(0) => self.start_killing(),
            Ok(count) if commands[..count].contains(&KILL) => self.start_killing(),
            Ok(count) if commands[..count].contains(&TERMINATE) => self.terminate(),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.start_killing(),
        }
    }

    /// Sends SIGTERM to every process; continues stopped processes so that they can exit.
    fn terminate(&mut self) {
        if matches!(self.phase, SupervisionPhase::Serving) {
            self.phase = SupervisionPhase::Terminating;
        }
        let members = tree::descendants(rustix::process::getpid());
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal_all(&members, signal);
        }
    }

    /// Stops every process as soon as it is found, so that it cannot fork, then kills all of them.
    fn kill_round(&self) {
        let mut members = Vec::new();
        tree::for_each_descendant(rustix::process::getpid(), |pid| {
            let _ = rustix::process::kill_process(pid, Signal::STOP);
            members.push(pid);
        });
        self.signal_all(&members, Signal::KILL);
    }

    /// Signals all processes; uses the main process's group if the tree cannot be listed.
    fn signal_all(&self, members: &[Pid], signal: Signal) {
        if members.is_empty() && !self.main_ended {
            let _ = rustix::process::kill_process_group(self.main_pid, signal);
        }
        for pid in members {
            let _ = rustix::process::kill_process(*pid, signal);
        }
    }
}

fn exit_status(status: WaitStatus) -> ExitStatus {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => ExitStatus::Code(code),
        (None, Some(signal)) => ExitStatus::Signal(signal),
        (None, None) => ExitStatus::Unknown,
    }
}

#[expect(clippy::disallowed_methods, reason = "the shim has no runtime and no test clock")]
fn now() -> Instant {
    Instant::now()
}
