//! One session with a server: matches responses to requests by id.

mod active_task_guard;
mod active_tasks;
mod budget;
mod call_context;
mod call_hold;
mod call_notification;
mod caller;
mod change_notifier;
mod coop_budget;
mod detached_requests;
mod inbound;
mod inbound_sink;
mod limits;
mod multiline_detector;
mod neighbours;
mod notification_forwarding;
mod open_ids;
mod outbound;
mod outbound_queue;
mod outgoing_request;
mod pending;
mod pending_request;
mod progress;
mod read_limits;
mod reader;
mod request_error;
mod request_slots;
mod send_check;
mod server_requests;
pub(crate) mod unknown_session;
mod unusable_output;
mod writer;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use innkeeper_protocol::{Era, Revision};
use serde::Serialize;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;

use crate::callback::CallbackRegistry;
use crate::error::UnavailableReason;
use crate::event::EventPublisher;
use crate::guard::SecretFingerprints;
use crate::tasks::BackgroundTasks;

pub(crate) use crate::rate_limiter::RateLimiter;
use active_tasks::ActiveTasks;
pub(crate) use budget::Budgeted;
pub(crate) use call_context::{CallCallback, CallContext};
pub use call_hold::CallHold;
pub use call_notification::CallNotification;
pub(crate) use caller::Caller;
use change_notifier::ChangeNotifier;
pub(crate) use change_notifier::ListChanges;
pub(crate) use coop_budget::CoopBudget;
pub(crate) use detached_requests::DetachedRequest;
pub(crate) use inbound_sink::InboundSink;
pub(crate) use limits::SessionLimits;
use neighbours::Neighbours;
pub(crate) use neighbours::SessionDirectory;
use outbound::Outbound;
pub(crate) use outbound_queue::{MessageKind, OutboundCommand, OutboundReceiver};
pub(crate) use outgoing_request::{
    DeadlineExtension, HeaderValues, OutgoingRequest, RequestDeadline,
};
use pending::PendingRequests;
pub use progress::Progress;
use read_limits::ReadLimits;
use reader::read_output;
pub(crate) use request_error::{RequestError, RequestResult};
pub use send_check::SendCheck;
use server_requests::ServerRequests;
use unusable_output::UnusableOutput;
use writer::SessionWriter;

/// Time to wait for the exit status after the server closed its output or input.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(250);

/// What all servers of a host share. Clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct HostContext {
    pub(crate) callbacks: CallbackRegistry,
    pub(crate) events: EventPublisher,
    pub(crate) tasks: BackgroundTasks,
    pub(crate) sessions: SessionDirectory,
    /// Fingerprints that identify the credentials of all servers.
    pub(crate) secret_fingerprints: Arc<SecretFingerprints>,
}

/// The server that a session belongs to, and its host.
#[derive(Clone, Debug)]
pub(crate) struct SessionContext {
    pub(crate) server: Arc<str>,
    pub(crate) host: HostContext,
}

#[derive(Debug)]
struct SessionState {
    server: Arc<str>,
    revision: OnceLock<Revision>,
    pending: PendingRequests,
    outbound: Outbound,
    reading: ReadLimits,
    unusable_output: UnusableOutput,
    server_requests: ServerRequests,
    change_notifier: ChangeNotifier,
    active_tasks: ActiveTasks,
    events: EventPublisher,
}

/// A handle to the session; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Session(Arc<SessionState>);

impl Session {
    /// Starts the reader and the writer; both tasks end with the connection or with the owner's
    /// tasks.
    pub(crate) fn open(
        owner: SessionContext,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        limits: SessionLimits,
    ) -> Self {
        let tasks = owner.host.tasks.clone();
        let writer = SessionWriter::new(Box::new(writer), limits.max_write_queue_bytes);
        let session = Self::new(owner, Outbound::Pipe(Box::new(writer)), limits);
        tasks.spawn(read_output(session.0.clone(), reader));
        tasks.spawn(flush(session.0.clone()));
        session
    }

    /// Returns the last line of text that the server wrote before its first message.
    pub(crate) fn early_line(&self) -> Vec<u8> {
        self.0.unusable_output.early_line()
    }

    /// Creates a session over a message transport, which sends the messages of the receiver and
    /// passes incoming messages to the sink.
    pub(crate) fn over_transport(
        owner: SessionContext,
        limits: SessionLimits,
    ) -> (Self, InboundSink, OutboundReceiver) {
        let (messages, receiver) = outbound_queue::channel(limits.max_write_queue_bytes);
        let session = Self::new(owner, Outbound::Transport(messages), limits);
        let inbound = InboundSink::new(session.0.clone());
        (session, inbound, receiver)
    }

