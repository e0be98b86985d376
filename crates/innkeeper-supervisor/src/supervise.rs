//! The main loop of the supervisor: waits for events and terminates the tree.

use alloc::vec::Vec;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{self, Errno};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use crate::launch::{self, ReceivedLaunch};
use crate::launch_request::LaunchRequest;
use crate::signals::Signals;
use crate::system::{clock_milliseconds, close_on_exec, standard_input};
use crate::wire::{KILL, MainExit, Report, SEND_FLAGS, TERMINATE};

/// Milliseconds that descendants may outlive the main process after a termination request. A host
/// kills the server at the end of its grace period, which is earlier unless set to more than a
/// minute.
const LINGER_MILLISECONDS: u64 = 30_000;

/// Milliseconds between two rounds of kills while the rounds have an effect.
const INITIAL_BACKOFF_MILLISECONDS: u64 = 1;

/// Maximum milliseconds between two rounds, for processes that cannot be killed: stuck in the kernel
/// or running as another user.
const MAX_BACKOFF_MILLISECONDS: u64 = 250;

/// Milliseconds between process counts in a tree with a process limit: a chain of forks cannot grow
/// beyond the reach of one round of kills in this time.
const COUNT_MILLISECONDS: u64 = 200;

/// Maximum number of processes reaped before the next round of kills, so that a tree that starts
/// processes quickly cannot delay the round.
const REAP_BATCH: usize = 1024;

/// Process name in process lists; Linux keeps 15 bytes.
#[cfg(target_os = "linux")]
const PROCESS_NAME: &core::ffi::CStr = c"innkeeper-shim";

/// Runs the supervisor until the tree is gone. Standard input is the control socket. Leaves the
/// session, and changes signals and settings of the whole process: the process does nothing else.
///
/// # Errors
/// Standard input is not the socket of a host, or the host sent no launch.
pub fn run() -> Result<(), Errno> {
    let signals = Signals::install()?;
    isolate()?;
    let host_pidfd = open_host_pidfd();
    let control = standard_input();
    let Some(received) = launch::receive(control)? else { return Ok(()) };
    let ReceivedLaunch { body, streams } = received;
    let launch = LaunchRequest::parse(&body).ok_or(Errno::BADMSG)?;
    let flags = rustix::fs::fcntl_getfl(control)?;
    rustix::fs::fcntl_setfl(control, flags | rustix::fs::OFlags::NONBLOCK)?;
    let max_processes = launch.max_processes;
    match launch::start(&launch, streams) {
        Err((stage, error)) => {
            send_report(control, Report::Failed(stage, error.raw_os_error()));
        }
        Ok(main_pid) => {
            drop(launch);
            drop(body);
            let id = main_pid.as_raw_nonzero().get().unsigned_abs();
            send_report(control, Report::Started(id));
            let phase = SupervisionPhase::Serving;
            Supervision {
                control,
                signals,
                host_pidfd,
                main_pid,
                main_ended: false,
                max_processes,
                phase,
            }
            .run();
        }
    }
    Ok(())
}

/// Leaves the terminal, closes inherited files for the server, becomes the subreaper of the tree,
/// and hides the supervisor's environment from the server.
///
/// Only the new session is mandatory: a tree in the host's session could access the host's
/// terminal. Other failures are ignored.
fn isolate() -> io::Result<()> {
    close_inherited();
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
        // Distinguish a program that is its own supervisor from the host process.
        let _ = rustix::thread::set_name(PROCESS_NAME);
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    Ok(())
}

/// First descriptor after the standard streams.
const FIRST_INHERITED: i32 = 3;

/// Closes each file that the supervisor inherited when the server is executed.
#[cfg(target_os = "linux")]
fn close_inherited() {
    if crate::system::close_range_on_exec(FIRST_INHERITED).is_err() {
        crate::tree::for_each_descriptor(|descriptor| {
            if descriptor >= FIRST_INHERITED {
                close_on_exec(descriptor);
            }
        });
    }
}

/// Closes each file that the supervisor inherited when the server is executed.
#[cfg(not(target_os = "linux"))]
fn close_inherited() {
    /// Maximum number of descriptors to mark.
    const MAX_DESCRIPTORS: u64 = 1 << 16;
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let limit = limit.unwrap_or(MAX_DESCRIPTORS).min(MAX_DESCRIPTORS);
    (FIRST_INHERITED..i32::try_from(limit).unwrap_or(FIRST_INHERITED)).for_each(close_on_exec);
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
fn send_report(control: BorrowedFd<'_>, report: Report) {
    let _ = rustix::net::send(control, report.to_line().as_bytes(), SEND_FLAGS);
}

#[derive(Clone, Copy)]
enum SupervisionPhase {
    /// The server is running.
    Serving,
    /// The tree has received a termination request.
    Terminating,
    /// The main process has exited after a termination request; the rest has time until the
    /// deadline, in milliseconds of the clock.
    Lingering { deadline: u64 },
    /// The tree is being killed; `backoff` is the pause after the next round in milliseconds.
    Killing { backoff: u64 },
}

struct Supervision<'a> {
    control: BorrowedFd<'a>,
    signals: Signals,
    host_pidfd: Option<OwnedFd>,
    main_pid: Pid,
    /// Whether the main process was reaped; the system may reuse its id.
    main_ended: bool,
    /// Maximum number of processes in the tree.
    max_processes: Option<u64>,
    phase: SupervisionPhase,
}

