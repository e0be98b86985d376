//! Which processes a test has caused and are still there, zombies included.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use crate::Nonce;

/// How long to wait before looking again.
const LOOK_AGAIN: Duration = Duration::from_millis(10);

/// A process that carries a test's nonce, or a zombie child of one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its process id.
    pub pid: u32,
    /// Its parent's.
    pub parent: u32,
    /// Whether it has ended and is not waited for.
    pub zombie: bool,
    /// Its arguments, or its short name when it has none any more.
    pub command: String,
}

/// Every process with this nonce in its environment, and every zombie one of them has left.
///
/// A zombie has no environment of its own: it is found by its parent, or, once nobody with the
/// nonce is left, not at all (see [`crate::zombie_children`] for those of the test itself).
#[must_use]
pub fn processes_with(nonce: &Nonce) -> Vec<Found> {
    let mark = format!("{}={}", Nonce::VARIABLE, nonce.as_str());
    let all: Vec<Stat> = all_stats().collect();
    let marked: Vec<u32> =
        all.iter().map(|stat| stat.pid).filter(|pid| carries(*pid, &mark)).collect();
    all.into_iter()
        .filter(|stat| {
            marked.contains(&stat.pid) || (stat.is_zombie() && marked.contains(&stat.parent))
        })
        .map(|stat| Found {
            pid: stat.pid,
            parent: stat.parent,
            zombie: stat.is_zombie(),
            command: command(&stat),
        })
        .collect()
}

/// Waits, holding the thread, until nobody carries the nonce.
///
/// # Errors
///
/// Those still there when the limit is over.
pub fn wait_gone(nonce: &Nonce, limit: Duration) -> Result<(), Vec<Found>> {
    let deadline = now() + limit;
    loop {
        let left = processes_with(nonce);
        if left.is_empty() {
            return Ok(());
        }
        if now() >= deadline {
            return Err(left);
        }
        thread::sleep(LOOK_AGAIN);
    }
}

/// As [`wait_gone`], but lets the runtime go on; for a clock that is not stopped.
///
/// # Errors
///
/// Those still there when the limit is over.
pub async fn until_gone(nonce: &Nonce, limit: Duration) -> Result<(), Vec<Found>> {
    let deadline = now() + limit;
    loop {
        let left = processes_with(nonce);
        if left.is_empty() {
            return Ok(());
        }
        if now() >= deadline {
            return Err(left);
        }
        tokio::time::sleep(LOOK_AGAIN).await;
    }
}

/// The part of `/proc/PID/stat` that matters here.
#[derive(Debug)]
pub(crate) struct Stat {
    pub(crate) pid: u32,
    pub(crate) parent: u32,
    name: String,
    state: char,
}

impl Stat {
    pub(crate) fn is_zombie(&self) -> bool {
        self.state == 'Z'
    }

    fn read(pid: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        // The name may hold spaces and brackets: the fields start after the last one.
        let (name, fields) = text.split_once('(')?.1.rsplit_once(')')?;
        let mut fields = fields.split_whitespace();
        let state = fields.next()?.chars().next()?;
        let parent = fields.next()?.parse().ok()?;
        Some(Self { pid, parent, name: name.to_owned(), state })
    }
}

/// Every process there is; those that end meanwhile are left out.
pub(crate) fn all_stats() -> impl Iterator<Item = Stat> {
    fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter_map(Stat::read)
}

fn carries(pid: u32, mark: &str) -> bool {
    let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|variable| variable == mark.as_bytes())
}

fn command(stat: &Stat) -> String {
    let line = fs::read(format!("/proc/{}/cmdline", stat.pid)).unwrap_or_default();
    let line = String::from_utf8_lossy(&line).replace('\0', " ").trim().to_owned();
    if line.is_empty() { stat.name.clone() } else { line }
}

#[expect(clippy::disallowed_methods, reason = "processes live by the machine's clock")]
fn now() -> Instant {
    Instant::now()
}
