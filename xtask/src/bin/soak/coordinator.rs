//! Runs start-and-stop cycles in host processes; counts the leftovers.

use innkeeper_testkit::ProcessTag;
use rustix::process::{Pid, Signal, kill_process};

use crate::child_process::ChildProcess;
use crate::host_process::SERVER_NAMES;
use crate::resources::{OrphanedZombies, ResourceSample, wait_for_leftovers};
use crate::{HOST_PROCESS_ARG, print_line};

/// Cycles of the long-lived host process before the baseline sample.
const WARM_UP_CYCLES: usize = 10;
/// Maximum memory growth over the whole run, in KiB.
const MAX_MEMORY_GROWTH_KIB: u64 = 2048;

/// The event of one cycle.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CycleKind {
    /// Calls, then a shutdown.
    Normal,
    /// A kill of the server with this index during a call.
    ServerKilled(usize),
    /// A kill of the host during a call.
    HostKilled,
}

impl CycleKind {
    /// Kills the host in every tenth cycle, and a server in every third of all cycles.
    fn for_cycle(cycle: usize) -> Self {
        match cycle {
            _ if cycle % 10 == 9 => Self::HostKilled,
            _ if cycle.is_multiple_of(3) => Self::ServerKilled(cycle / 3 % SERVER_NAMES.len()),
            _ => Self::Normal,
        }
    }
}

/// A host process with its tag.
struct HostProcess {
    child: ChildProcess,
    process_tag: ProcessTag,
}

impl HostProcess {
    fn start() -> Result<Self, String> {
        let tag = ProcessTag::new();
        Ok(Self {
            child: ChildProcess::start(&[HOST_PROCESS_ARG, tag.as_str()], &tag)?,
            process_tag: tag,
        })
    }

    /// Waits until a call runs; returns the process of its server.
    fn recv_call_started(&self) -> Result<Pid, String> {
        let pid = self.child.expect_line("calling")?;
        pid.parse().ok().and_then(Pid::from_raw).ok_or(pid)
    }

    fn recv_sample(&self) -> Result<ResourceSample, String> {
        self.child.expect_line("done")?.parse()
    }

    fn find_leftovers(&self, before: &OrphanedZombies) -> Vec<String> {
        wait_for_leftovers(&self.process_tag, Some(self.child.pid()), before)
    }
}

/// The long-lived host process, its resource samples, and all leftovers.
pub(crate) struct Coordinator {
    long_lived: HostProcess,
    initial_zombies: OrphanedZombies,
    samples: Vec<ResourceSample>,
    leftovers: Vec<String>,
    kill_counts: [usize; 2],
}

impl Coordinator {
    pub(crate) fn new() -> Result<Self, String> {
        let (long_lived, initial_zombies) = (HostProcess::start()?, OrphanedZombies::current());
        Ok(Self {
            long_lived,
            initial_zombies,
            samples: Vec::new(),
            leftovers: Vec::new(),
            kill_counts: [0; 2],
        })
    }

    /// Runs one cycle and records the leftovers.
    pub(crate) fn run_cycle(&mut self, cycle: usize) -> Result<(), String> {
        match CycleKind::for_cycle(cycle) {
            CycleKind::Normal => self.run_normal(),
            CycleKind::ServerKilled(server) => self.run_server_kill(SERVER_NAMES[server]),
            CycleKind::HostKilled => self.run_host_kill(SERVER_NAMES[cycle % SERVER_NAMES.len()]),
        }
        .map_err(|problem| format!("cycle {cycle}: {problem}"))
    }

    fn run_normal(&mut self) -> Result<(), String> {
        self.long_lived.child.send_line("calm")?;
        self.record_cycle()
    }

    fn run_server_kill(&mut self, server: &str) -> Result<(), String> {
        self.long_lived.child.send_line(&format!("kill {server}"))?;
        let pid = self.long_lived.recv_call_started()?;
        kill_process(pid, Signal::KILL).map_err(|error| format!("kill: {error}"))?;
        self.kill_counts[0] += 1;
        self.record_cycle()
    }

    fn record_cycle(&mut self) -> Result<(), String> {
        let sample = self.long_lived.recv_sample()?;
        self.leftovers.extend(self.long_lived.find_leftovers(&self.initial_zombies));
        self.samples.push(sample);
        Ok(())
    }

    /// Kills a separate host process, because the process does not survive the cycle.
    fn run_host_kill(&mut self, server: &str) -> Result<(), String> {
        let mut host_process = HostProcess::start()?;
        host_process.child.send_line(&format!("kill {server}"))?;
        host_process.recv_call_started()?;
        host_process.child.kill()?;
        self.kill_counts[1] += 1;
        self.leftovers.extend(wait_for_leftovers(
            &host_process.process_tag,
            None,
            &self.initial_zombies,
        ));
        Ok(())
    }

    /// Prints the figures.
    ///
    /// # Errors
    ///
    /// Processes or files were left behind, or the resources of the long-lived host process grew.
    pub(crate) fn finish(mut self) -> Result<(), String> {
        let normal = self.samples.get(WARM_UP_CYCLES.min(self.samples.len() / 2));
        let (Some(normal), Some(last)) = (normal.copied(), self.samples.last().copied()) else {
            return Err("too few cycles for a comparison".to_owned());
        };
        let [servers, hosts] = self.kill_counts;
        print_line(&format!(
            "{} cycles in one host, {servers} servers and {hosts} hosts killed during a call\n\
             left behind: {}\n\
             descriptors {} then {}, threads {} then {}, memory {} KiB then {} KiB",
            self.samples.len(),
            self.leftovers.len(),
            normal.fds,
            last.fds,
            normal.threads,
            last.threads,
            normal.rss_kib,
            last.rss_kib,
        ));
        self.long_lived.child.kill()?;
        let mut problems = self.leftovers;
        problems.extend(last.growth_since(normal, 0, MAX_MEMORY_GROWTH_KIB));
        if self.samples.iter().any(|sample| sample.zombies > 0) {
            problems.push("the host did not reap its children".to_owned());
        }
        if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
    }
}
