//! The closed loops that drive any client: one call after the other, or many tasks doing so.

use std::future::Future;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::figures::{Calls, Started, beside_kb, cpu, status_kb};
use crate::work::{Case, Work};

/// Calls made before any is counted.
const WARM_UP: Duration = Duration::from_millis(150);
/// Time given to a started client to come to rest before its memory is read.
const REST: Duration = Duration::from_millis(300);

/// A connected client.
pub trait Client: Clone + Send + Sync + Sized + 'static {
    /// Starts that many echo servers and lists everything each of them offers.
    fn connect(work: &Work, servers: usize) -> impl Future<Output = Self> + Send;

    /// Tools found on all servers.
    fn tools(&self) -> usize;

    /// Builds the arguments as an application does and calls `echo`; whether the answer holds that
    /// many bytes of text. What the client has not decoded by itself is not decoded for the check.
    fn call(
        &self,
        message: &str,
        bytes: Option<usize>,
        length: usize,
    ) -> impl Future<Output = bool> + Send;

    /// Ends every server.
    fn close(self) -> impl Future<Output = ()> + Send;
}

/// Runs the calls of one case.
pub async fn calls<C: Client>(work: &Work) -> Calls {
    let client = C::connect(work, 1).await;
    drive(&client, work, WARM_UP).await;
    let calls = drive(&client, work, work.span).await;
    client.close().await;
    calls
}

async fn drive<C: Client>(client: &C, work: &Work, span: Duration) -> Calls {
    let message: Arc<str> = work.case.message().into();
    let (before, start) = (cpu(), Instant::now());
    let until = start + span;
    let mut calls = Calls::default();
    if work.in_flight() == 1 {
        calls.nanos = one_after_another(client.clone(), work.case, message, until).await;
        calls.count = calls.nanos.len();
    } else {
        let tasks: Vec<_> = (0..work.in_flight())
            .map(|_| tokio::spawn(count(client.clone(), work.case, Arc::clone(&message), until)))
            .collect();
        for task in tasks {
            calls.count += task.await.expect("a caller's task ends well");
        }
    }
    calls.wall = start.elapsed();
    calls.cpu = cpu().saturating_sub(before);
    calls
}

async fn one_after_another<C: Client>(
    client: C,
    case: Case,
    message: Arc<str>,
    until: Instant,
) -> Vec<u64> {
    let (bytes, length) = (case.bytes(), case.answer_length());
    let mut nanos = Vec::new();
    let mut start = Instant::now();
    while start < until {
        assert!(client.call(&message, bytes, length).await, "an answer came back whole");
        let end = Instant::now();
        nanos.push(u64::try_from((end - start).as_nanos()).unwrap_or(u64::MAX));
        start = end;
    }
    nanos
}

async fn count<C: Client>(client: C, case: Case, message: Arc<str>, until: Instant) -> usize {
    let (bytes, length) = (case.bytes(), case.answer_length());
    let mut count = 0;
    while Instant::now() < until {
        assert!(client.call(&message, bytes, length).await, "an answer came back whole");
        count += 1;
    }
    count
}

/// Starts, lists, idles and closes.
pub async fn start<C: Client>(work: &Work) -> Started {
    let begin = Instant::now();
    let client = C::connect(work, work.servers).await;
    let ready = begin.elapsed();
    tokio::time::sleep(REST).await;
    let (tools, idle_kb, beside_kb) = (client.tools(), status_kb("VmRSS:"), beside_kb());
    let end = Instant::now();
    client.close().await;
    Started { ready, tools, idle_kb, beside_kb, closed: end.elapsed() }
}
