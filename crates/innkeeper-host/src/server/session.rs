//! One connection to one server: replies find their request by id, and reading never waits for writing.

mod asked;
mod budget;
mod changes;
mod inbound;
mod inlet;
mod messages;
mod outlet;
mod pace;
mod pending;
mod reader;
mod spread;
mod turns;
mod writer;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use innkeeper_protocol::{Era, ErrorObject, Revision};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, SetOnce, mpsc, oneshot, watch};
use tokio::time::Instant;

use crate::callback::Callbacks;
use crate::error::{CallKind, Lost, ProtocolFault};
use crate::event::Events;
use crate::tasks::Tasks;

use asked::Asked;
pub(crate) use budget::{Budget, Held};
pub(crate) use changes::Change;
use changes::Changes;
pub(crate) use inlet::Inlet;
pub(crate) use messages::{Order, Orders, What};
use outlet::Outlet;
pub(crate) use pace::Pace;
use pending::Pending;
use reader::read;
use spread::Spread;
pub(crate) use turns::Turns;
use writer::Writer;

/// How long after the end of a server's output or input its exit may still be learnt.
const AFTER_END: Duration = Duration::from_millis(250);

/// Limits of one session, each with a default and its reason.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Bytes of one line from the server; 16 MiB, what other hosts accept as well.
    pub(crate) line: usize,
    /// Bytes of lines over that limit that are thrown away; sixteen whole ones.
    pub(crate) thrown_away: u64,
    /// Bytes waiting to be written; two of the largest requests a model is likely to make.
    pub(crate) write_queue: usize,
    /// Bytes of results that were received and not yet taken by their callers; four full lines.
    pub(crate) results: usize,
    /// How long the application may take to answer a request of the server: as long as any call.
    pub(crate) callback: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        let callback = Duration::from_mins(10);
        Self {
            line: 16 << 20,
            thrown_away: 256 << 20,
            write_queue: 8 << 20,
            results: 64 << 20,
            callback,
        }
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
    /// The tool, prompt or URI, where a transport has to name it.
    pub(crate) name: Option<&'a str>,
    /// Arguments that a transport has to show in headers.
    pub(crate) headers: &'a [(String, String)],
    pub(crate) deadline: Instant,
    /// How far progress, or the application being asked, may move the deadline.
    pub(crate) extend: Option<Extend>,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    /// Whether the server is told when the caller goes away (the specification forbids it for
    /// `initialize`).
    pub(crate) cancellable: bool,
    /// Whether it stays open as long as the connection does, so that nobody waits for its end.
    pub(crate) background: bool,
}

impl<'a, P> Outgoing<'a, P> {
    /// A request that nothing special is said of, and that a server may be told to forget.
    pub(crate) fn new(id: u64, method: &'static str, params: &'a P, deadline: Instant) -> Self {
        let (name, headers) = (None, &[][..]);
        Self {
            id,
            method,
            params,
            name,
            headers,
            deadline,
            extend: None,
            progress: None,
            cancellable: true,
            background: false,
        }
    }
}

/// A deadline that moves while the server shows that it is at work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Extend {
    /// How long it may be silent.
    pub(crate) idle: Duration,
    /// When it is over whatever it reports.
    pub(crate) ends: Instant,
}

/// Who a session belongs to, and whom it may ask.
#[derive(Clone, Debug)]
pub(crate) struct Owner {
    pub(crate) server: Arc<str>,
    pub(crate) callbacks: Callbacks,
    pub(crate) events: Events,
    pub(crate) tasks: Tasks,
}

#[derive(Debug)]
struct Shared {
    server: Arc<str>,
    limits: Limits,
    pending: Pending,
    outlet: Outlet,
    asked: Asked,
    budget: Budget,
    pace: Pace,
    changes: Changes,
    events: Events,
    next_id: AtomicU64,
    noise: AtomicU64,
    /// Lines since the last message, none of which was one.
    useless: AtomicU32,
    /// Set with the first message that is one.
    heard: SetOnce<()>,
    spread: Mutex<Spread>,
    revision: OnceLock<Revision>,
    /// Told whenever the server says that a task has changed.
    task_told: Notify,
    begun: watch::Sender<Begun>,
}

/// The tasks of a server that are waited for, or that it is told to stop.
#[derive(Debug, Default)]
struct Begun {
    count: usize,
    leaving: bool,
}

/// A handle on the connection; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<Shared>);

