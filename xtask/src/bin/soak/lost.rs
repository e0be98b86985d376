//! Kills hosts, supervisors, and both at the same moment, and counts the processes that are left.
//!
//! Without daemons nothing may be left; with daemons nothing may be left after the start of the
//! next host.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use innkeeper_host::host_process;
use innkeeper_testkit::{ProcessTag, tagged_processes};
use rustix::process::{Pid, Signal, kill_process};

use crate::child_process::ChildProcess;
use crate::kills::process_tree::{self, ProcessTree};
use crate::resources::now;
use crate::{LOST_HOST_ARG, kills, print_line};

/// Number of concurrent hosts.
const CONCURRENT_HOSTS: usize = 4;
/// Maximum time until the processes of a round are gone.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);
/// Interval between two searches.
const POLL_INTERVAL: Duration = Duration::from_millis(5);

/// The processes that a round kills.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Victims {
    Host,
    Supervisors,
    Both,
}

const ALL_VICTIMS: [Victims; 3] = [Victims::Host, Victims::Supervisors, Victims::Both];

const TREES: [ProcessTree; 6] = [
    ProcessTree::HiddenDaemon,
    ProcessTree::IgnoresSignals,
    ProcessTree::Daemon,
    ProcessTree::ShellRunner,
    ProcessTree::DoubleFork,
    ProcessTree::ClosedPipes,
];

/// The results of all rounds with the same victims.
#[derive(Clone, Copy, Debug, Default)]
struct RoundCounts {
    rounds: usize,
    processes: usize,
    left_before_next_host: usize,
    left: usize,
}

type Results = BTreeMap<Victims, RoundCounts>;

/// Runs `count` rounds.
///
/// # Errors
///
/// A process was left behind, or a round failed.
pub(crate) fn run(count: usize) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("innkeeper-lost-{}", std::process::id()));
    let (next, start) = (AtomicUsize::new(0), now());
    let worked: Vec<Result<Results, String>> = thread::scope(|scope| {
        let workers: Vec<_> = (0..CONCURRENT_HOSTS)
            .map(|number| {
                let (ledger, next) = (dir.join(number.to_string()), &next);
                scope.spawn(move || run_rounds(&ledger, next, count))
            })
            .collect();
        workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|_| Err("a worker panicked".to_owned())))
            .collect()
    });
    let _ = std::fs::remove_dir_all(&dir);
    let mut total = Results::new();
    for results in worked {
        for (victims, counts) in results? {
            let sum = total.entry(victims).or_default();
            sum.rounds += counts.rounds;
            sum.processes += counts.processes;
            sum.left_before_next_host += counts.left_before_next_host;
            sum.left += counts.left;
        }
    }
    print_line("| killed | rounds | processes | left before the next host | left |");
    print_line("| --- | ---: | ---: | ---: | ---: |");
    for (victims, counts) in &total {
        let RoundCounts { rounds, processes, left_before_next_host, left } = counts;
        let name = match victims {
            Victims::Host => "host",
            Victims::Supervisors => "supervisor",
            Victims::Both => "host and supervisor",
        };
        print_line(&format!(
            "| {name} | {rounds} | {processes} | {left_before_next_host} | {left} |"
        ));
    }
    let left: usize = total.values().map(|counts| counts.left).sum();
    print_line(&format!("{count} rounds, {} s; left behind: {left}", start.elapsed().as_secs()));
    if left == 0 { Ok(()) } else { Err(format!("{left} processes were left behind")) }
}

/// Runs a host that adopts orphans, as the program `innkeeper` does.
pub(crate) fn serve(ledger: &str) -> Result<(), String> {
    host_process::adopt_orphans().map_err(|error| format!("cannot adopt orphans: {error}"))?;
    kills::host_process::serve(ledger)
}

fn run_rounds(ledger: &Path, next: &AtomicUsize, count: usize) -> Result<Results, String> {
    let mut results = Results::new();
    let mut host = start_host(ledger)?;
    loop {
        let number = next.fetch_add(1, Ordering::Relaxed);
        if number >= count {
            host.kill()?;
            return Ok(results);
        }
        let victims = ALL_VICTIMS[number % ALL_VICTIMS.len()];
        let tree = TREES[(number / ALL_VICTIMS.len()) % TREES.len()];
        let round = Round { number, victims, tree, tag: ProcessTag::new() };
        let counts = results.entry(victims).or_default();
        round
            .run(&mut host, ledger, counts)
            .map_err(|error| format!("round {number}, {tree:?}, {victims:?}: {error}"))?;
    }
}