    fn new(owner: SessionContext, outbound: Outbound, limits: SessionLimits) -> Self {
        let SessionContext { server, host } = owner;
        let HostContext { callbacks, events, tasks, sessions, .. } = host;
        let (active_tasks, detached) = ActiveTasks::new();
        let state = Arc::new(SessionState {
            server,
            revision: OnceLock::new(),
            pending: PendingRequests::new(),
            outbound,
            reading: ReadLimits::new(limits, Neighbours::new(sessions.clone())),
            unusable_output: UnusableOutput::default(),
            server_requests: ServerRequests::new(callbacks, tasks, limits.callback_timeout),
            change_notifier: ChangeNotifier::default(),
            active_tasks,
            events,
        });
        sessions.add(&state);
        state.server_requests.tasks().spawn(detached.send_all());
        let expiring = state.clone();
        state.server_requests.tasks().spawn(async move {
            expiring.pending.expire(|| expiring.server_requests.is_busy()).await;
        });
        Self(state)
    }

    /// Returns the id of the next request; ids are unique.
    pub(crate) fn next_id(&self) -> u64 {
        self.0.pending.next_id()
    }

    /// Resolves when the server sent an error response whose id is that of no request, or no id.
    pub(crate) fn unattributed_error(&self) -> Notified<'_> {
        self.0.unusable_output.unattributed_error.notified()
    }

    /// Queues a notification with parameters; drops the notification if the server does not read.
    /// Fails if the notification is too large or the session is closed.
    pub(crate) fn notify_with(
        &self,
        method: &str,
        params: Option<&impl Serialize>,
    ) -> Result<(), RequestError> {
        self.0.outbound.send_notification(method, params)
    }

    /// Queues a notification; drops the notification if the server does not read.
    pub(crate) fn notify(&self, method: &'static str) {
        // A closed session needs no notification.
        let _ = self.0.outbound.send_notification(method, None::<&()>);
    }

    /// Disables throttling, to read the remaining output of an exited process quickly.
    pub(crate) fn stop_throttling(&self) {
        self.0.reading.rate.stop();
    }

    /// Fails all pending requests and rejects new requests. The first reason is kept.
    pub(crate) fn close(&self, reason: UnavailableReason) {
        self.0.close(reason);
    }

    /// Closes the server's input.
    pub(crate) fn close_input(&self) {
        self.0.outbound.close();
    }

    /// Waits for the first valid message.
    pub(crate) async fn first_message(&self) {
        self.0.unusable_output.first_message().await;
    }

    /// Waits until the connection is closed and returns the reason.
    pub(crate) async fn closed(&self) -> UnavailableReason {
        self.0.pending.closed().await
    }

    /// Waits until the server's output has ended and is completely read.
    pub(crate) async fn output_ended(&self) {
        self.0.pending.output_ended().await;
    }

    /// Sets the negotiated revision. In the modern era, the host rejects requests of servers.
    pub(crate) fn set_revision(&self, revision: Revision) {
        // A handshake completes only once.
        let _first = self.0.revision.set(revision);
    }

    /// Returns whether a callback is running for a request of the server.
    pub(crate) fn has_open_server_requests(&self) -> bool {
        self.0.server_requests.is_busy()
    }

    /// Returns whether the server has not responded to a cancelled request, so that it may still
    /// process the request.
    pub(crate) fn has_cancelled_requests(&self) -> bool {
        self.0.pending.has_cancelled()
    }

    /// Returns whether a call that was sent before the request with this id still waits within its
    /// own time: a server that works on one request at a time responds to that call first.
    pub(crate) fn has_earlier_call(&self, id: u64) -> bool {
        self.0.pending.has_earlier_call(id)
    }

    /// Returns whether the server has responded to any request since the last timeout.
    pub(crate) fn has_responded(&self) -> bool {
        !self.0.pending.is_overdue()
    }

    /// Waits until the server has responded to any request since the last timeout.
    pub(crate) async fn responded(&self) {
        self.0.pending.responded().await;
    }

    /// Returns the number of pending requests without background requests.
    pub(crate) fn in_flight(&self) -> usize {
        self.0.pending.len()
    }

    /// Waits until no request is pending; the caller limits the wait.
    pub(crate) async fn idle(&self) {
        self.0.pending.idle().await;
    }
}

impl SessionState {
    fn is_modern(&self) -> bool {
        self.revision.get().is_some_and(|revision| revision.era() == Era::Modern)
    }

    fn close(&self, reason: UnavailableReason) {
        self.pending.close(&reason);
        self.outbound.fail(reason);
    }
}

/// Writes queued messages that could not be written at once.
async fn flush(shared: Arc<SessionState>) {
    let Outbound::Pipe(writer) = &shared.outbound else { return };
    if let Some(reason) = writer.write_loop().await {
        // A write to an exited process can fail before its exit status is known.
        tokio::time::sleep(EXIT_STATUS_GRACE).await;
        shared.close(reason);
    }
}

#[cfg(test)]
mod tests;
