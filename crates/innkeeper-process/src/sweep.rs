//! Kills the processes that a killed shim left running.

use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::tree_tag::TreeTag;

/// Pause between two rounds of kills; two rounds are enough for every process that can be found.
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time spent on one tree that survives.
const SWEEP_TIMEOUT: Duration = Duration::from_millis(500);

/// Number of searches in succession that find nothing, at the end of a sweep: one search misses a
/// process that is forked behind its position by a process that exits before it.
#[cfg(target_os = "linux")]
const EMPTY_SEARCHES: usize = 2;
#[cfg(not(target_os = "linux"))]
const EMPTY_SEARCHES: usize = 1;

/// The properties that identify the remaining processes of a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepTarget<'a> {
    /// Session of the shim.
    pub session: Option<Pid>,
    /// Main process of the server, with its group and its descendants.
    pub server: Option<Pid>,
    /// Tag of the processes, if known.
    pub tag: Option<&'a TreeTag>,
    /// Whether processes of any tree that became children of this process belong to the target; see
    /// [`adopt_orphans`](crate::host_process::adopt_orphans).
    pub adopted: bool,
    /// A process whose descendants belong to the target, but not the process itself.
    pub above: Option<Pid>,
}

/// Returns the deadline of a sweep that starts now.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub(crate) fn sweep_deadline() -> Instant {
    Instant::now() + SWEEP_TIMEOUT
}

/// Kills the remaining processes of one tree. Blocks until they are gone, at most half a second and
/// not past the given deadline. Returns the number of killed processes; a process that had begun to
/// exit before is not counted.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub fn sweep(target: SweepTarget<'_>, deadline: Instant) -> usize {
    let mut killed = std::collections::HashSet::new();
    let deadline = deadline.min(sweep_deadline());
    let mut empty_searches = 0;
    while empty_searches < EMPTY_SEARCHES {
        let members = members(target);
        if members.is_empty() {
            empty_searches += 1;
            continue;
        }
        empty_searches = 0;
        for signal in [Signal::STOP, Signal::KILL] {
            for member in &members {
                member.signal(signal);
            }
        }
        killed.extend(members.iter().filter(|member| !member.exiting).map(TreeMember::id));
        if Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(ROUND_INTERVAL);
    }
    if target.adopted {
        reap_adopted();
    }
    killed.len()
}

/// Kills all processes below this one.
#[cfg(target_os = "linux")]
pub(crate) fn kill_descendants() {
    let above = Some(rustix::process::getpid());
    sweep(SweepTarget { above, ..SweepTarget::default() }, sweep_deadline());
}

/// A process of a tree, identified by its id and its start time.
#[derive(Clone, Copy, Debug)]
struct TreeMember {
    pid: Pid,
    start_time: u64,
    /// Whether the process had begun to exit when it was found.
    exiting: bool,
}

impl TreeMember {
    fn id(&self) -> (Pid, u64) {
        (self.pid, self.start_time)
    }

    /// Sends a signal to the process, and never to another process that has the id later.
    #[cfg(target_os = "linux")]
    fn signal(self, signal: Signal) {
        use rustix::process::{PidfdFlags, kill_process, pidfd_open, pidfd_send_signal};
        let is_same = || crate::tree::start_time(self.pid) == Some(self.start_time);
        let _ = match pidfd_open(self.pid, PidfdFlags::empty()) {
            Ok(process) if is_same() => pidfd_send_signal(process, signal),
            Err(rustix::io::Errno::NOSYS) if is_same() => kill_process(self.pid, signal),
            Ok(_) | Err(_) => Ok(()),
        };
    }

    #[cfg(not(target_os = "linux"))]
    fn signal(self, signal: Signal) {
        let _ = (rustix::process::kill_process(self.pid, signal), self.start_time);
    }
}

#[cfg(target_os = "linux")]
fn members(target: SweepTarget<'_>) -> Vec<TreeMember> {
    use crate::tree::{all_processes, descendants};
    let SweepTarget { session, server, tag, adopted, above } = target;
    let own_pid = rustix::process::getpid();
    let mut below: Vec<_> = server.into_iter().chain(above).flat_map(descendants).collect();
    if adopted {
        for lost in adopted_children().into_iter().filter(|lost| !lost.zombie) {
            below.push(lost.pid);
            below.extend(descendants(lost.pid));
        }
    }
    all_processes()
        .into_iter()
        .filter(|stat| !stat.zombie && stat.pid != own_pid)
        .filter(|stat| {
            (session.is_some() && stat.session == session)
                || (server.is_some() && (stat.group == server || Some(stat.pid) == server))
                || below.contains(&stat.pid)
                || tag.is_some_and(|tag| tag.is_carried_by(stat.pid))
        })
        .map(|stat| TreeMember {
            pid: stat.pid,
            start_time: stat.start_time,
            exiting: stat.exiting,
        })
        .collect()
}

/// Kills the server's group; returns no members, because this system does not list processes.
#[cfg(not(target_os = "linux"))]
fn members(left: SweepTarget<'_>) -> Vec<TreeMember> {
    let _ = (left.session, left.tag, left.adopted, left.above);
    if let Some(server) = left.server {
        let _ = rustix::process::kill_process_group(server, Signal::KILL);
    }
    Vec::new()
}

/// Returns the children of this process that were processes of a tree: a lost shim was their
/// parent. A process of a tree has a lower limit than the host; a child that the host or the
/// application started has the limit of the host.
#[cfg(target_os = "linux")]
fn adopted_children() -> Vec<crate::tree::ProcessStat> {
    use crate::tree_tag::lock_limit_of;
    let own_pid = rustix::process::getpid();
    let own_limit = lock_limit_of(own_pid).unwrap_or(u64::MAX);
    let children = crate::tree::child_stats(own_pid).into_iter();
    children.filter(|stat| lock_limit_of(stat.pid).is_some_and(|limit| limit < own_limit)).collect()
}

#[cfg(target_os = "linux")]
fn reap_adopted() {
    use rustix::process::{WaitOptions, waitpid};
    for lost in adopted_children() {
        let _ = waitpid(Some(lost.pid), WaitOptions::NOHANG);
    }
}

#[cfg(not(target_os = "linux"))]
fn reap_adopted() {}
