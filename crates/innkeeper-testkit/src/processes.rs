//! The processes that a test started, including zombies.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::ProcessTag;

/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// A process with a test's tag, or a zombie child of such a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    /// The process id.
    pub pid: u32,
    /// The process id of the parent.
    pub parent_pid: u32,
    /// Whether the process has exited and was not reaped.
    pub is_zombie: bool,
    /// The arguments, or the short name if the arguments are not available.
    pub command: String,
}

/// Returns every process with this tag in its environment, and the zombie children of these
/// processes.
///
/// A zombie has no environment. The function finds a zombie through its parent, and not at all
/// after all processes with the tag have exited; [`crate::zombie_children`] returns the zombies of
/// the test itself.
#[must_use]
pub fn tagged_processes(tag: &ProcessTag) -> Vec<ProcessInfo> {
    let marker = format!("{}={}", ProcessTag::VARIABLE, tag.as_str());
    let all: Vec<ProcessStat> = all_stats().collect();
    let marked: Vec<u32> = all
        .iter()
        .map(|stat| stat.pid)
        .filter(|pid| has_environment_entry(*pid, &marker))
        .collect();
    all.into_iter()
        .filter(|stat| {
            marked.contains(&stat.pid) || (stat.is_zombie() && marked.contains(&stat.parent_pid))
        })
        .map(|stat| ProcessInfo {
            pid: stat.pid,
            parent_pid: stat.parent_pid,
            is_zombie: stat.is_zombie(),
            command: command_line(&stat),
        })
        .collect()
}

/// Blocks the thread until no process has the tag.
///
/// # Errors
///
/// The remaining processes after the limit.
pub fn wait_gone(tag: &ProcessTag, limit: Duration) -> Result<(), Vec<ProcessInfo>> {
    let deadline = now() + limit;
    loop {
        let processes = tagged_processes(tag);
        if processes.is_empty() {
            return Ok(());
        }
        if now() >= deadline {
            return Err(processes);
        }
        thread::sleep(POLL_INTERVAL);
    }
}

/// As [`wait_gone`], without blocking the runtime; requires a running clock.
///
/// # Errors
///
/// The remaining processes after the limit.
pub async fn wait_gone_async(tag: &ProcessTag, limit: Duration) -> Result<(), Vec<ProcessInfo>> {
    let deadline = now() + limit;
    loop {
        let processes = tagged_processes(tag);
        if processes.is_empty() {
            return Ok(());
        }
        if now() >= deadline {
            return Err(processes);
        }
        tokio::time::sleep(POLL_INTERVAL).await;
    }
}

/// The used fields of `/proc/PID/stat`.
#[derive(Debug)]
pub(crate) struct ProcessStat {
    pub(crate) pid: u32,
    pub(crate) parent_pid: u32,
    name: String,
    state: char,
}

impl ProcessStat {
    pub(crate) fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }

    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may contain spaces and brackets; the other fields start after the last bracket.
        let (name, fields) = text.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent_pid = fields.next()?.parse().ok()?;
        Some(Self { pid, parent_pid, name: name.to_owned(), state })
    }
}

/// Returns every process; skips processes that exit during the call.
pub(crate) fn all_stats() -> impl Iterator<Item = ProcessStat> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(ProcessStat::read)
}

fn has_environment_entry(pid: u32, marker: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == marker.as_bytes())
}

fn command_line(stat: &ProcessStat) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
    if line.is_empty() { stat.name.clone() } else { line }
}

#[expect(clippy::disallowed_methods, reason = "processes run by the machine's clock")]
fn now() -> Instant {
    Instant::now()
}
