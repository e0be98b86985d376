//! Latency of calls to a healthy server while another server has a fault.
//!
//! The baseline is the same load on the other server without the fault. A second baseline has the
//! fault in a host of another process, which separates the cost in the host from the cost on the
//! machine.

mod fault_injector;
mod hostile_tool_lists;
mod round_times;
mod scenarios;

use std::path::{Path, PathBuf};
use std::time::Duration;

use innkeeper_host::Host;
use innkeeper_testkit::ProcessTag;
use serde_json::{Value, json};
use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinSet;

use crate::child_process::ChildProcess;
use crate::resources::now;
use crate::{FAULTY_REMOTE_ARG, HEALTHY_REMOTE_ARG, SEPARATE_HOST_ARG, print_line};
use fault_injector::FaultInjector;
use round_times::{RoundTimes, median};
use scenarios::{FaultScenario, SKIPPED_FAULTS};

/// The name of the healthy server.
const HEALTHY_SERVER: &str = "well";
/// Interval between calls; a call to the faulty server also waits for the end of the previous call.
const CALL_INTERVAL: Duration = Duration::from_millis(1);
/// Number of calls before the measurement.
const WARM_UP_CALLS: usize = 100;
/// Maximum ratio of call durations with and without the fault.
const MAX_SLOWDOWN: f64 = 2.0;

const TABLE_HEADING: &str = "\
| # | fault | p50 before, µs | p50 during, µs | p99 before, µs | p99 during, µs | p99 ratio | ratio, other process | occurrences |
| ---: | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |";

/// The fault catalogue, which has the description of each fault.
const FAULT_CATALOGUE: &str = include_str!("../../../../docs/faults.md");

/// The parameters of a run.
struct NeighbourArgs<'a> {
    rounds: usize,
    calls: usize,
    threads: usize,
    /// The numbers of the selected faults; empty for all faults.
    faults: &'a [usize],
}

/// Runs the fault scenarios and prints the durations of the calls to the healthy server.
///
/// The numbers are rounds, calls per round, worker threads, and optionally the faults.
///
/// # Errors
///
/// A server does not start as its scenario requires, or a call to the healthy server fails.
pub(crate) fn run(numbers: &[usize]) -> Result<(), String> {
    let [rounds, calls, threads, ref faults @ ..] = *numbers else {
        return Err("rounds, calls and threads are required".to_owned());
    };
    let dir = scratch_dir();
    std::fs::create_dir_all(&dir).map_err(|error| format!("`{}`: {error}", dir.display()))?;
    let args = NeighbourArgs { rounds, calls, threads, faults };
    let outcome =
        hostile_tool_lists::write_tool_lists(&dir).and_then(|()| args.run_scenarios(&dir));
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

fn scratch_dir() -> PathBuf {
    std::env::temp_dir().join(format!("innkeeper-neighbour-{}", std::process::id()))
}

impl NeighbourArgs<'_> {
    fn includes_fault(&self, fault: usize) -> bool {
        self.faults.is_empty() || self.faults.contains(&fault)
    }

    fn run_scenarios(&self, dir: &Path) -> Result<(), String> {
        let (runtime, load_at_start) = (runtime(self.threads)?, load_average());
        let mut elsewhere = ChildProcess::start(
            &[SEPARATE_HOST_ARG, &self.threads.to_string()],
            &ProcessTag::new(),
        )?;
        print_line(TABLE_HEADING);
        let (mut played, mut slower) = (0, Vec::new());
        let plays = scenarios::all_scenarios(dir);
        for (index, fault_scenario) in
            plays.iter().enumerate().filter(|(_, candidate)| self.includes_fault(candidate.number))
        {
            let (well, healthy_entry) =
                server_entry(&fault_scenario.healthy(), &[HEALTHY_REMOTE_ARG, &index.to_string()])?;
            let (remote, faulty_entry) =
                server_entry(fault_scenario, &[FAULTY_REMOTE_ARG, &index.to_string()])?;
            let row = ScenarioRun {
                args: self,
                index,
                scenario: fault_scenario,
                healthy_entry,
                faulty_entry,
            };
            let [here, remote_ratio] = row.measure(&runtime, &mut elsewhere).map_err(|error| {
                format!("fault {}, {}: {error}", fault_scenario.number, describe(fault_scenario))
            })?;
            for remote in [well, remote].into_iter().flatten() {
                remote.close()?;
            }
            played += 1;
            if here > MAX_SLOWDOWN {
                slower.push(format!("{} ({here:.1}, {remote_ratio:.1})", fault_scenario.number));
            }
        }
        elsewhere.close()?;
        for (number, reason) in
            SKIPPED_FAULTS.iter().filter(|(number, _)| self.includes_fault(*number))
        {
            print_line(&format!("skipped: {number}, {reason}"));
        }
        let slower_text = if slower.is_empty() { "none".to_owned() } else { slower.join(", ") };
        print_line(&format!(
            "{played} scenarios of {} rounds of {} calls, {} threads; load {load_at_start} at the start, {} at \
             the end; above {MAX_SLOWDOWN} times (fault in this process, in another process): {slower_text}",
            self.rounds,
            self.calls,
            self.threads,
            load_average(),
        ));
        Ok(())
    }
}