impl Session {
    /// Starts reading and writing; both tasks end when the connection does or the owner's stop.
    pub(crate) fn open(
        owner: Owner,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: Limits,
    ) -> Self {
        let tasks = owner.tasks.clone();
        let outlet = Outlet::Pipe(Writer::new(Box::new(writer), limits.write_queue));
        let session = Self::new(owner, outlet, limits);
        tasks.spawn(read(session.0.clone(), reader));
        tasks.spawn(flush(session.0.clone()));
        session
    }

    /// A session over a transport that takes single messages from the orders and gives what it
    /// receives to the inlet.
    pub(crate) fn carried(owner: Owner, limits: Limits) -> (Self, Inlet, Orders) {
        let (messages, orders) = messages::queue(limits.write_queue);
        let session = Self::new(owner, Outlet::Messages(messages), limits);
        let inlet = Inlet::new(session.0.clone());
        (session, inlet, orders)
    }

    fn new(owner: Owner, outlet: Outlet, limits: Limits) -> Self {
        let Owner { server, callbacks, events, tasks } = owner;
        Self(Arc::new(Shared {
            server,
            limits,
            pending: Pending::default(),
            outlet,
            asked: Asked::new(callbacks, tasks, limits.callback),
            budget: Budget::new(limits.results),
            pace: Pace::new(),
            changes: Changes::default(),
            events,
            // A random start keeps a server from answering requests it has not seen yet.
            next_id: AtomicU64::new(fastrand::u64(1..1 << 31)),
            noise: AtomicU64::new(0),
            useless: AtomicU32::new(0),
            heard: SetOnce::new(),
            spread: Mutex::default(),
            revision: OnceLock::new(),
            task_told: Notify::new(),
            begun: watch::Sender::default(),
        }))
    }

    /// The id the next request will have; ids are never used twice.
    pub(crate) fn next_id(&self) -> u64 {
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends one request and waits for its answer or its deadline. Dropping the future, or running
    /// into the deadline, sends `notifications/cancelled`; an answer that comes later is discarded.
    pub(crate) async fn request<P: Serialize>(&self, out: Outgoing<'_, P>) -> Answer {
        let shared = &*self.0;
        let (id, deadline, extend) = (out.id, out.deadline, out.extend);
        if !shared.outlet.has_room() {
            let room = tokio::time::timeout_at(deadline, shared.outlet.room()).await;
            room.map_err(|_| Fault::Late)?;
        }
        let (answer, alone) = shared.pending.insert(id, out.progress.clone(), out.background)?;
        let mut open = Open { shared, id, tell: false };
        shared.outlet.request(&out, alone)?;
        open.tell = out.cancellable;
        shared.answered(id, answer, deadline, extend).await?
    }

    /// Counts a request that was answered as open, and passes on its progress, as long as the guard
    /// lives: what it began goes on at the server.
    pub(crate) fn hold(&self, id: u64, progress: Option<mpsc::Sender<Progress>>) -> Hold {
        self.0.pending.hold(id, progress);
        Hold { id, begun: Counted::new(self.0.clone()) }
    }

    /// Sends a request whose answer matters to nobody, in the background, and forgets it after
    /// `limit`. To be called inside of a runtime.
    pub(crate) fn tell(
        &self,
        method: &'static str,
        name: String,
        params: Box<RawValue>,
        limit: Duration,
    ) {
        let (session, begun) = (self.clone(), Counted::new(self.0.clone()));
        self.0.asked.tasks().spawn(async move {
            let _begun = begun;
            let deadline = Instant::now() + limit;
            let outgoing = Outgoing::new(session.next_id(), method, &params, deadline);
            let outgoing =
                Outgoing { name: Some(&name), cancellable: false, background: true, ..outgoing };
            if let Err(fault) = session.request(outgoing).await {
                let (server, outcome) = (&*session.0.server, fault.kind().as_str());
                tracing::debug!(server, method, outcome, "not taken by the server");
            }
        });
    }

    /// Has nobody wait for tasks any more, so that the server is told to stop them, and waits until
    /// it has heard that, for `limit` at most.
    pub(crate) async fn leave(&self, limit: Duration) {
        let mut begun = self.0.begun.subscribe();
        self.0.begun.send_modify(|begun| begun.leaving = true);
        drop(tokio::time::timeout(limit, begun.wait_for(|begun| begun.count == 0)).await);
    }

    /// Resolves once tasks are not to be waited for any more.
    pub(crate) async fn leaving(&self) {
        // The sender lives in self, so the wait cannot fail.
        drop(self.0.begun.subscribe().wait_for(|begun| begun.leaving).await);
    }

    /// Resolves when the server says, after this was called and first polled or enabled, that a
    /// task has changed.
    pub(crate) fn task_told(&self) -> Notified<'_> {
        self.0.task_told.notified()
    }

