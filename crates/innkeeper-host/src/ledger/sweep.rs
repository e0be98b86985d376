//! Ends what dead hosts have left behind.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use super::page::{self, Header, Kind, Noted, PAGE_LIMIT};

/// How long a sweep may take in all; what is not reached is left to the next host.
pub(super) const LIMIT: Duration = Duration::from_secs(5);

/// The files looked at in one sweep: more dead hosts than this have long been swept by others.
const FILE_LIMIT: usize = 1024;

/// How often a shim whose host is gone is looked at until it has ended its tree, and the pause
/// between: two seconds, while it usually takes milliseconds.
const SHIM_ROUNDS: usize = 200;
const SHIM_PAUSE: Duration = Duration::from_millis(10);

/// What a sweep has found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SweepReport {
    /// Hosts that ended without taking their notes away.
    pub(crate) dead_hosts: usize,
    /// Processes of theirs that still ran and were killed.
    pub(crate) killed: usize,
}

/// When a sweep that begins now gives up.
pub(super) fn end() -> Instant {
    now() + LIMIT
}

/// Looks at every file in `dir` whose host is gone, until `end`.
pub(super) fn sweep(dir: &Path, end: Instant) -> io::Result<SweepReport> {
    let mut report = SweepReport::default();
    let Some((_, here)) = Header::of_this_host() else { return Ok(report) };
    for file in fs::read_dir(dir)?.flatten().take(FILE_LIMIT) {
        if now() >= end {
            break;
        }
        let name = file.file_name();
        let Some((pid, start)) = name.to_str().and_then(page::host_of) else { continue };
        let page = read(&file.path()).ok().and_then(|page| page::read(&page));
        let elsewhere =
            |header: &Header| header.boot == here.boot && header.namespace != here.namespace;
        if page.as_ref().is_some_and(|(header, _)| elsewhere(header)) {
            continue;
        }
        let restarted = page.as_ref().is_some_and(|(header, _)| header.boot != here.boot);
        if !restarted && start_time(pid) == Some(start) {
            continue;
        }
        if let Some((header, entries)) = page.filter(|_| !restarted) {
            report.dead_hosts += 1;
            report.killed += end_all(&header, &entries, end);
            if now() >= end {
                // The next host finds what was not reached.
                break;
            }
        }
        // Another host that sweeps at the same time may have removed it.
        drop(fs::remove_file(file.path()));
    }
    Ok(report)
}

fn read(path: &Path) -> io::Result<String> {
    let mut page = Vec::new();
    open(path)?.take(PAGE_LIMIT).read_to_end(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Opens a file that nobody else has put there.
#[cfg(unix)]
fn open(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let file = fs::OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    if file.metadata()?.uid() != rustix::process::geteuid().as_raw() {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    Ok(file)
}

#[cfg(not(unix))]
fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
pub(super) fn start_time(pid: u32) -> Option<u64> {
    crate::shim::tree::start_time(id(pid)?)
}

#[cfg(not(unix))]
pub(super) fn start_time(_pid: u32) -> Option<u64> {
    None
}

#[cfg(unix)]
fn id(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(pid.try_into().ok()?)
}

#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
fn now() -> Instant {
    Instant::now()
}

/// Ends the trees of a dead host. Its shims do that by themselves as soon as they notice; only
/// what a shim does not end, or has left behind, is killed from here.
#[cfg(unix)]
fn end_all(header: &Header, entries: &[Noted], end: Instant) -> usize {
    use crate::server::process::{Left, sweep};
    use rustix::process::{Signal, kill_process};
    let still_runs = |noted: &&Noted| start_time(noted.pid) == Some(noted.start);
    let shims = || entries.iter().filter(|noted| noted.kind == Kind::Shim).filter(still_runs);
    for shim in shims().filter_map(|noted| id(noted.pid)) {
        let _ = kill_process(shim, Signal::TERM);
        let _ = kill_process(shim, Signal::CONT);
    }
    for _ in 0..SHIM_ROUNDS {
        if shims().next().is_none() || now() >= end {
            break;
        }
        std::thread::sleep(SHIM_PAUSE);
    }
    let mut killed = 0;
    for noted in entries {
        if now() >= end {
            break;
        }
        let runs = still_runs(&noted);
        killed += match noted.kind {
            Kind::Shim if runs => sweep(Left { session: id(noted.pid), ..Left::default() }, end),
            Kind::Server | Kind::Group if runs => {
                sweep(Left { server: id(noted.pid), ..Left::default() }, end)
            }
            Kind::Group => end_leaderless(header, *noted),
            Kind::Shim | Kind::Server => 0,
        };
    }
    killed
}

#[cfg(not(unix))]
fn end_all(_header: &Header, _entries: &[Noted], _end: Instant) -> usize {
    let _ = (Kind::Shim, SHIM_ROUNDS, SHIM_PAUSE);
    0
}

/// Kills the members of a group whose leader is gone: those in the session of the dead host that
/// were started after the leader. If the leader's id is in use again, the group is not ours; a leader
/// that nobody waits for still has it.
#[cfg(target_os = "linux")]
fn end_leaderless(header: &Header, leader: Noted) -> usize {
    use crate::shim::tree::{Stat, every};
    let another = |pid| Stat::read(pid).is_some_and(|stat| stat.start != leader.start);
    if id(leader.pid).is_none_or(another) {
        return 0;
    }
    let left = every().into_iter().filter(|stat| {
        stat.group == id(leader.pid)
            && stat.session == id(header.session)
            && stat.start >= leader.start
            && !stat.zombie
    });
    left.filter(|stat| {
        rustix::process::kill_process(stat.pid, rustix::process::Signal::KILL).is_ok()
    })
    .count()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn end_leaderless(_header: &Header, _leader: Noted) -> usize {
    0
}
