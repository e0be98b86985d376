//! One connection to one server: replies find their request by id, and reading never waits for writing.

mod budget;
mod inbound;
mod pending;
mod writer;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_protocol::{ErrorObject, LineFramer, method};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::error::{CallKind, Lost, ProtocolFault};
use crate::tasks::Tasks;

pub(crate) use budget::{Budget, Held};
pub(crate) use inbound::{Change, Changes};
use pending::Pending;
use writer::Writer;

/// How long after the end of a server's output or input its exit may still be learnt.
const AFTER_END: Duration = Duration::from_millis(250);

/// Limits of one session, each with a default and its reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of one line from the server; 16 MiB, what other hosts accept as well.
    pub(crate) line: usize,
    /// Bytes waiting to be written; two of the largest requests a model is likely to make.
    pub(crate) write_queue: usize,
    /// Bytes of results that were received and not yet taken by their callers; four full lines.
    pub(crate) results: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { line: 16 << 20, write_queue: 8 << 20, results: 64 << 20 }
    }
}

/// Why a request has no result.
#[derive(Debug)]
pub(crate) enum Fault {
    /// The server answered with an error object.
    Answer(ErrorObject),
    /// The answer cannot be used.
    Protocol(ProtocolFault),
    /// The server is gone; `sent` tells whether it may have seen the request.
    Lost { reason: Lost, sent: bool },
    /// No answer by the deadline.
    Late,
}

impl Fault {
    /// The class of the error that is made of it.
    pub(crate) fn kind(&self) -> CallKind {
        match self {
            Self::Answer(_) => CallKind::Server,
            Self::Protocol(_) => CallKind::Protocol,
            Self::Lost { .. } => CallKind::Unavailable,
            Self::Late => CallKind::Timeout,
        }
    }
}

/// A progress report of a running request, in the order the server sent them.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// How far it is; grows.
    pub progress: f64,
    /// What it will reach, if known.
    pub total: Option<f64>,
    /// What is being done.
    pub message: Option<String>,
}

/// The answer to one request: the raw result and the memory it counts for while it is not taken.
pub(crate) type Answer = Result<Held<Box<RawValue>>, Fault>;

/// A request on its way out.
#[derive(Debug)]
pub(crate) struct Outgoing<'a, P> {
    pub(crate) id: u64,
    pub(crate) method: &'static str,
    pub(crate) params: &'a P,
    pub(crate) deadline: Instant,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    /// Whether the server is told when the caller goes away (the specification forbids it for
    /// `initialize`).
    pub(crate) cancellable: bool,
}

#[derive(Debug)]
struct Shared {
    server: Arc<str>,
    limits: Limits,
    pending: Pending,
    writer: Writer,
    budget: Budget,
    changes: Changes,
    next_id: AtomicU64,
    noise: AtomicU64,
    modern: AtomicBool,
}

/// A handle on the connection; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<Shared>);

impl Session {
    /// Starts reading and writing; both tasks end when the connection does or `tasks` stop.
    pub(crate) fn open(
        server: Arc<str>,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: Limits,
        tasks: &Tasks,
    ) -> Self {
        let shared = Arc::new(Shared {
            server,
            limits,
            pending: Pending::default(),
            writer: Writer::new(Box::new(writer), limits.write_queue),
            budget: Budget::new(limits.results),
            changes: Changes::default(),
            // A random start keeps a server from answering requests it has not seen yet.
            next_id: AtomicU64::new(fastrand::u64(1..1 << 31)),
            noise: AtomicU64::new(0),
            modern: AtomicBool::new(false),
        });
        tasks.spawn(read(shared.clone(), reader));
        tasks.spawn(flush(shared.clone()));
        Self(shared)
    }

