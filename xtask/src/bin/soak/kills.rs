//! Hostile trees, each ended once, by several hosts at a time; looks at what is left and how long
//! it took.

pub(crate) mod guest;
mod plan;
mod times;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_testkit::{Nonce, processes_with};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::observe::{Zombies, now};
use crate::partner::Partner;
use crate::{KILLS_GUEST, say};
use plan::{End, Tree};
use times::Times;

/// Hosts at a time: several wait out the grace of a server while others use the processors.
const HOSTS: usize = 6;
/// How long a tree may take to be gone; the longest regular way takes two graces.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long to wait before looking whether the known processes are gone.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// After so many of these looks it is looked for processes that are not known yet.
const SEARCH: usize = 20;

/// Ends so many trees.
///
/// # Errors
///
/// Something was left, or an end did not go as it must.
pub(crate) fn run(count: usize) -> Result<(), String> {
    let before = Zombies::adopted();
    let folder = std::env::temp_dir().join(format!("innkeeper-soak-{}", std::process::id()));
    let (next, start) = (AtomicUsize::new(0), now());
    let worked: Vec<Result<Worker, String>> = thread::scope(|scope| {
        let work = |number: usize| {
            let (folder, next) = (folder.join(number.to_string()), &next);
            scope.spawn(move || Worker::work(folder, next, count))
        };
        let workers: Vec<_> = (0..HOSTS).map(work).collect();
        let join = |worker: thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned()))
        };
        workers.into_iter().map(join).collect()
    });
    drop(std::fs::remove_dir_all(&folder));
    let (mut times, mut problems, mut processes) = (Times::default(), Vec::new(), 0);
    for worker in worked {
        let worker = worker?;
        times.extend(worker.times);
        problems.extend(worker.left);
        processes += worker.processes;
    }
    problems.extend(Zombies::left_since(&before));
    say(&times.table());
    say(&format!(
        "{} trees of {processes} processes, {HOSTS} hosts at a time, {} s; left behind: {}",
        times.count(),
        start.elapsed().as_secs(),
        problems.len(),
    ));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// One host after the other, for as long as there are trees to end.
struct Worker {
    ledger: PathBuf,
    nonce: Nonce,
    guest: Partner,
    times: Times,
    left: Vec<String>,
    processes: usize,
}

impl Worker {
    fn work(ledger: PathBuf, next: &AtomicUsize, count: usize) -> Result<Self, String> {
        let (nonce, times, left) = (Nonce::new(), Times::default(), Vec::new());
        let guest = start(&ledger, &nonce)?;
        let mut worker = Self { ledger, nonce, guest, times, left, processes: 0 };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let (tree, end) = plan::of(number);
            let ended = worker.end(tree, end);
            let wrong = |why| format!("{number}, {:?} by {end:?}: {why}", Tree::numbered(tree));
            ended.map_err(wrong)?;
            if (number + 1).is_multiple_of(1000) {
                say(&format!("{} of {count} trees", number + 1));
            }
        }
        worker.guest.kill()?;
        Ok(worker)
    }

    fn end(&mut self, tree: usize, end: End) -> Result<(), String> {
        let nonce = Nonce::new();
        self.guest.tell(&format!("start {} {tree}", nonce.as_str()))?;
        self.guest.hear_of("ready")?;
        let known: Vec<u32> = processes_with(&nonce).iter().map(|found| found.pid).collect();
        if known.len() < Tree::numbered(tree).least() {
            return Err(format!("only {} processes were there to end", known.len()));
        }
        self.processes += known.len();
        let since = self.begin(end)?;
        match gone(&nonce, known, since) {
            Ok(took) => self.times.add(end, took),
            Err(left) => {
                let all = left.into_iter().map(|one| format!("{one}, after {end:?}"));
                self.left.extend(all);
            }
        }
        match end {
            End::HostKilled => self.guest = start(&self.ledger, &self.nonce)?,
            End::HostSwept => drop(self.guest.hear_of("swept")?),
            End::Shutdown | End::ServerKilled | End::Dropped | End::Killed => {
                self.guest.hear_of("ended")?;
                self.guest.tell("held")?;
                let held = self.guest.hear_of("holds")?;
                if held != "nothing" {
                    self.left.push(format!("{held} of the host, after {end:?}"));
                }
            }
        }
        Ok(())
    }

    /// Begins to end the tree; when that was.
    fn begin(&mut self, end: End) -> Result<Instant, String> {
        let word = match end {
            End::Shutdown => "shutdown",
            End::Dropped => "drop",
            End::Killed => "kill",
            End::ServerKilled | End::HostKilled | End::HostSwept => "call",
        };
        let mut since = now();
        self.guest.tell(word)?;
        if word != "call" {
            return Ok(since);
        }
        let pid = self.guest.hear_of("calling")?;
        since = now();
        if end == End::ServerKilled {
            let pid = pid.parse().ok().and_then(Pid::from_raw);
            // Some leave by themselves as soon as they are called.
            match pid.map_or(Ok(()), |pid| kill_process(pid, Signal::KILL)) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(format!("kill: {error}")),
            }
        } else {
            self.guest.kill()?;
        }
        if end == End::HostSwept {
            self.guest = start(&self.ledger, &self.nonce)?;
            self.guest.tell("sweep")?;
        }
        Ok(since)
    }
}

fn start(ledger: &std::path::Path, nonce: &Nonce) -> Result<Partner, String> {
    Partner::start(&[KILLS_GUEST, &ledger.display().to_string()], nonce)
}

/// Waits until nobody carries the nonce, twice in a row since a fork may hide from one look; how
/// long it took.
fn gone(nonce: &Nonce, mut known: Vec<u32>, since: Instant) -> Result<Duration, Vec<String>> {
    let there = |pid: &u32| PathBuf::from(format!("/proc/{pid}")).exists();
    let mut looks = 0;
    loop {
        looks += 1;
        if looks % SEARCH == 0 || !known.iter().any(there) {
            let took = since.elapsed();
            let left = [processes_with(nonce), processes_with(nonce)].concat();
            if left.is_empty() {
                return Ok(took);
            }
            if took > PATIENCE {
                let word = |zombie| if zombie { "zombie" } else { "orphan" };
                let all = left
                    .iter()
                    .map(|one| format!("{} {} `{}`", word(one.zombie), one.pid, one.command));
                return Err(all.collect());
            }
            known = left.iter().map(|found| found.pid).collect();
        }
        thread::sleep(LOOK_AGAIN);
    }
}
