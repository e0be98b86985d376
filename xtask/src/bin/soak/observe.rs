//! What a process holds, and what a dead one left.

use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use innkeeper_testkit::{Nonce, open_fds, processes_with, rss_kib, threads, zombie_children};

/// How long the dead have to disappear.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How many looks at the threads make one count.
const LOOKS: usize = 10;

/// What a guest holds between two cycles.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) fds: u64,
    pub(crate) threads: u64,
    pub(crate) rss_kib: u64,
    pub(crate) zombies: u64,
}

impl Sample {
    pub(crate) fn of_this_process() -> Self {
        Self {
            fds: open_fds() as u64,
            threads: settled_threads(),
            rss_kib: rss_kib(),
            zombies: zombie_children().len() as u64,
        }
    }
}

/// The least of several looks: a thread that has just reaped a server may still be on its way out,
/// while one that leaks is there every time.
fn settled_threads() -> u64 {
    let looks = (0..LOOKS).map(|_| {
        std::thread::sleep(LOOK_AGAIN);
        threads() as u64
    });
    looks.min().unwrap_or_default()
}

impl fmt::Display for Sample {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {} {} {}", self.fds, self.threads, self.rss_kib, self.zombies)
    }
}

impl FromStr for Sample {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        match numbers[..] {
            [fds, threads, rss_kib, zombies] => Ok(Self { fds, threads, rss_kib, zombies }),
            _ => Err(format!("`{text}` is no sample")),
        }
    }
}

/// Waits until nothing that carries the nonce is left but the guest itself, and no zombie of ours
/// anywhere. What still is there when patience ends is told.
#[expect(clippy::disallowed_methods, reason = "the dead disappear by the real clock")]
pub(crate) fn left_behind(nonce: &Nonce, guest: Option<u32>) -> Vec<String> {
    let until = Instant::now() + PATIENCE;
    loop {
        let mut left: Vec<String> = processes_with(nonce)
            .into_iter()
            .filter(|found| Some(found.pid) != guest)
            .map(|found| {
                let word = if found.zombie { "zombie" } else { "orphan" };
                format!("{word} {} `{}`", found.pid, found.command)
            })
            .collect();
        left.extend(adopted_zombies());
        if left.is_empty() || Instant::now() >= until {
            return left;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// A zombie has no environment: those that outlived their parent are known by their name.
fn adopted_zombies() -> Vec<String> {
    let mut zombies = Vec::new();
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
        let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
        let Some((head, fields)) = stat.rsplit_once(") ") else { continue };
        let mut fields = fields.split(' ');
        let orphaned = (fields.next(), fields.next()) == (Some("Z"), Some("1"));
        if orphaned && head.contains("(innkeeper-") {
            zombies.push(format!("zombie {head})"));
        }
    }
    zombies
}
