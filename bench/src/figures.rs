//! The figures of a client: one JSON line, from the client's clock and `/proc`.

use std::fs;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};
use serde_json::{Value, json};

use crate::workload::Workload;

/// The calls of one run.
#[derive(Debug, Default)]
pub struct CallFigures {
    /// Nanoseconds of each call; recorded with one call in flight only, because the values mean
    /// little otherwise.
    pub call_nanos: Vec<u64>,
    /// The number of completed calls.
    pub count: usize,
    /// The time from the first to the last call.
    pub wall_time: Duration,
    /// The CPU time of this process during the calls.
    pub cpu_time: Duration,
}

/// Returns the CPU time of this process.
pub fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

impl CallFigures {
    /// Returns the JSON line for `cargo xtask bench`.
    pub fn report(mut self, peer: &str, work: &Workload) -> Value {
        self.call_nanos.sort_unstable();
        let calls = self.count.max(1) as f64;
        json!({
            "peer": peer,
            "case": work.name,
            "runtime": if work.multi_thread { "multi" } else { "current" },
            "calls": self.count,
            "per_second": calls / self.wall_time.as_secs_f64(),
            "p50_us": quantile(&self.call_nanos, 0.50),
            "p99_us": quantile(&self.call_nanos, 0.99),
            "cpu_us": self.cpu_time.as_secs_f64() * 1e6 / calls,
            "rss_kb": status_kb("VmRSS:"),
            "peak_rss_kb": status_kb("VmHWM:"),
        })
    }
}

fn quantile(sorted: &[u64], share: f64) -> Option<f64> {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).map(|nanos| *nanos as f64 / 1e3)
}

/// The start, the lists and the shutdown of servers.
#[derive(Debug)]
pub struct StartFigures {
    /// The time from the start until everything is listed.
    pub ready_time: Duration,
    /// The number of tools, which shows that all clients did the same work.
    pub tools: usize,
    /// The resident memory of this process with all servers idle, in KiB.
    pub idle_kb: u64,
    /// The proportional memory (PSS) of the client's own child processes, the supervisors, in KiB.
    pub supervisors_kb: u64,
    /// The time from the start of the shutdown until all processes are gone.
    pub close_time: Duration,
}

impl StartFigures {
    /// Returns the JSON line for `cargo xtask bench`.
    pub fn report(&self, peer: &str, work: &Workload) -> Value {
        json!({
            "peer": peer,
            "case": work.name,
            "runtime": if work.multi_thread { "multi" } else { "current" },
            "ready_ms": self.ready_time.as_secs_f64() * 1e3,
            "tools": self.tools,
            "idle_kb": self.idle_kb,
            "supervisors_kb": self.supervisors_kb,
            "total_kb": self.idle_kb + self.supervisors_kb,
            "close_ms": self.close_time.as_secs_f64() * 1e3,
        })
    }
}

/// Returns the value of a `kB` line in `/proc/self/status`.
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

/// Returns the proportional memory (PSS) of this process' descendants except echo servers, in KiB.
pub fn supervisors_kb() -> u64 {
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