/// The configuration entry of a scenario's server; a remote server starts first, with these
/// arguments.
fn server_entry(
    scenario: &FaultScenario,
    arguments: &[&str],
) -> Result<(Option<ChildProcess>, Value), String> {
    if let Some(entry) = scenario.config_entry() {
        return Ok((None, entry));
    }
    let remote = ChildProcess::start(arguments, &ProcessTag::new())?;
    let entry = serde_json::from_str(&remote.recv_line()?);
    Ok((Some(remote), entry.map_err(|error| format!("invalid entry: {error}"))?))
}

/// One run of a scenario.
struct ScenarioRun<'a> {
    args: &'a NeighbourArgs<'a>,
    index: usize,
    scenario: &'a FaultScenario,
    healthy_entry: Value,
    faulty_entry: Value,
}

impl ScenarioRun<'_> {
    /// Prints the row; returns the ratios of the p99 durations with the fault here and in a
    /// separate host.
    fn measure(&self, runtime: &Runtime, elsewhere: &mut ChildProcess) -> Result<[f64; 2], String> {
        let mut injector =
            runtime.block_on(FaultInjector::without_fault(fault_injector::healthy_entry()))?;
        let host = injector.host.clone();
        measure_calls(runtime, &host, WARM_UP_CALLS)?;
        let (healthy, mut percentiles, mut times) = (self.scenario.healthy(), Vec::new(), 0);
        for number in 0..self.args.rounds {
            let before =
                self.measure_round(runtime, &mut injector, &healthy, &self.healthy_entry)?;
            let (uses, mut here) = (injector.use_count(), None);
            // The order changes every other round.
            if number.is_multiple_of(2) {
                here = Some(self.measure_round(
                    runtime,
                    &mut injector,
                    self.scenario,
                    &self.faulty_entry,
                )?);
            }
            elsewhere.send_line(&format!("begin {} {}", self.index, self.faulty_entry))?;
            elsewhere.expect_line("begun")?;
            let remote_times =
                measure_calls(runtime, &host, self.args.calls * self.scenario.call_multiplier)?;
            elsewhere.send_line("end")?;
            elsewhere.expect_line("ended")?;
            percentiles.push([
                before,
                here.map_or_else(
                    || {
                        self.measure_round(
                            runtime,
                            &mut injector,
                            self.scenario,
                            &self.faulty_entry,
                        )
                    },
                    Ok,
                )?,
                remote_times,
            ]);
            times += injector.use_count() - uses;
        }
        runtime.block_on(host.shutdown());
        let at = |which: usize, percent| {
            median(percentiles.iter().map(|round| round[which].percentile(percent)))
        };
        let ratio = |which: usize| {
            median(
                percentiles
                    .iter()
                    .map(|round| round[which].percentile(99) / round[0].percentile(99)),
            )
        };
        let [here, remote_ratio] = [ratio(1), ratio(2)];
        print_line(&format!(
            "| {} | {} | {:.0} | {:.0} | {:.0} | {:.0} | {here:.1} | {remote_ratio:.1} | {} |",
            self.scenario.number,
            describe(self.scenario),
            at(0, 50),
            at(1, 50),
            at(0, 99),
            at(1, 99),
            times,
        ));
        Ok([here, remote_ratio])
    }

    fn measure_round(
        &self,
        runtime: &Runtime,
        injector: &mut FaultInjector,
        scenario: &FaultScenario,
        entry: &Value,
    ) -> Result<RoundTimes, String> {
        runtime.block_on(injector.begin(scenario, entry))?;
        let times_measured = measure_calls(
            runtime,
            &injector.host.clone(),
            self.args.calls * self.scenario.call_multiplier,
        )?;
        runtime.block_on(injector.end())?;
        Ok(times_measured)
    }
}

