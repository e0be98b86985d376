//! Ends what a killed shim has left behind.

use std::ffi::OsStr;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::shim::wire::Os;

/// The pause between two rounds of killing; every process that can be found is gone after the second.
const PAUSE: Duration = Duration::from_millis(10);

/// How long is spent on one tree that does not end.
const LIMIT: Duration = Duration::from_millis(500);

/// How much of a process's environment is looked through, in bytes: several times what any has.
#[cfg(target_os = "linux")]
const ENVIRONMENT: u64 = 1 << 20;

/// The variable by which the processes of one tree are known, wherever they have gone.
const TREE: &str = "INNKEEPER_TREE";

/// What every process of one tree has in its environment, unless it took it out.
#[derive(Clone, Debug)]
pub(crate) struct Mark(String);

impl Mark {
    pub(super) fn new() -> Self {
        Self(format!("{:032x}", fastrand::u128(..)))
    }

    pub(super) fn variable(&self) -> (Os, Os) {
        (OsStr::new(TREE).into(), OsStr::new(&self.0).into())
    }

    /// Whether a process of this user carries it.
    #[cfg(target_os = "linux")]
    fn is_on(&self, pid: Pid) -> bool {
        use std::io::Read;
        use std::os::unix::fs::MetadataExt;

        let Ok(file) = std::fs::File::open(format!("/proc/{pid}/environ")) else { return false };
        let own = rustix::process::geteuid().as_raw();
        if !file.metadata().is_ok_and(|file| file.uid() == own) {
            return false;
        }
        let mut environment = Vec::new();
        let variable = format!("{TREE}={}", self.0);
        file.take(ENVIRONMENT).read_to_end(&mut environment).is_ok()
            && environment.split(|byte| *byte == 0).any(|one| one == variable.as_bytes())
    }
}

/// By what the processes that are left are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Left<'a> {
    /// The session of the shim.
    pub(crate) session: Option<Pid>,
    /// The server, with its group and all below it.
    pub(crate) server: Option<Pid>,
    /// What its processes carry, where that is known.
    pub(crate) mark: Option<&'a Mark>,
}

/// When a sweep that begins now gives up.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub(crate) fn soon() -> Instant {
    Instant::now() + LIMIT
}

/// Kills what is left of one tree. Blocks until it is gone, for half a second at most and not past
/// `end`. Returns how many processes were killed.
#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
pub(crate) fn sweep(left: Left<'_>, end: Instant) -> usize {
    let mut killed = std::collections::HashSet::new();
    let end = end.min(soon());
    loop {
        let members = members(left);
        if members.is_empty() {
            break;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &members {
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
        killed.extend(members);
        if Instant::now() >= end {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    killed.len()
}

#[cfg(target_os = "linux")]
fn members(left: Left<'_>) -> Vec<Pid> {
    let Left { session, server, mark } = left;
    let own = rustix::process::getpid();
    let below = server.map(crate::shim::tree::descendants).unwrap_or_default();
    crate::shim::tree::every()
        .into_iter()
        .filter(|stat| !stat.zombie && stat.pid != own)
        .filter(|stat| {
            (session.is_some() && stat.session == session)
                || (server.is_some() && (stat.group == server || Some(stat.pid) == server))
                || below.contains(&stat.pid)
                || mark.is_some_and(|mark| mark.is_on(stat.pid))
        })
        .map(|stat| stat.pid)
        .collect()
}

/// Elsewhere the server's group is all that can be named.
#[cfg(not(target_os = "linux"))]
fn members(left: Left<'_>) -> Vec<Pid> {
    let _ = (left.session, left.mark);
    if let Some(server) = left.server {
        let _ = rustix::process::kill_process_group(server, Signal::KILL);
    }
    Vec::new()
}
