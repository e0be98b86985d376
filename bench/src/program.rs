//! What a client's program does: reads its work, runs it on the runtime asked for, prints one line.

use std::future::Future;
use std::process::ExitCode;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use serde_json::Value;

use crate::bare;
use crate::client::{self, Client};
use crate::work::{Case, Work};

/// The whole program of an ordinary client.
pub fn client<C: Client>(peer: &str) -> ExitCode {
    let peer = peer.to_owned();
    run(async move |work: Work| {
        if work.case == Case::Start {
            client::start::<C>(&work).await.report(&peer, &work)
        } else {
            client::calls::<C>(&work).await.report(&peer, &work)
        }
    })
}

/// The whole program of the bare loop.
pub fn bare() -> ExitCode {
    run(async |work: Work| {
        if work.case == Case::Start {
            bare::start(&work).await.report("bare", &work)
        } else {
            bare::calls(&work).await.report("bare", &work)
        }
    })
}

/// Threads of the multi-thread runtime, on however many processors.
const WORKERS: usize = 2;

/// The work runs as a task, as that of a service does: what blocks on the runtime is woken over
/// more turns.
fn run<F>(measure: impl FnOnce(Work) -> F) -> ExitCode
where
    F: Future<Output = Value> + Send + 'static,
{
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let measured = Work::parse(&arguments).and_then(|work| {
        let mut runtime = if work.threads {
            tokio::runtime::Builder::new_multi_thread()
        } else {
            tokio::runtime::Builder::new_current_thread()
        };
        if work.case != Case::Start && !(work.threads && work.case == Case::Flight) {
            stay_on_one_processor()?;
        }
        let runtime = runtime
            .worker_threads(WORKERS)
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

/// Keeps this process and its server on the first processor they may use. Between two a call's time
/// is that of waking the other one, which in a virtual machine is ten times what is measured here.
/// Only threads with many calls in flight have both: they keep them awake.
fn stay_on_one_processor() -> Result<(), String> {
    let problem = |error| format!("one processor: {error}");
    let allowed = sched_getaffinity(None).map_err(problem)?;
    let mut first = CpuSet::new();
    first.set((0..CpuSet::MAX_CPU).find(|number| allowed.is_set(*number)).unwrap_or(0));
    sched_setaffinity(None, &first).map_err(problem)
}
