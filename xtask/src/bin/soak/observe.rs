//! What a process holds, and what a dead one left.

use std::collections::BTreeSet;
use std::fmt;
use std::fs;
use std::str::FromStr;
use std::time::{Duration, Instant};

use innkeeper_testkit::{Nonce, open_fds, processes_with, rss_kib, threads, zombie_children};

/// How long the dead have to disappear.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long to wait before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(5);

/// How the names of processes begin that this program causes.
const OURS: [&str; 3] = ["(innkeeper-", "(soak", "(sh)"];

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

impl Sample {
    /// What there is more of than before, beyond so many descriptors and KiB of memory.
    pub(crate) fn grown_since(self, before: Self, fds: u64, memory: u64) -> Vec<String> {
        let pairs = [
            ("descriptors", before.fds, self.fds, fds),
            ("threads", before.threads, self.threads, 0),
            ("KiB of memory", before.rss_kib, self.rss_kib, memory),
        ];
        let grew = pairs.into_iter().filter(|(_, before, after, most)| *after > before + most);
        grew.map(|(what, before, after, _)| format!("{before} {what} became {after}")).collect()
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

/// The time by the machine's clock, which is the one that processes live by.
#[expect(clippy::disallowed_methods, reason = "the dead disappear by the real clock")]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// Waits until nothing that carries the nonce is left but the guest itself, and no zombie of ours
/// that was not there before. What still is there when patience ends is told.
pub(crate) fn left_behind(nonce: &Nonce, guest: Option<u32>, before: &Zombies) -> Vec<String> {
    let until = now() + PATIENCE;
    loop {
        let mut left: Vec<String> = processes_with(nonce)
            .into_iter()
            .filter(|found| Some(found.pid) != guest)
            .map(|found| {
                let word = if found.zombie { "zombie" } else { "orphan" };
                format!("{word} {} `{}`", found.pid, found.command)
            })
            .collect();
        left.extend(Zombies::adopted().0.difference(&before.0).cloned());
        if left.is_empty() || now() >= until {
            return left;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// Zombies that outlived their parent. They have no environment: those that may be ours are known
/// by their name.
pub(crate) struct Zombies(BTreeSet<String>);

impl Zombies {
    /// Those there are now.
    pub(crate) fn adopted() -> Self {
        let mut zombies = BTreeSet::new();
        for entry in fs::read_dir("/proc").into_iter().flatten().flatten() {
            let stat = fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
            let Some((head, fields)) = stat.rsplit_once(") ") else { continue };
            let mut fields = fields.split(' ');
            let orphaned = (fields.next(), fields.next()) == (Some("Z"), Some("1"));
            if orphaned && OURS.iter().any(|name| head.contains(name)) {
                zombies.insert(format!("zombie {head})"));
            }
        }
        Self(zombies)
    }

    /// Those that are there now, were not before and stay.
    pub(crate) fn left_since(before: &Self) -> Vec<String> {
        let until = now() + PATIENCE;
        loop {
            let left: Vec<String> = Self::adopted().0.difference(&before.0).cloned().collect();
            if left.is_empty() || now() >= until {
                return left;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
    }
}
