//! Ends what a killed shim has left behind.

use std::time::Duration;

use rustix::process::{Pid, Signal};

/// The rounds of killing; every process that can be found is gone after the second.
const ROUNDS: usize = 50;

/// The pause between two rounds: half a second is spent on a tree that does not end.
const PAUSE: Duration = Duration::from_millis(10);

/// Kills the processes of a session, and the tree and group of the server that was in it. Blocks
/// for half a second at most. Returns how many processes were killed.
pub(crate) fn sweep(session: Option<Pid>, server: Option<Pid>) -> usize {
    let mut killed = std::collections::HashSet::new();
    for round in 0..ROUNDS {
        if round > 0 {
            std::thread::sleep(PAUSE);
        }
        let members = members(session, server);
        if members.is_empty() {
            break;
        }
        for signal in [Signal::STOP, Signal::KILL] {
            for pid in &members {
                let _ = rustix::process::kill_process(*pid, signal);
            }
        }
        killed.extend(members);
    }
    killed.len()
}

#[cfg(target_os = "linux")]
fn members(session: Option<Pid>, server: Option<Pid>) -> Vec<Pid> {
    let own = rustix::process::getpid();
    let below = server.map(crate::shim::tree::descendants).unwrap_or_default();
    crate::shim::tree::every()
        .into_iter()
        .filter(|stat| !stat.zombie && stat.pid != own)
        .filter(|stat| {
            (session.is_some() && stat.session == session)
                || (server.is_some() && (stat.group == server || Some(stat.pid) == server))
                || below.contains(&stat.pid)
        })
        .map(|stat| stat.pid)
        .collect()
}

/// Elsewhere the server's group is all that can be named.
#[cfg(not(target_os = "linux"))]
fn members(_session: Option<Pid>, server: Option<Pid>) -> Vec<Pid> {
    if let Some(server) = server {
        let _ = rustix::process::kill_process_group(server, Signal::KILL);
    }
    Vec::new()
}
