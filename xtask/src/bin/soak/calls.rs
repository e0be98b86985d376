//! Calls with injected faults in one host, with checks of outcomes and resources.

mod call_plan;
mod call_run;
mod servers;

use std::path::Path;

use innkeeper_testkit::{ProcessTag, read_call_log};
use tokio::runtime::Builder;

use crate::child_process::ChildProcess;
use crate::resources::{ResourceSample, now};
use crate::{REMOTE_SERVERS_ARG, print_line};
use call_plan::CallPlan;
use call_run::{CallRun, IN_FLIGHT, OutcomeCounts};
use servers::SERVER_NAMES;

pub(crate) use servers::serve_remotes;

/// Number of calls before the baseline sample of the host's resources; a short run uses a tenth.
const WARM_UP_CALLS: u64 = 100_000;
/// Worker threads of the runtime, as in an application on a small machine.
const RUNTIME_THREADS: usize = 2;
/// Maximum memory growth in percent and in KiB; the larger value applies, because a short run has
/// no steady state. Open descriptors may grow by the number of calls in flight: each call may keep
/// a connection to a remote server open.
const MAX_MEMORY_GROWTH: (u64, u64) = (5, 4096);
/// Maximum number of reported calls with a wrong execution count.
const MAX_REPORTED_PROBLEMS: usize = 20;

/// Runs `count` calls.
///
/// # Errors
///
/// An outcome is wrong, a call ran twice or never, or the host's resources grew.
pub(crate) fn run(count: u64) -> Result<(), String> {
    let dir = std::env::temp_dir().join(format!("innkeeper-soak-{}", std::process::id()));
    std::fs::create_dir_all(&dir).map_err(|error| format!("`{}`: {error}", dir.display()))?;
    let outcome = run_in_dir(&dir, count);
    let _ = std::fs::remove_dir_all(&dir);
    outcome
}

fn run_in_dir(dir: &Path, count: u64) -> Result<(), String> {
    let remotes =
        ChildProcess::start(&[REMOTE_SERVERS_ARG, &dir.display().to_string()], &ProcessTag::new())?;
    let config = servers::config(dir, &remotes.recv_line()?)?;
    let runtime = Builder::new_multi_thread().worker_threads(RUNTIME_THREADS).enable_all().build();
    let runtime = runtime.map_err(|error| format!("cannot start the runtime: {error}"))?;
    let normal = WARM_UP_CALLS.min(count / 10);
    let start = now();
    let (counts, before, after) = runtime.block_on(async {
        let run = CallRun::start(&config).await?;
        run.run_until(normal).await?;
        let before = ResourceSample::for_current_process();
        run.run_until(count).await?;
        let after = ResourceSample::for_current_process();
        let counts = run.counts();
        run.shutdown().await;
        Ok::<_, String>((counts, before, after))
    })?;
    let seconds = start.elapsed().as_secs();
    remotes.close()?;
    let executed = ExecutionCounts::read(dir, count);
    print_report(count, &counts, &executed, seconds);
    print_line(&format!(
        "         | open descriptors | {} | {} |\n| threads | {} | {} |\n| memory, KiB | {} | {} |",
        before.fds, after.fds, before.threads, after.threads, before.rss_kib, after.rss_kib,
    ));
    let (percent, least) = MAX_MEMORY_GROWTH;
    let mut problems =
        after.growth_since(before, IN_FLIGHT as u64, least.max(before.rss_kib * percent / 100));
    problems.extend(counts.problems);
    problems.extend(executed.problems);
    if counts.outcomes != count {
        problems.push(format!("{count} calls have {} outcomes", counts.outcomes));
    }
    if problems.is_empty() { Ok(()) } else { Err(problems.join("\n")) }
}

fn print_report(count: u64, counts: &OutcomeCounts, executed: &ExecutionCounts, seconds: u64) {
    let faults: u64 = counts.faults.values().sum();
    let kinds: Vec<String> =
        counts.faults.iter().map(|(name, count)| format!("{name} {count}")).collect();
    print_line(&format!(
        "| calls | servers | in flight | faults | lost | ran twice | mismatched | seconds |\n\
         | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |\n\
         | {count} | {} | {IN_FLIGHT} | {faults} | {} | {} | {} | {seconds} |\n\
         faults: {}",
        SERVER_NAMES.len(),
        executed.never_run + (count - counts.outcomes),
        executed.run_twice,
        counts.mismatched,
        kinds.join(", "),
    ));
}

/// The executions that the servers' call logs report.
#[derive(Debug, Default)]
struct ExecutionCounts {
    never_run: u64,
    run_twice: u64,
    problems: Vec<String>,
}

impl ExecutionCounts {
    fn read(dir: &Path, count: u64) -> Self {
        let mut times = vec![0_u32; usize::try_from(count).unwrap_or(0)];
        let mut counts = Self::default();
        for (server, name) in SERVER_NAMES.iter().enumerate() {
            for id in read_call_log(&servers::call_log_path(dir, name)) {
                match times.get_mut(usize::try_from(id).unwrap_or(usize::MAX)) {
                    Some(times) if CallPlan::for_id(id).server == server => *times += 1,
                    Some(_) | None => {
                        counts.problems.push(format!("`{name}` ran call {id} of another server"));
                    }
                }
            }
        }
        for (id, times) in times.iter().enumerate().filter(|(_, times)| **times != 1) {
            counts.never_run += u64::from(*times == 0);
            counts.run_twice += u64::from(*times > 1);
            if counts.problems.len() < MAX_REPORTED_PROBLEMS {
                counts.problems.push(format!("{id} ran {times} times"));
            }
        }
        counts
    }
}