impl Supervision<'_> {
    fn run(mut self) {
        while self.reap() {
            self.enforce_process_limit();
            let wait = match self.phase {
                SupervisionPhase::Serving | SupervisionPhase::Terminating => {
                    self.max_processes.map(|_| COUNT_MILLISECONDS)
                }
                SupervisionPhase::Lingering { deadline: until } => {
                    Some(until.saturating_sub(clock_milliseconds()))
                }
                SupervisionPhase::Killing { backoff: delay } => {
                    self.kill_round();
                    let backoff = (delay * 2).min(MAX_BACKOFF_MILLISECONDS);
                    self.phase = SupervisionPhase::Killing { backoff };
                    Some(delay)
                }
            };
            self.wait_for_event(wait);
            if matches!(self.phase, SupervisionPhase::Lingering { deadline } if deadline <= clock_milliseconds())
            {
                self.start_killing();
            }
        }
        // Without adoption, only the process group identifies the rest of the server.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(self.main_pid, Signal::KILL);
        send_report(self.control, Report::Gone);
    }

    /// Reaps exited processes; returns whether processes of the tree remain.
    fn reap(&mut self) -> bool {
        for _ in 0..REAP_BATCH {
            match io::retry_on_intr(|| rustix::process::wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) => {
                    if pid == self.main_pid {
                        send_report(self.control, Report::Exited(main_exit(status)));
                        self.handle_main_exit();
                    }
                    if let SupervisionPhase::Killing { backoff: delay } = &mut self.phase {
                        *delay = INITIAL_BACKOFF_MILLISECONDS;
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
                let deadline = clock_milliseconds().saturating_add(LINGER_MILLISECONDS);
                self.phase = SupervisionPhase::Lingering { deadline };
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
        for_each_descendant(|_| count += 1);
        if count > allowed {
            send_report(self.control, Report::TooManyProcesses);
            self.start_killing();
        }
    }

    fn start_killing(&mut self) {
        if !matches!(self.phase, SupervisionPhase::Killing { .. }) {
            self.phase = SupervisionPhase::Killing { backoff: INITIAL_BACKOFF_MILLISECONDS };
        }
    }

    /// Waits for an event, at most for `limit` milliseconds.
    fn wait_for_event(&mut self, limit: Option<u64>) {
        let killing = matches!(self.phase, SupervisionPhase::Killing { .. });
        let limit = limit.map(timespec);
        // While the tree is killed, only the exit of a child matters.
        let host = self.host_pidfd.as_ref().unwrap_or(&self.signals.child);
        let mut watched = [
            PollFd::new(&self.signals.child, PollFlags::IN),
            PollFd::from_borrowed_fd(self.control, PollFlags::IN),
            PollFd::new(&self.signals.stop, PollFlags::IN),
            PollFd::new(host, PollFlags::IN),
        ];
        let count = match (killing, &self.host_pidfd) {
            (true, _) => 1,
            (false, None) => 3,
            (false, Some(_)) => 4,
        };
        let watched = watched.get_mut(..count).unwrap_or_default();
        let polled = poll(watched, limit.as_ref());
        let happened = |index: usize| watched.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let child = happened(0);
        let control = happened(1);
        let limit_reached = happened(2) || happened(3);
        if child {
            self.signals.drain_child();
        }
        if control {
            self.handle_command();
        }
        match polled {
            Ok(_) if limit_reached => self.start_killing(),
            Ok(_) | Err(Errno::INTR) => {}
            // A supervisor that cannot wait cannot supervise the server.
            Err(_) => {
                self.start_killing();
                let _ = rustix::thread::nanosleep(&timespec(INITIAL_BACKOFF_MILLISECONDS));
            }
        }
    }

    /// Handles commands of the host; the exit of the host terminates the tree.
    fn handle_command(&mut self) {
        let mut commands = [0; 64];
        match io::read(self.control, &mut commands) {
            Ok(0) => self.start_killing(),
            Ok(count) => {
                let commands = commands.get(..count).unwrap_or_default();
                if commands.contains(&KILL) {
                    self.start_killing();
                } else if commands.contains(&TERMINATE) {
                    self.terminate();
                }
            }
            Err(Errno::AGAIN | Errno::INTR) => {}
            Err(_) => self.start_killing(),
        }
    }

    /// Sends SIGTERM to every process; continues stopped processes so that they can exit.
    fn terminate(&mut self) {
        if matches!(self.phase, SupervisionPhase::Serving) {
            self.phase = SupervisionPhase::Terminating;
        }
        let mut members = Vec::new();
        for_each_descendant(|pid| members.push(pid));
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal_all(&members, signal);
        }
    }

    /// Stops every process as soon as it is found, so that it cannot fork, then kills all of them.
    fn kill_round(&self) {
        let mut members = Vec::new();
        for_each_descendant(|pid| {
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

/// Calls the closure for every process of the tree.
#[cfg(target_os = "linux")]
fn for_each_descendant(visit: impl FnMut(Pid)) {
    crate::tree::for_each_descendant(rustix::process::getpid(), visit);
}

/// Finds no process: this system does not list the processes of a tree.
#[cfg(not(target_os = "linux"))]
fn for_each_descendant(_visit: impl FnMut(Pid)) {}

fn main_exit(status: WaitStatus) -> MainExit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => MainExit::Code(code),
        (None, Some(signal)) => MainExit::Signal(signal),
        (None, None) => MainExit::Unknown,
    }
}

fn timespec(milliseconds: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(milliseconds / 1_000).unwrap_or(i64::MAX),
        tv_nsec: (milliseconds % 1_000 * 1_000_000) as _,
    }
}