fn start_host(ledger: &Path) -> Result<ChildProcess, String> {
    ChildProcess::start(&[LOST_HOST_ARG, &ledger.display().to_string()], &ProcessTag::new())
}

struct Round {
    number: usize,
    victims: Victims,
    tree: ProcessTree,
    tag: ProcessTag,
}

impl Round {
    fn run(
        &self,
        host: &mut ChildProcess,
        ledger: &Path,
        counts: &mut RoundCounts,
    ) -> Result<(), String> {
        host.send_line(&format!("start {} {}", self.tag.as_str(), self.tree.index()))?;
        host.expect_line("ready")?;
        let processes = self.processes();
        let shims = supervisors(&self.tag);
        if shims.is_empty() || processes.len() < self.tree.min_process_count() {
            return Err(format!("only {} processes to lose", processes.len()));
        }
        counts.rounds += 1;
        counts.processes += processes.len();
        if self.victims == Victims::Supervisors {
            // During a call the runtime of the host runs.
            host.send_line("call")?;
            host.expect_line("calling")?;
        }
        self.kill_victims(host, &shims)?;
        let has_daemon = !matches!(
            self.tree,
            ProcessTree::IgnoresSignals | ProcessTree::ShellRunner | ProcessTree::ClosedPipes
        );
        if self.victims == Victims::Both && has_daemon {
            counts.left_before_next_host += self.processes().len();
        } else {
            counts.left += self.wait_gone();
        }
        if self.victims == Victims::Supervisors {
            host.expect_line("ended")?;
            return Ok(());
        }
        *host = start_host(ledger)?;
        host.send_line("sweep")?;
        host.expect_line("swept")?;
        let left = self.processes();
        counts.left += left.len();
        if !left.is_empty() {
            print_line(&format!("round {}, {:?}: left {left:?}", self.number, self.tree));
        }
        Ok(())
    }

    /// Stops the victims first, so that none acts on the end of another.
    fn kill_victims(&self, host: &mut ChildProcess, shims: &[Pid]) -> Result<(), String> {
        let host_pid = i32::try_from(host.pid()).ok().and_then(Pid::from_raw);
        let host_pid = host_pid.filter(|_| self.victims != Victims::Supervisors);
        let shims = shims.iter().copied().filter(|_| self.victims != Victims::Host);
        let victims: Vec<Pid> = shims.chain(host_pid).collect();
        for signal in [Signal::STOP, Signal::KILL] {
            for victim in &victims {
                kill_process(*victim, signal).map_err(|error| format!("kill: {error}"))?;
            }
        }
        if host_pid.is_some() { host.kill() } else { Ok(()) }
    }

    /// Returns the running processes of the tree, without its supervisor.
    fn processes(&self) -> Vec<u32> {
        let tagged = tagged_processes(&self.tag).into_iter();
        let mut pids: Vec<u32> =
            tagged.filter(|process| !process.is_zombie).map(|process| process.pid).collect();
        let hidden = process_tree::hidden_command(self.tag.as_str());
        pids.extend(pids_of_command(hidden.as_bytes()));
        pids.sort_unstable();
        pids.dedup();
        pids
    }

    /// Waits until no process of the tree runs; returns the number of those that remain.
    fn wait_gone(&self) -> usize {
        let since: Instant = now();
        loop {
            let left = self.processes();
            if left.is_empty() {
                return 0;
            }
            if since.elapsed() > EXIT_TIMEOUT {
                print_line(&format!(
                    "round {}, {:?} after {:?}: left {left:?}",
                    self.number, self.tree, self.victims
                ));
                return left.len();
            }
            thread::sleep(POLL_INTERVAL);
        }
    }
}

/// Returns the supervisors of the processes with the tag.
fn supervisors(tag: &ProcessTag) -> Vec<Pid> {
    let parents = tagged_processes(tag).into_iter().map(|process| process.parent_pid);
    let shims: std::collections::BTreeSet<u32> = parents
        .filter(|pid| {
            let name = std::fs::read_to_string(format!("/proc/{pid}/comm"));
            name.is_ok_and(|name| name.trim() == "innkeeper-shim")
        })
        .collect();
    shims.into_iter().filter_map(|pid| Pid::from_raw(pid.try_into().ok()?)).collect()
}

/// Returns the processes with this command line, whose arguments end with NUL.
fn pids_of_command(command: &[u8]) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let line = |pid: &u32| std::fs::read(PathBuf::from(format!("/proc/{pid}/cmdline")));
    pids.filter(|pid| line(pid).is_ok_and(|line| line == command)).collect()
}