/// Calls the healthy server `calls` times, one call per [`CALL_INTERVAL`] regardless of pending
/// calls: a pause of the host then affects all calls of that time.
fn measure_calls(runtime: &Runtime, host: &Host, calls: usize) -> Result<RoundTimes, String> {
    let (mut due, mut tasks, mut times) = (now(), JoinSet::new(), Vec::with_capacity(calls));
    for _ in 0..calls {
        std::thread::sleep(due.saturating_duration_since(now()));
        due += CALL_INTERVAL;
        let (host, from) = (host.clone(), now());
        let call = async move {
            let result =
                host.call_tool(&format!("{HEALTHY_SERVER}.echo"), json!({"message": "hi"})).await;
            result.map(|_| from.elapsed())
        };
        tasks.spawn_on(call, runtime.handle());
    }
    while let Some(ended) = runtime.block_on(tasks.join_next()) {
        let outcome = ended.map_err(|error| format!("a caller: {error}"))?;
        times.push(outcome.map_err(|error| format!("call to the healthy server: {error}"))?);
    }
    Ok(RoundTimes::new(times))
}

/// Runs a host with faults until the end of the input: `begin SCENARIO ENTRY`, then `end`.
pub(crate) fn serve_separate_host(threads: usize) -> Result<(), String> {
    let (runtime, plays) = (runtime(threads)?, scenarios::all_scenarios(&scratch_dir()));
    let mut injector = runtime.block_on(FaultInjector::without_fault(json!({})))?;
    for line in std::io::stdin().lines() {
        let line = line.map_err(|error| format!("stdin: {error}"))?;
        let done = match line.strip_prefix("begin ").and_then(|rest| rest.split_once(' ')) {
            Some((index_text, entry)) => {
                let play = index_text.parse().ok().and_then(|index: usize| plays.get(index));
                let play = play.ok_or("unknown scenario")?;
                let entry = serde_json::from_str(entry).map_err(|error| error.to_string())?;
                runtime.block_on(injector.begin(play, &entry)).map(|()| "begun")
            }
            None => runtime.block_on(injector.end()).map(|()| "ended"),
        };
        print_line(done.as_deref().unwrap_or_else(|problem| problem));
    }
    runtime.block_on(injector.host.shutdown());
    Ok(())
}

/// Runs the remote server of a scenario until the end of the input, in a separate process, so that
/// its resources do not count as the host's.
pub(crate) fn serve_remote(index: usize, healthy: bool) -> Result<(), String> {
    let plays = scenarios::all_scenarios(&scratch_dir());
    let play = plays.get(index).map(|play| if healthy { play.healthy() } else { play.clone() });
    let plan = play.and_then(|play| play.remote()).ok_or("scenario without a remote server")?;
    runtime(1)?.block_on(async {
        let remote = plan.start().await;
        print_line(&remote.config_entry().to_string());
        let input = tokio::task::spawn_blocking(|| std::io::stdin().lines().for_each(drop));
        input.await.map_err(|error| format!("stdin: {error}"))?;
        remote.stop().await;
        Ok(())
    })
}

fn runtime(threads: usize) -> Result<Runtime, String> {
    let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build();
    runtime.map_err(|error| format!("cannot start the runtime: {error}"))
}

/// The catalogue's description of the server's behaviour.
fn describe(scenario: &FaultScenario) -> String {
    let begins = format!("| {} | ", scenario.number);
    let row = FAULT_CATALOGUE.lines().find_map(|line| line.strip_prefix(&begins));
    let description = row.and_then(|row| row.split(" | ").next()).unwrap_or("?");
    if scenario.detail.is_empty() {
        description.to_owned()
    } else {
        format!("{description}: {}", scenario.detail)
    }
}

/// The machine's load average over one minute.
fn load_average() -> String {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().unwrap_or("?").to_owned()
}
