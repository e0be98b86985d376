//! What a client reports: one JSON line of figures, read from its own clock and from /proc.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::work::Work;

/// The calls of one run.
#[derive(Debug, Default)]
pub struct Calls {
    /// Nanoseconds of each call; kept for one call in flight only, where they mean something.
    pub nanos: Vec<u64>,
    /// How many calls were answered.
    pub count: usize,
    /// From the first to the last call.
    pub wall: Duration,
    /// Processor time of this process meanwhile.
    pub cpu: Duration,
}

/// Processor time this process has used.
pub fn cpu() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl Calls {
    /// The line that the chore reads.
    pub fn report(mut self, peer: &str, work: &Work) -> Value {
        self.nanos.sort_unstable();
        let calls = self.count.max(1) as f64;
        json!({
            "peer": peer,
            "case": work.name,
            "runtime": if work.threads { "multi" } else { "current" },
            "calls": self.count,
            "per_second": calls / self.wall.as_secs_f64(),
            "p50_us": quantile(&self.nanos, 0.50),
            "p99_us": quantile(&self.nanos, 0.99),
            "cpu_us": self.cpu.as_secs_f64() * 1e6 / calls,
            "rss_kb": status_kb("VmRSS:"),
            "peak_rss_kb": status_kb("VmHWM:"),
        })
    }
}

fn quantile(sorted: &[u64], share: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map(|nanos| *nanos as f64 / 1e3)
}

/// Servers started, listed and closed.
#[derive(Debug)]
pub struct Started {
    /// From nothing to everything listed.
    pub ready: Duration,
    /// Tools found, as a check that all peers did the same.
    pub tools: usize,
    /// Resident memory of this process, all servers idle.
    pub idle_kb: u64,
    /// Proportional memory of what the client itself runs beside the servers (supervisors).
    pub beside_kb: u64,
    /// From the wish to close to everything gone.
    pub closed: Duration,
}

impl Started {
    /// The line that the chore reads.
    pub fn report(&self, peer: &str, work: &Work) -> Value {
        json!({
            "peer": peer,
            "case": work.name,
            "runtime": if work.threads { "multi" } else { "current" },
            "ready_ms": self.ready.as_secs_f64() * 1e3,
            "tools": self.tools,
            "idle_kb": self.idle_kb,
            "beside_kb": self.beside_kb,
            "close_ms": self.closed.as_secs_f64() * 1e3,
        })
    }
}

/// One `kB` line of this process' status.
pub fn status_kb(key: &str) -> u64 {
    kb_line("/proc/self/status", key)
}

fn kb_line(file: &str, key: &str) -> u64 {
    fs::read_to_string(file)
        .unwrap_or_default()
        .lines()
        .find_map(|line| line.strip_prefix(key)?.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}

/// Proportional memory of this process' descendants that are not echo servers.
pub fn beside_kb() -> u64 {
    let mut processes = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let Some((head, tail)) = stat.rsplit_once(')') else { continue };
        let parent = tail.split_whitespace().nth(1).and_then(|word| word.parse::<u32>().ok());
        let is_echo = head.ends_with("(echo");
        processes.push((pid, parent.unwrap_or(0), is_echo));
    }
    let mut family = vec![std::process::id()];
    let mut at = 0;
    while let Some(parent) = family.get(at).copied() {
        family.extend(processes.iter().filter(|entry| entry.1 == parent).map(|entry| entry.0));
        at += 1;
    }
    processes
        .iter()
        .filter(|(pid, _, is_echo)| !is_echo && family[1..].contains(pid))
        .map(|(pid, ..)| kb_line(&format!("/proc/{pid}/smaps_rollup"), "Pss:"))
        .sum()
}