    /// Queues a notification; dropped, not waited for, when the server does not read.
    pub(crate) fn notify(&self, method: &'static str) {
        self.0.outlet.notification(method, None::<&()>);
    }

    /// Reads what is left of an ended process as fast as it can be.
    pub(crate) fn hurry(&self) {
        self.0.pace.end();
    }

    /// Fails everything that waits for an answer and refuses new requests. The first reason stays.
    pub(crate) fn close(&self, reason: Lost) {
        self.0.close(reason);
    }

    /// Closes the server's input, after what is queued was offered once more.
    pub(crate) fn close_input(&self) {
        self.0.outlet.close();
    }

    /// Resolves once there was a message, whatever it said.
    pub(crate) async fn heard(&self) {
        self.0.heard.wait().await;
    }

    /// Resolves once the connection is closed.
    pub(crate) async fn closed(&self) -> Lost {
        self.0.pending.closed().await
    }

    /// Resolves once the server's output has ended and everything in it was read.
    pub(crate) async fn output_ended(&self) {
        self.0.pending.output_ended().await;
    }

    /// Says which revision was agreed on. In the modern era no requests of servers are answered.
    pub(crate) fn agree(&self, revision: Revision) {
        // A handshake ends once.
        let _first = self.0.revision.set(revision);
    }

    /// Whether the application is at work on something that the server waits for.
    pub(crate) fn waits_for_us(&self) -> bool {
        self.0.asked.busy()
    }

    /// How many requests wait for an answer, standing ones aside.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.pending.len()
    }

    /// Resolves when no request waits for an answer; the caller bounds the wait.
    pub(crate) async fn idle(&self) {
        self.0.pending.idle().await;
    }
}

impl Shared {
    fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.era() == Era::Modern)
    }

    fn close(&self, reason: Lost) {
        self.pending.close(&reason);
        self.outlet.fail(reason);
    }

    /// Waits for an answer; the deadline moves while the server shows that it is at work.
    async fn answered(
        &self,
        id: u64,
        mut answer: oneshot::Receiver<Answer>,
        mut deadline: Instant,
        extend: Option<Extend>,
    ) -> Result<Answer, Fault> {
        loop {
            if let Ok(answer) = tokio::time::timeout_at(deadline, &mut answer).await {
                let gone = || Err(Fault::Lost { reason: Lost::ClosedOutput, sent: true });
                return Ok(answer.unwrap_or_else(|_| gone()));
            }
            let Some(Extend { idle, ends }) = extend else { return Err(Fault::Late) };
            let now = Instant::now();
            let seen = if self.asked.busy() { Some(now) } else { self.pending.touched(id) };
            deadline = seen.map_or(deadline, |seen| seen + idle).min(ends);
            if deadline <= now {
                return Err(Fault::Late);
            }
        }
    }
}

/// An answered request that counts as open.
#[derive(Debug)]
pub(crate) struct Hold {
    id: u64,
    begun: Counted,
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.begun.0.pending.remove(self.id);
    }
}

/// One that counts among the tasks of a session.
#[derive(Debug)]
struct Counted(Arc<Shared>);

impl Counted {
    fn new(shared: Arc<Shared>) -> Self {
        shared.begun.send_modify(|begun| begun.count += 1);
        Self(shared)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.begun.send_modify(|begun| begun.count -= 1);
    }
}

/// A request that counts as open until its caller has the answer; without one, the server is told
/// that nobody waits any more.
struct Open<'a> {
    shared: &'a Shared,
    id: u64,
    tell: bool,
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        let unanswered = self.shared.pending.remove(self.id);
        if unanswered {
            self.shared.outlet.forget(self.id, self.tell);
        }
    }
}

/// Writes what could not be written at once.
async fn flush(shared: Arc<Shared>) {
    let Outlet::Pipe(writer) = &shared.outlet else { return };
    if let Some(reason) = writer.drain().await {
        // A process that ended is written to before its exit is known.
        tokio::time::sleep(AFTER_END).await;
        shared.close(reason);
    }
}

#[cfg(test)]
mod tests;
