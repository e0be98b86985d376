//! The measurement loops of all clients: sequential calls, or many tasks.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::figures::{CallFigures, StartFigures, cpu_time, status_kb, supervisors_kb};
use crate::workload::{BenchCase, Workload};

/// Duration of the calls before the measurement.
const WARM_UP_TIME: Duration = Duration::from_millis(150);
/// Idle time of a started client before the measurement of its memory.
const IDLE_TIME: Duration = Duration::from_millis(300);

/// A connected client.
pub trait BenchClient: Clone + Send + Sync + Sized + 'static {
    /// Starts `servers` echo servers and lists everything that each server offers.
    fn connect(work: &Workload, servers: usize) -> impl Future<Output = Self> + Send;

    /// The number of tools of all servers.
    fn tool_count(&self) -> usize;

    /// Calls `echo` of one server with arguments as an application builds them; returns whether the
    /// response has the expected number of text bytes.
    fn call(
        &self,
        server: usize,
        case: BenchCase,
        message: &str,
    ) -> impl Future<Output = bool> + Send;

    /// Shuts all servers down.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Runs the calls of one case.
pub async fn measure_calls<C: BenchClient>(work: &Workload) -> CallFigures {
    let client = C::connect(work, work.called_servers()).await;
    run_calls(&client, work, WARM_UP_TIME).await;
    let calls = run_calls(&client, work, work.duration).await;
    client.close().await;
    calls
}

async fn run_calls<C: BenchClient>(client: &C, work: &Workload, span: Duration) -> CallFigures {
    let message: Arc<str> = work.case.message().into();
    let (before, start) = (cpu_time(), Instant::now());
    let until = start + span;
    let mut calls = CallFigures::default();
    if work.in_flight() == 1 {
        calls.call_nanos = run_sequential(client.clone(), work.case, message, until).await;
        calls.count = calls.call_nanos.len();
    } else {
        let tasks: Vec<_> = (0..work.in_flight())
            .map(|caller| {
                let server = caller % work.called_servers();
                let message = Arc::clone(&message);
                tokio::spawn(run_caller(client.clone(), server, work.case, message, until))
            })
            .collect();
        for task in tasks {
            calls.count += task.await.expect("a caller task panicked");
        }
    }
    calls.wall_time = start.elapsed();
    calls.cpu_time = cpu_time().saturating_sub(before);
    calls
}

async fn run_sequential<C: BenchClient>(
    client: C,
    case: BenchCase,
    message: Arc<str>,
    until: Instant,
) -> Vec<u64> {
    let mut nanos = Vec::new();
    let mut start = Instant::now();
    while start < until {
        assert!(client.call(0, case, &message).await, "incomplete response");
        let end = Instant::now();
        nanos.push(u64::try_from((end - start).as_nanos()).unwrap_or(u64::MAX));
        start = end;
    }
    nanos
}

async fn run_caller<C: BenchClient>(
    client: C,
    server: usize,
    case: BenchCase,
    message: Arc<str>,
    until: Instant,
) -> usize {
    let mut count = 0;
    while Instant::now() < until {
        assert!(client.call(server, case, &message).await, "incomplete response");
        count += 1;
    }
    count
}

/// Starts, lists, idles and closes all servers.
pub async fn measure_start<C: BenchClient>(work: &Workload) -> StartFigures {
    let begin = Instant::now();
    let client = C::connect(work, work.server_count).await;
    let ready = begin.elapsed();
    tokio::time::sleep(IDLE_TIME).await;
    let (tools, idle_kb, beside_kb) = (client.tool_count(), status_kb("VmRSS:"), supervisors_kb());
    let end = Instant::now();
    client.close().await;
    StartFigures {
        ready_time: ready,
        tools,
        idle_kb,
        supervisors_kb: beside_kb,
        close_time: end.elapsed(),
    }
}
