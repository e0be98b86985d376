//! Terminates hostile process trees, with several hosts at a time.
//!
//! Measures the time until all processes are gone, and reports the leftovers.

pub(crate) mod host_process;
pub(crate) mod process_tree;
mod termination_times;

use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_testkit::{ProcessTag, tagged_processes};
use rustix::io::Errno;
use rustix::process::{Pid, Signal, kill_process};

use crate::child_process::ChildProcess;
use crate::resources::{OrphanedZombies, now};
use crate::{KILLS_HOST_PROCESS_ARG, print_line};
use process_tree::{ProcessTree, Termination};
use termination_times::TerminationTimes;

/// Number of concurrent hosts: some wait for a server's shutdown timeout while others use the CPUs.
const CONCURRENT_HOSTS: usize = 6;
/// Maximum time until a process tree is gone; the longest regular path takes two shutdown timeouts.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between checks of the known processes.
const POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Number of checks between two searches for unknown processes.
const POLLS_PER_SEARCH: usize = 20;

/// Terminates `count` process trees.
///
/// # Errors
///
/// A process or a ledger entry was left behind, or a termination failed.
pub(crate) fn run(count: usize) -> Result<(), String> {
    let before = OrphanedZombies::current();
    let dir = std::env::temp_dir().join(format!("innkeeper-soak-{}", std::process::id()));
    let (next, start) = (AtomicUsize::new(0), now());
    let worked: Vec<Result<KillWorker, String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT_HOSTS)
            .map(|number| {
                let (dir, next) = (dir.join(number.to_string()), &next);
                scope.spawn(move || KillWorker::run(dir, next, count))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
            .collect()
    });
    let _ = std::fs::remove_dir_all(&dir);
    let (mut times, mut problems, mut processes) = (TerminationTimes::default(), Vec::new(), 0);
    for worker in worked {
        let worker = worker?;
        times.extend(worker.times);
        problems.extend(worker.leftovers);
        processes += worker.process_count;
    }
    problems.extend(OrphanedZombies::remaining_since(&before));
    print_line(&times.table());
    print_line(&format!(
        "{} trees of {processes} processes, {CONCURRENT_HOSTS} hosts at a time, {} s; left behind: {}",
        times.count(),
        start.elapsed().as_secs(),
        problems.len(),
    ));
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

/// A worker with one host process at a time, while there are trees to terminate.
struct KillWorker {
    ledger: PathBuf,
    process_tag: ProcessTag,
    host_process: ChildProcess,
    times: TerminationTimes,
    leftovers: Vec<String>,
    process_count: usize,
}

impl KillWorker {
    fn run(ledger: PathBuf, next: &AtomicUsize, count: usize) -> Result<Self, String> {
        let (tag, times, leftovers) = (ProcessTag::new(), TerminationTimes::default(), Vec::new());
        let host_process = start_host_process(&ledger, &tag)?;
        let mut worker =
            Self { ledger, process_tag: tag, host_process, times, leftovers, process_count: 0 };
        loop {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= count {
                break;
            }
            let (tree, termination) = process_tree::tree_and_termination(number);
            let ended = worker.terminate_tree(tree, termination);
            ended.map_err(|error| {
                format!("{number}, {:?} by {termination:?}: {error}", ProcessTree::from_index(tree))
            })?;
            if (number + 1).is_multiple_of(1000) {
                print_line(&format!("{} of {count} trees", number + 1));
            }
        }
        worker.host_process.kill()?;
        Ok(worker)
    }

    fn terminate_tree(&mut self, tree: usize, termination: Termination) -> Result<(), String> {
        let tag = ProcessTag::new();
        self.host_process.send_line(&format!("start {} {tree}", tag.as_str()))?;
        self.host_process.expect_line("ready")?;
        let pids: Vec<u32> = tagged_processes(&tag).iter().map(|process| process.pid).collect();
        if pids.len() < ProcessTree::from_index(tree).min_process_count() {
            return Err(format!("only {} processes to terminate", pids.len()));
        }
        self.process_count += pids.len();
        let since = self.begin_termination(termination)?;
        match wait_gone(&tag, pids, since) {
            Ok(took) => self.times.add(termination, took),
            Err(leftovers) => {
                let all = leftovers.into_iter().map(|one| format!("{one}, after {termination:?}"));
                self.leftovers.extend(all);
            }
        }
        match termination {
            Termination::HostKilled => {
                self.host_process = start_host_process(&self.ledger, &self.process_tag)?;
            }
            Termination::HostSwept => drop(self.host_process.expect_line("swept")?),
            Termination::Shutdown
            | Termination::ServerKilled
            | Termination::Dropped
            | Termination::Killed => {
                self.host_process.expect_line("ended")?;
                self.host_process.send_line("held")?;
                let leftover_objects = self.host_process.expect_line("holds")?;
                if leftover_objects != "nothing" {
                    self.leftovers
                        .push(format!("{leftover_objects} of the host, after {termination:?}"));
                }
            }
        }
        Ok(())
    }

    /// Starts the termination of the tree; returns the start time.
    fn begin_termination(&mut self, termination: Termination) -> Result<Instant, String> {
        let command = match termination {
            Termination::Shutdown => "shutdown",
            Termination::Dropped => "drop",
            Termination::Killed => "kill",
            Termination::ServerKilled | Termination::HostKilled | Termination::HostSwept => "call",
        };
        let mut since = now();
        self.host_process.send_line(command)?;
        if command != "call" {
            return Ok(since);
        }
        let pid = self.host_process.expect_line("calling")?;
        since = now();
        if termination == Termination::ServerKilled {
            let pid = pid.parse().ok().and_then(Pid::from_raw);
            // Some servers exit as soon as the call arrives.
            match pid.map_or(Ok(()), |pid| kill_process(pid, Signal::KILL)) {
                Ok(()) | Err(Errno::SRCH) => {}
                Err(error) => return Err(format!("kill: {error}")),
            }
        } else {
            self.host_process.kill()?;
        }
        if termination == Termination::HostSwept {
            self.host_process = start_host_process(&self.ledger, &self.process_tag)?;
            self.host_process.send_line("sweep")?;
        }
        Ok(since)
    }
}

fn start_host_process(ledger: &std::path::Path, tag: &ProcessTag) -> Result<ChildProcess, String> {
    ChildProcess::start(&[KILLS_HOST_PROCESS_ARG, &ledger.display().to_string()], tag)
}

/// Waits until no process has the tag; returns the duration.
///
/// Two searches in a row, because a concurrent fork can hide a process from one search.
fn wait_gone(
    tag: &ProcessTag,
    mut known_pids: Vec<u32>,
    since: Instant,
) -> Result<Duration, Vec<String>> {
    let exists = |pid: &u32| PathBuf::from(format!("/proc/{pid}")).exists();
    let mut looks = 0;
    loop {
        looks += 1;
        if looks % POLLS_PER_SEARCH == 0 || !known_pids.iter().any(exists) {
            let took = since.elapsed();
            let processes = [tagged_processes(tag), tagged_processes(tag)].concat();
            if processes.is_empty() {
                return Ok(took);
            }
            if took > EXIT_TIMEOUT {
                let state_name = |zombie| if zombie { "zombie" } else { "orphan" };
                let all = processes.iter().map(|process| {
                    format!(
                        "{} {} `{}`",
                        state_name(process.is_zombie),
                        process.pid,
                        process.command
                    )
                });
                return Err(all.collect());
            }
            known_pids = processes.iter().map(|found| found.pid).collect();
        }
        thread::sleep(POLL_INTERVAL);
    }
}
