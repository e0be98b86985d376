//! The main function of the benchmark clients.

use std::future::Future;
use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::client::{self, BenchClient};
use crate::raw_pipe;
use crate::workload::{BenchCase, Workload};

/// Runs the program of a benchmark client.
pub fn run_client<C: BenchClient>(peer: &str) -> ExitCode {
    let peer = peer.to_owned();
    run_measurement(async move |work: Workload| {
        if work.case == BenchCase::Start {
            client::measure_start::<C>(&work).await.report(&peer, &work)
        } else {
            client::measure_calls::<C>(&work).await.report(&peer, &work)
        }
    })
}

/// Runs the program of the raw pipe.
pub fn run_raw_pipe() -> ExitCode {
    run_measurement(async |work: Workload| {
        if work.case == BenchCase::Start {
            raw_pipe::measure_start(&work).await.report("bare", &work)
        } else {
            raw_pipe::measure_calls(&work).await.report("bare", &work)
        }
    })
}

/// Threads of the multi-thread runtime, independent of the number of CPUs.
const WORKER_THREADS: usize = 2;

/// Runs the measurement as a task, as in a service: a future in `block_on` is polled later than a
/// task.
fn run_measurement<F>(measure: impl FnOnce(Workload) -> F) -> ExitCode
where
    F: Future<Output = Value> + Send + 'static,
{
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = Workload::parse(&arguments).and_then(|work| {
        let mut runtime = if work.multi_thread {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        if work.is_pinned() {
            pin_to_one_cpu()?;
        }
        let runtime = runtime
            .worker_threads(WORKER_THREADS)
            .enable_all()
            .build()
            .map_err(|error| error.to_string())?;
        let measured = runtime.block_on(async { tokio::spawn(measure(work)).await });
        measured.map_err(|error| error.to_string())
    });
    match measured {
        Ok(line) => {
            println!("{line}");
            ExitCode::SUCCESS
        }
        Err(problem) => {
            eprintln!("error: {problem}");
            ExitCode::from(2)
        }
    }
}

/// Restricts this process and its server to the first available CPU.
fn pin_to_one_cpu() -> Result<(), String> {
    let problem = |error| format!("cannot set the CPU affinity: {error}");
    let allowed = sched_getaffinity(None).map_err(problem)?;
    let mut first = CpuSet::new();
    first.set((0..CpuSet::MAX_CPU).find(|number| allowed.is_set(*number)).unwrap_or(0));
    sched_setaffinity(None, &first).map_err(problem)
}
