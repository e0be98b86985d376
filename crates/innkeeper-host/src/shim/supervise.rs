//! The shim's one loop: it waits for the host, the tree and signals, and ends the tree.

use std::io::{self, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

use super::signals::Signals;
use super::wire::{KILL, Report, SEND, TERMINATE};
use super::{launch, tree};
use crate::server::process::Exit;

/// How long descendants may outlive the main process once the tree was asked to end. A host that
/// stops a server kills it when its grace is over, which is sooner unless it was set above a minute.
const LINGER: Duration = Duration::from_secs(30);

/// The pause between two rounds of killing while rounds have an effect.
const PAUSE: Duration = Duration::from_millis(1);

/// The longest pause between two rounds: a process that cannot be killed, one stuck in the kernel
/// or running as another user, is tried again this often.
const PAUSE_LIMIT: Duration = Duration::from_millis(250);

/// How often the processes of a tree are counted that may have so many only: a chain of forks gets
/// no further in that time than one round of killing reaches.
const COUNT: Duration = Duration::from_millis(200);

/// How many ended processes are taken before the next round of killing, so that a tree that starts
/// processes faster than they are counted cannot put that round off.
const REAP_BATCH: usize = 1024;

/// What lists of processes show, in the 15 bytes that Linux keeps.
#[cfg(target_os = "linux")]
const NAME: &str = "innkeeper-shim";

/// Runs as the supervisor until the tree is gone.
pub(super) fn run() -> io::Result<()> {
    let signals = Signals::install()?;
    isolate()?;
    let host = host_process();
    let control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let Some(received) = launch::receive(&control)? else { return Ok(()) };
    control.set_nonblocking(true)?;
    let processes = received.start.processes;
    match launch::start(received) {
        Err((part, errno)) => report(&control, Report::Failed(part, errno)),
        Ok(main) => {
            report(&control, Report::Started(main.as_raw_nonzero().get().unsigned_abs()));
            let phase = Phase::Serving;
            let main_ended = false;
            Supervision { control, signals, host, main, main_ended, processes, phase }.run();
        }
    }
    Ok(())
}

/// Leaves the terminal, keeps files that the application has left open from the server, adopts
/// orphans of the tree, and hides the shim's environment (which is the host's) from the server.
///
/// Only the session must not be refused: a tree in the host's session could reach the host's
/// terminal. The rest is done without.
fn isolate() -> io::Result<()> {
    close_fds::set_fds_cloexec(3, &[]);
    rustix::process::setsid()?;
    #[cfg(target_os = "linux")]
    {
        use rustix::process::{DumpableBehavior, set_child_subreaper, set_dumpable_behavior};
        // A program that supervises through itself is not to be mistaken for another host.
        drop(std::fs::write("/proc/self/comm", NAME));
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        let _ = set_dumpable_behavior(DumpableBehavior::NotDumpable);
    }
    Ok(())
}

/// A handle that becomes readable when the host ends. A copy of the control socket in a process
/// that the host forked would keep the end of that socket from being seen.
#[cfg(target_os = "linux")]
fn host_process() -> Option<OwnedFd> {
    use rustix::process::{PidfdFlags, getppid, pidfd_open};
    pidfd_open(getppid()?, PidfdFlags::empty()).ok()
}

#[cfg(not(target_os = "linux"))]
fn host_process() -> Option<OwnedFd> {
    None
}

/// A report that cannot be sent has nobody to read it.
fn report(control: &UnixStream, report: Report) {
    let _ = rustix::net::send(control, report.line().as_bytes(), SEND);
}

#[derive(Clone, Copy)]
enum Phase {
    /// The server runs.
    Serving,
    /// The tree was asked to end.
    Asked,
    /// The tree was asked to end, its main process has, and the rest may take until then.
    Lingering { until: Instant },
    /// The tree is being killed, with this pause after the next round.
    Killing { pause: Duration },
}

struct Supervision {
    control: UnixStream,
    signals: Signals,
    host: Option<OwnedFd>,
    main: Pid,
    /// Its id may mean another process from then on.
    main_ended: bool,
    /// How many processes the tree may have.
    processes: Option<u64>,
    phase: Phase,
}

impl Supervision {
    fn run(mut self) {
        while self.reap() {
            self.count();
            let wait = match self.phase {
                Phase::Serving | Phase::Asked => self.processes.map(|_| COUNT),
                Phase::Lingering { until } => Some(until.saturating_duration_since(now())),
                Phase::Killing { pause } => {
                    self.kill_round();
                    self.phase = Phase::Killing { pause: (pause * 2).min(PAUSE_LIMIT) };
                    Some(pause)
                }
            };
            self.wait(wait);
            if matches!(self.phase, Phase::Lingering { until } if until <= now()) {
                self.kill();
            }
        }
        // Without adoption, only the group is left to say what else belonged to the server.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(self.main, Signal::KILL);
        report(&self.control, Report::Gone);
    }

    /// Takes the status of ended processes; whether any process of the tree is left.
    fn reap(&mut self) -> bool {
        for _ in 0..REAP_BATCH {
            match rustix::io::retry_on_intr(|| rustix::process::wait(WaitOptions::NOHANG)) {
                Ok(Some((pid, status))) => {
                    if pid == self.main {
                        report(&self.control, Report::Exited(exit(status)));
                        self.main_exited();
                    }
                    if let Phase::Killing { pause } = &mut self.phase {
                        *pause = PAUSE;
                    }
                }
                Ok(None) => return true,
                Err(_) => return false,
            }
        }
        true
    }

    fn main_exited(&mut self) {
        self.main_ended = true;
        match self.phase {
            Phase::Asked => self.phase = Phase::Lingering { until: now() + LINGER },
            Phase::Serving | Phase::Lingering { .. } => self.kill(),
            Phase::Killing { .. } => {}
        }
    }

    /// Ends a tree that has more processes than it may have.
    fn count(&mut self) {
        let Some(allowed) = self.processes else { return };
        if matches!(self.phase, Phase::Killing { .. }) {
            return;
        }
        let mut count = 0;
        tree::each_descendant(rustix::process::getpid(), |_| count += 1);
        if count > allowed {
            report(&self.control, Report::TooMany);
            self.kill();
        }
    }

    fn kill(&mut self) {
        if !matches!(self.phase, Phase::Killing { .. }) {
            self.phase = Phase::Killing { pause: PAUSE };
        }
    }

    /// Waits until something happens, at most for `limit`.
    fn wait(&mut self, limit: Option<Duration>) {
        let killing = matches!(self.phase, Phase::Killing { .. });
        let mut watched = vec![PollFd::new(&self.signals.child, PollFlags::IN)];
        if !killing {
            watched.push(PollFd::new(&self.control, PollFlags::IN));
            watched.push(PollFd::new(&self.signals.stop, PollFlags::IN));
            watched.extend(self.host.iter().map(|host| PollFd::new(host, PollFlags::IN)));
        }
        let limit = limit.map(|limit| Timespec {
            tv_sec: limit.as_secs().try_into().unwrap_or(i64::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        });
        let polled = poll(&mut watched, limit.as_ref());
        let happened = |index: usize| watched.get(index).is_some_and(|fd| !fd.revents().is_empty());
        let (child, control) = (happened(0), happened(1));
        let over = happened(2) || happened(3);
        if child {
            self.signals.drain_child();
        }
        if control {
            self.obey();
        }
        match polled {
            Ok(_) if over => self.kill(),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            // A shim that cannot wait cannot keep its promise to a running server.
            Err(_) => {
                self.kill();
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Reads what the host asks for; a host that is gone asks for the end.
    fn obey(&mut self) {
        let mut asked = [0; 64];
        match self.control.read(&mut asked) {
            Ok(0) => self.kill(),
            Ok(count) if asked[..count].contains(&KILL) => self.kill(),
            Ok(count) if asked[..count].contains(&TERMINATE) => self.terminate(),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(_) => self.kill(),
        }
    }

    /// Asks every process to end; a stopped one is continued so that it can.
    fn terminate(&mut self) {
        if matches!(self.phase, Phase::Serving) {
            self.phase = Phase::Asked;
        }
        let members = tree::descendants(rustix::process::getpid());
        for signal in [Signal::TERM, Signal::CONT] {
            self.signal(&members, signal);
        }
    }

    /// Stops every process as soon as it is seen, so that it starts no other, and kills them all.
    fn kill_round(&self) {
        let mut members = Vec::new();
        tree::each_descendant(rustix::process::getpid(), |pid| {
            let _ = rustix::process::kill_process(pid, Signal::STOP);
            members.push(pid);
        });
        self.signal(&members, Signal::KILL);
    }

    /// Where the tree cannot be seen, the group of its main process stands for it.
    fn signal(&self, members: &[Pid], signal: Signal) {
        if members.is_empty() && !self.main_ended {
            let _ = rustix::process::kill_process_group(self.main, signal);
        }
        for pid in members {
            let _ = rustix::process::kill_process(*pid, signal);
        }
    }
}

fn exit(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, Some(signal)) => Exit::Signal(signal),
        (None, None) => Exit::Unknown,
    }
}

#[expect(clippy::disallowed_methods, reason = "the shim has no runtime and no test clock")]
fn now() -> Instant {
    Instant::now()
}
