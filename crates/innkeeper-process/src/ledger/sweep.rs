//! Terminates processes that dead hosts left running.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;
use std::time::{Duration, Instant};

use super::ledger_file::{self, HostHeader, MAX_LEDGER_BYTES, ProcessKind, ProcessRecord};

/// Maximum duration of a sweep; the next host sweeps the remaining files.
pub(super) const SWEEP_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of files per sweep; earlier sweeps have removed the files of most dead hosts.
const MAX_FILES: usize = 1024;

/// Maximum number of polls for a shim without a host to terminate its tree. With the poll interval
/// the limit is two seconds; a shim usually needs milliseconds.
const MAX_SHIM_POLLS: usize = 200;
const SHIM_POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The result of a sweep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweepReport {
    /// Number of hosts that ended without removing their file.
    pub dead_hosts: usize,
    /// Number of their processes that were still running and were killed.
    pub killed: usize,
}

/// Returns the deadline of a sweep that starts now.
pub(super) fn deadline() -> Instant {
    now() + SWEEP_TIMEOUT
}

/// Processes each file in `dir` whose host is dead, until the deadline.
pub(super) fn sweep(dir: &Path, deadline: Instant) -> io::Result<SweepReport> {
    let mut report = SweepReport::default();
    let Some((_, here)) = HostHeader::for_current_host() else { return Ok(report) };
    for file in fs::read_dir(dir)?.flatten().take(MAX_FILES) {
        if now() >= deadline {
            break;
        }
        let name = file.file_name();
        let Some((pid, start)) = name.to_str().and_then(ledger_file::parse_file_name) else {
            continue;
        };
        let page = read_owned(&file.path()).ok().and_then(|page| ledger_file::parse_file(&page));
        if page.as_ref().is_some_and(|(header, _)| {
            header.boot_id == here.boot_id && header.pid_namespace != here.pid_namespace
        }) {
            continue;
        }
        let restarted = page.as_ref().is_some_and(|(header, _)| header.boot_id != here.boot_id);
        if !restarted && start_time(pid) == Some(start) {
            continue;
        }
        if let Some((header, entries)) = page.filter(|_| !restarted) {
            report.dead_hosts += 1;
            report.killed += terminate_trees(&header, &entries, deadline);
            if now() >= deadline {
                // The next host sweeps the remaining files.
                break;
            }
        }
        // A concurrent sweep of another host may have removed the file.
        let _ = fs::remove_file(file.path());
    }
    Ok(report)
}

fn read_owned(path: &Path) -> io::Result<String> {
    let mut page = Vec::new();
    open_owned(path)?.take(MAX_LEDGER_BYTES).read_to_end(&mut page)?;
    Ok(String::from_utf8_lossy(&page).into_owned())
}

/// Opens a file that belongs to the current user.
#[cfg(unix)]
fn open_owned(path: &Path) -> io::Result<File> {
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
fn open_owned(path: &Path) -> io::Result<File> {
    File::open(path)
}

#[cfg(unix)]
pub(super) fn start_time(pid: u32) -> Option<u64> {
    crate::tree::start_time(to_pid(pid)?)
}

#[cfg(not(unix))]
pub(super) fn start_time(_pid: u32) -> Option<u64> {
    None
}

#[cfg(unix)]
fn to_pid(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(pid.try_into().ok()?)
}

#[expect(clippy::disallowed_methods, reason = "a sweep runs without a runtime")]
fn now() -> Instant {
    Instant::now()
}

/// Terminates the trees of a dead host. Shims terminate their trees when they notice the host's
/// death; this function kills only processes that no shim terminated.
#[cfg(unix)]
fn terminate_trees(header: &HostHeader, entries: &[ProcessRecord], deadline: Instant) -> usize {
    use crate::{SweepTarget, sweep};
    use rustix::process::{Signal, kill_process};
    let still_runs = |noted: &&ProcessRecord| start_time(noted.pid) == Some(noted.start_time);
    let shims =
        || entries.iter().filter(|noted| noted.kind == ProcessKind::Shim).filter(still_runs);
    for shim in shims().filter_map(|noted| to_pid(noted.pid)) {
        let _ = kill_process(shim, Signal::TERM);
        let _ = kill_process(shim, Signal::CONT);
    }
    for _ in 0..MAX_SHIM_POLLS {
        if shims().next().is_none() || now() >= deadline {
            break;
        }
        std::thread::sleep(SHIM_POLL_INTERVAL);
    }
    let mut killed = 0;
    for noted in entries {
        if now() >= deadline {
            break;
        }
        let runs = still_runs(&noted);
        killed += match noted.kind {
            ProcessKind::Shim => {
                let session = to_pid(noted.pid).filter(|_| runs);
                let tag = noted.tag.as_ref();
                sweep(SweepTarget { session, tag, ..SweepTarget::default() }, deadline)
            }
            ProcessKind::Server | ProcessKind::Group if runs => {
                sweep(SweepTarget { server: to_pid(noted.pid), ..SweepTarget::default() }, deadline)
            }
            ProcessKind::Group => kill_leaderless_group(header, noted),
            ProcessKind::Server => 0,
        };
    }
    killed
}

#[cfg(not(unix))]
fn terminate_trees(_header: &HostHeader, _entries: &[ProcessRecord], _end: Instant) -> usize {
    let _ = (ProcessKind::Shim, MAX_SHIM_POLLS, SHIM_POLL_INTERVAL);
    0
}

/// Kills the members of a process group whose leader is gone: processes of the dead host's session
/// that started after the leader. If another process has the leader's id, the group is not ours; a
/// zombie leader keeps the id in use.
#[cfg(target_os = "linux")]
fn kill_leaderless_group(header: &HostHeader, leader: &ProcessRecord) -> usize {
    use crate::tree::{ProcessStat, all_processes};
    let Some(pid) = to_pid(leader.pid) else { return 0 };
    if ProcessStat::read(pid).is_some_and(|stat| stat.start_time != leader.start_time) {
        return 0;
    }
    let survivors = all_processes().into_iter().filter(|stat| {
        stat.group == to_pid(leader.pid)
            && stat.session == to_pid(header.session)
            && stat.start_time >= leader.start_time
            && !stat.zombie
    });
    survivors
        .filter(|stat| {
            rustix::process::kill_process(stat.pid, rustix::process::Signal::KILL).is_ok()
        })
        .count()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn kill_leaderless_group(_header: &HostHeader, _leader: &ProcessRecord) -> usize {
    0
}
