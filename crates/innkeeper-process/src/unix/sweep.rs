//! Kills the processes that a killed shim left running.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::shim::wire::WireOsString;

/// Pause between two rounds of kills; two rounds are enough for every process that can be found.
const ROUND_INTERVAL: Duration = Duration::from_millis(10);

/// Maximum time spent on one tree that survives.
const SWEEP_TIMEOUT: Duration = Duration::from_millis(500);

/// Maximum number of bytes read of a process's environment: several times a usual environment.
#[cfg(target_os = "linux")]
const MAX_ENVIRONMENT_BYTES: u64 = 1 << 20;

/// Environment variable that identifies the processes of one tree in any group or session.
const TREE_VARIABLE: &str = "INNKEEPER_TREE";

/// The tag in the environment of every process of a tree that does not remove it.
#[derive(Clone, Debug)]
pub struct TreeTag(String);

impl TreeTag {
    pub(super) fn new() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }

    pub(super) fn variable(&self) -> (WireOsString, WireOsString) {
        (OsStr::new(TREE_VARIABLE).into(), OsStr::new(&self.0).into())
    }

    /// Returns whether a process of the current user has this tag.
    #[cfg(target_os = "linux")]
    fn is_carried_by(&self, pid: Pid) -> bool {
        use std::io::Read;
        use std::os::unix::fs::MetadataExt;

        let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
        let own_uid = rustix::process::geteuid().as_raw();
        if !file.metadata().is_ok_and(|file| file.uid() == own_uid) {
            return false;
        }
        let mut environment = Vec::new();
        let variable = format!("{TREE_VARIABLE}={}", self.0);
        file.take(MAX_ENVIRONMENT_BYTES).read_to_end(&mut environment).is_ok()
            && environment.split(|byte| *byte == 0).any(|entry| entry == variable.as_bytes())
    }
}

/// The properties that identify the remaining processes of a tree.
#[derive(Clone, Copy, Debug, Default)]
pub struct SweepTarget<'a> {
    /// Session of the shim.
    pub session: Option<Pid>,
    /// Main process of the server, with its group and its descendants.
    pub server: Option<Pid>,
    /// Tag of the processes, if known.
    pub tag: Option<&'a TreeTag>,
}

/// Returns the deadline of a sweep that starts now.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub(super) fn sweep_deadline() -> Instant {
    Instant::now() + SWEEP_TIMEOUT
}

/// Kills the remaining processes of one tree. Blocks until they are gone, at most half a second and
/// not past the given deadline. Returns the number of killed processes.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub fn sweep(target: SweepTarget<'_>, deadline: Instant) -> usize {
    let mut killed = std::collections::HashSet::new();
    let deadline = deadline.min(sweep_deadline());
    loop {
        let members = members(target);
        if members.is_empty() {
            break;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &members {
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
        killed.extend(members);
        if Instant::now() >= deadline {
            break;
        }
        std::thread::sleep(ROUND_INTERVAL);
    }
    killed.len()
}

#[cfg(target_os = "linux")]
fn members(target: SweepTarget<'_>) -> Vec<Pid> {
    let SweepTarget { session, server, tag: process_tag } = target;
    let own_pid = rustix::process::getpid();
    let below = server.map(crate::shim::tree::descendants).unwrap_or_default();
    crate::shim::tree::all_processes()
        .into_iter()
        .filter(|stat| !stat.zombie && stat.pid != own_pid)
        .filter(|stat| {
            (session.is_some() && stat.session == session)
                || (server.is_some() && (stat.group == server || Some(stat.pid) == server))
                || below.contains(&stat.pid)
                || process_tag.is_some_and(|process_tag| process_tag.is_carried_by(stat.pid))
        })
        .map(|stat| stat.pid)
        .collect()
}

/// Kills the server's group; returns no members, because this system does not list processes.
#[cfg(not(target_os = "linux"))]
fn members(left: SweepTarget<'_>) -> Vec<Pid> {
    let _ = (left.session, left.tag);
    if let Some(server) = left.server {
        let _ = rustix::process::kill_process_group(server, Signal::KILL);
    }
    Vec::new()
}
