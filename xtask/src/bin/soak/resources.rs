//! Resources of a process, and leftovers of an exited process.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use innkeeper_testkit::{
    ProcessTag, open_fds, rss_kib, tagged_processes, thread_count, zombie_children,
};

/// Maximum time until killed processes are gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(5);
/// Interval between two checks.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// Prefixes of the names of processes that this program starts.
const OWN_PROCESS_PREFIXES: [&str; 3] = ["(innkeeper-", "(soak", "(sh)"];

/// Number of thread counts per sample.
const THREAD_SAMPLES: usize = 10;

/// The resources of a host process between two cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct ResourceSample {
    pub(crate) fds: u64,
    pub(crate) threads: u64,
    pub(crate) rss_kib: u64,
    pub(crate) zombies: u64,
}

impl ResourceSample {
    pub(crate) fn for_current_process() -> Self {
        Self {
            fds: open_fds() as u64,
            threads: stable_thread_count(),
            rss_kib: rss_kib(),
            zombies: zombie_children().len() as u64,
        }
    }
}

impl ResourceSample {
    /// The resources that grew: by more than `fds` descriptors, by any thread, or by more than
    /// `memory` KiB.
    pub(crate) fn growth_since(self, before: Self, fds: u64, memory_kib: u64) -> Vec<String> {
        let pairs = [
            ("descriptors", before.fds, self.fds, fds),
            ("threads", before.threads, self.threads, 0),
            ("KiB of memory", before.rss_kib, self.rss_kib, memory_kib),
        ];
        let grew =
            pairs.into_iter().filter(|(_, before, after, allowed)| *after > before + allowed);
        grew.map(|(resource, before, after, _)| format!("{resource} grew from {before} to {after}"))
            .collect()
    }
}

/// The minimum of several counts: a thread that has just reaped a server may still be exiting,
/// while a leaked thread is in every count.
fn stable_thread_count() -> u64 {
    let looks = (0..THREAD_SAMPLES).map(|_| {
        std::thread::sleep(POLL_INTERVAL);
        thread_count() as u64
    });
    looks.min().unwrap_or_default()
}

impl fmt::Display for ResourceSample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {} {}", self.fds, self.threads, self.rss_kib, self.zombies)
    }
}

impl FromStr for ResourceSample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split(' ').filter_map(|field| field.parse().ok()).collect();
        match numbers[..] {
            [fds, threads, rss_kib, zombies] => Ok(Self { fds, threads, rss_kib, zombies }),
            _ => Err(format!("invalid sample `{text}`")),
        }
    }
}

/// The current time of the machine's clock, which paused tokio time does not affect.
#[expect(clippy::disallowed_methods, reason = "processes exit by the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until no process has the tag, except the host process, and no new orphaned zombie exists.
///
/// Returns the leftovers after the timeout.
pub(crate) fn wait_for_leftovers(
    tag: &ProcessTag,
    host_process: Option<u32>,
    before: &OrphanedZombies,
) -> Vec<String> {
    let until = now() + EXIT_TIMEOUT;
    loop {
        let mut leftovers: Vec<String> = tagged_processes(tag)
            .into_iter()
            .filter(|process| Some(process.pid) != host_process)
            .map(|process| {
                let state = if process.is_zombie { "zombie" } else { "orphan" };
                format!("{state} {} `{}`", process.pid, process.command)
            })
            .collect();
        leftovers.extend(OrphanedZombies::current().0.difference(&before.0).cloned());
        if leftovers.is_empty() || now() >= until {
            return leftovers;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
}

/// Zombies that outlived their parent. A zombie has no environment: the name identifies the zombies
/// of this program.
pub(crate) struct OrphanedZombies(BTreeSet<String>);

impl OrphanedZombies {
    /// The current orphaned zombies.
    pub(crate) fn current() -> Self {
        let mut zombies = BTreeSet::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((head, fields)) = stat.rsplit_once(") ") else { continue };
            let mut fields = fields.split(' ');
            let orphaned = (fields.next(), fields.next()) == (Some("Z"), Some("1"));
            if orphaned && OWN_PROCESS_PREFIXES.iter().any(|name| head.contains(name)) {
                zombies.insert(format!("zombie {head})"));
            }
        }
        Self(zombies)
    }

    /// The current orphaned zombies that did not exist before and remain.
    pub(crate) fn remaining_since(before: &Self) -> Vec<String> {
        let until = now() + EXIT_TIMEOUT;
        loop {
            let new_zombies: Vec<String> =
                Self::current().0.difference(&before.0).cloned().collect();
            if new_zombies.is_empty() || now() >= until {
                return new_zombies;
            }
            std::thread::sleep(POLL_INTERVAL);
        }
    }
}