    /// The id the next request will have; ids are never used twice.
    pub(crate) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends one request and waits for its answer or its deadline. Dropping the future, or running
    /// into the deadline, sends `notifications/cancelled`; an answer that comes later is discarded.
    pub(crate) async fn request<P: Serialize>(&self, out: Outgoing<'_, P>) -> Answer {
        let Outgoing { id, method, params, deadline, progress, cancellable } = out;
        if !self.0.writer.has_room() {
            let room = tokio::time::timeout_at(deadline, self.0.writer.room()).await;
            room.map_err(|_| Fault::Late)?;
        }
        let (answer, alone) = self.0.pending.insert(id, progress)?;
        let mut abandon = Abandon { shared: &self.0, id, tell: false, armed: true };
        self.0.writer.request(id, method, params, alone)?;
        abandon.tell = cancellable;
        let answer = tokio::time::timeout_at(deadline, answer).await.map_err(|_| Fault::Late)?;
        abandon.armed = false;
        answer.unwrap_or(Err(Fault::Lost { reason: Lost::ClosedOutput, sent: true }))
    }

    /// Queues a notification; dropped, not waited for, when the server does not read.
    pub(crate) fn notify(&self, method: &'static str) {
        self.0.writer.notification(method, None::<&()>);
    }

    /// Fails everything that waits for an answer and refuses new requests. The first reason stays.
    pub(crate) fn close(&self, reason: Lost) {
        self.0.close(reason);
    }

    /// Closes the server's input, after what is queued was offered once more.
    pub(crate) fn close_input(&self) {
        self.0.writer.close();
    }

    /// Resolves once the connection is closed.
    pub(crate) async fn closed(&self) -> Lost {
        self.0.pending.closed().await
    }

    /// Resolves once the server's output has ended and everything in it was read.
    pub(crate) async fn output_ended(&self) {
        self.0.pending.output_ended().await;
    }

    /// Stops answering requests of the server: in the modern era there are none.
    pub(crate) fn set_modern(&self) {
        self.0.modern.store(true, Ordering::Relaxed);
    }

    /// What the server said has changed since last asked; waits until there is something.
    pub(crate) async fn changed(&self) -> Change {
        self.0.changes.next().await
    }

    /// How many requests wait for an answer.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.pending.len()
    }

    /// Resolves when no request waits for an answer; the caller bounds the wait.
    pub(crate) async fn idle(&self) {
        self.0.pending.idle().await;
    }
}

impl Shared {
    fn close(&self, reason: Lost) {
        self.pending.close(&reason);
        self.writer.fail(reason);
    }
}

/// Forgets a request whose caller stopped waiting, and tells the server.
struct Abandon<'a> {
    shared: &'a Shared,
    id: u64,
    tell: bool,
    armed: bool,
}

impl Drop for Abandon<'_> {
    fn drop(&mut self) {
        if self.armed && self.shared.pending.remove(self.id).is_some() && self.tell {
            let params = serde_json::json!({ "requestId": self.id });
            self.shared.writer.notification(method::CANCELLED, Some(&params));
        }
    }
}

/// Reads until the server's output ends; never waits for anything but bytes and, when results pile
/// up, for callers to take them.
async fn read(shared: Arc<Shared>, mut reader: impl AsyncRead + Send + Unpin) {
    let shared = CloseWithReader(shared);
    let shared = &shared.0;
    let mut framer = LineFramer::new(shared.limits.line);
    loop {
        match reader.read(framer.space()).await {
            Ok(0) | Err(_) => break,
            Ok(read) => framer.filled(read),
        }
        while let Some(frame) = framer.next_frame() {
            shared.receive(frame);
            if shared.budget.is_full() {
                shared.budget.settle().await;
            }
        }
    }
    if let Some(frame) = framer.finish() {
        shared.receive(frame);
    }
    shared.pending.end_output();
    // Whoever owns the process knows better why its output ended, and says so before this.
    tokio::time::sleep(AFTER_END).await;
    shared.close(Lost::ClosedOutput);
}

/// Fails what waits when the reading task ends in whatever way: nobody would answer any more.
struct CloseWithReader(Arc<Shared>);

impl Drop for CloseWithReader {
    fn drop(&mut self) {
        self.0.close(Lost::ClosedOutput);
    }
}

/// Writes what could not be written at once.
async fn flush(shared: Arc<Shared>) {
    if let Some(reason) = shared.writer.drain().await {
        // A process that ended is written to before its exit is known.
        tokio::time::sleep(AFTER_END).await;
        shared.close(reason);
    }
}

#[cfg(test)]
mod tests;
