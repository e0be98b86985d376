//! One session with a server: matches responses to requests by id.

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
mod progress;
mod reader;
mod request_slots;
mod send_check;
mod server_requests;
pub(crate) mod unknown_session;
mod writer;

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use innkeeper_protocol::{Era, ErrorObject, JsonText, Revision};
use serde::Serialize;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::futures::Notified;
use tokio::sync::{Notify, SetOnce, mpsc, watch};

use crate::callback::CallbackRegistry;
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::{CallErrorKind, ProtocolError, UnavailableReason};
use crate::event::EventPublisher;
use crate::tasks::BackgroundTasks;

pub(crate) use crate::rate_limiter::RateLimiter;
pub(crate) use active_tasks::OpenTaskGuard;
use active_tasks::{ActiveTaskGuard, ActiveTasks};
pub(crate) use budget::{Budget, Budgeted};
use call_context::PendingCall;
pub(crate) use call_context::{CallCallback, CallContext};
pub use call_hold::CallHold;
pub use call_notification::CallNotification;
pub(crate) use caller::Caller;
use change_notifier::ChangeNotifier;
pub(crate) use change_notifier::ListChanges;
pub(crate) use coop_budget::CoopBudget;
pub(crate) use detached_requests::DetachedRequest;
use detached_requests::DetachedRequests;
pub(crate) use inbound_sink::InboundSink;
pub(crate) use limits::SessionLimits;
use multiline_detector::MultilineDetector;
use neighbours::Neighbours;
pub(crate) use neighbours::SessionDirectory;
use outbound::Outbound;
pub(crate) use outbound_queue::{MessageKind, OutboundCommand, OutboundReceiver};
pub(crate) use outgoing_request::{DeadlineExtension, OutgoingRequest};
use pending::PendingRequests;
pub use progress::Progress;
use reader::read_output;
pub use send_check::SendCheck;
use server_requests::ServerRequests;
use writer::SessionWriter;

/// Time to wait for the exit status after the server closed its output or input.
const EXIT_STATUS_GRACE: Duration = Duration::from_millis(250);

/// The reason a request has no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server responded with an error object.
    ErrorResponse(ErrorObject),
    /// The response is invalid.
    Protocol(ProtocolError),
    /// The request is longer than a message may be; the request was not sent.
    TooLarge { bytes: usize, limit: usize },
    /// The server is unavailable; `sent` is true if the server may have received the request.
    Unavailable { reason: UnavailableReason, sent: bool },
    /// The deadline passed without a response.
    Timeout,
}

impl RequestError {
    /// Returns the kind of the call error that results from this error.
    pub(crate) fn kind(&self) -> CallErrorKind {
        match self {
            Self::ErrorResponse(_) => CallErrorKind::Server,
            Self::Protocol(_) => CallErrorKind::Protocol,
            Self::TooLarge { .. } => CallErrorKind::Validation,
            Self::Unavailable { .. } => CallErrorKind::Unavailable,
            Self::Timeout => CallErrorKind::Timeout,
        }
    }
}

/// The outcome of one request: the raw result with its memory reservation, or an error.
pub(crate) type RequestResult = Result<Budgeted<Box<RawValue>>, RequestError>;

/// The server a session belongs to, with the callbacks it can use.
#[derive(Clone, Debug)]
pub(crate) struct SessionContext {
    pub(crate) server: Arc<str>,
    pub(crate) callbacks: CallbackRegistry,
    pub(crate) events: EventPublisher,
    pub(crate) tasks: BackgroundTasks,
    /// All sessions of the host.
    pub(crate) sessions: SessionDirectory,
}

#[derive(Debug)]
struct SessionState {
    server: Arc<str>,
    limits: SessionLimits,
    pending: PendingRequests,
    outbound: Outbound,
    server_requests: ServerRequests,
    budget: Budget,
    rate_limiter: RateLimiter,
    neighbours: Neighbours,
    change_notifier: ChangeNotifier,
    events: EventPublisher,
    next_id: AtomicU64,
    unusable_messages: AtomicU64,
    /// Number of consecutive invalid lines since the last message.
    consecutive_invalid_lines: AtomicU32,
    /// Set by the first valid message.
    first_message: SetOnce<()>,
    /// The last line before the first valid message: some servers write their errors to stdout.
    early_line: Mutex<Vec<u8>>,
    multiline_detector: Mutex<MultilineDetector>,
    revision: OnceLock<Revision>,
    /// Notified when the server reports a changed task.
    task_changed: Notify,
    /// Notified of an error response that belongs to no request.
    unattributed_error: Notify,
    active_tasks: watch::Sender<ActiveTasks>,
    detached_requests: DetachedRequests,
    /// Notified of the first response after a timeout.
    responded: Notify,
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
        let tasks = owner.tasks.clone();
        let writer = SessionWriter::new(Box::new(writer), limits.max_write_queue_bytes);
        let session = Self::new(owner, Outbound::Pipe(Box::new(writer)), limits);
        tasks.spawn(read_output(session.0.clone(), reader));
        tasks.spawn(flush(session.0.clone()));
        session
    }

    /// Returns the last line of text that the server wrote before its first message.
    pub(crate) fn early_line(&self) -> Vec<u8> {
        self.0.early_line.lock().unwrap_or_else(PoisonError::into_inner).clone()
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
        let SessionContext { server, callbacks, events, tasks, sessions } = owner;
        let (detached_requests, detached) = detached_requests::channel();
        let state = Arc::new(SessionState {
            server,
            limits,
            pending: PendingRequests::default(),
            outbound,
            server_requests: ServerRequests::new(callbacks, tasks, limits.callback_timeout),
            budget: Budget::new(limits.max_result_bytes),
            rate_limiter: RateLimiter::new(),
            neighbours: Neighbours::new(sessions.clone()),
            change_notifier: ChangeNotifier::default(),
            events,
            // A random start prevents a server from responding to requests before it receives them.
            next_id: AtomicU64::new(fastrand::u64(1..1 << 31)),
            unusable_messages: AtomicU64::new(0),
            consecutive_invalid_lines: AtomicU32::new(0),
            first_message: SetOnce::new(),
            early_line: Mutex::default(),
            multiline_detector: Mutex::default(),
            revision: OnceLock::new(),
            task_changed: Notify::new(),
            unattributed_error: Notify::new(),
            active_tasks: watch::Sender::default(),
            detached_requests,
            responded: Notify::new(),
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
        self.0.next_id.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request and waits for the response or the deadline. Dropping the future, or a
    /// timeout, sends `notifications/cancelled`; a later response is discarded.
    pub(crate) async fn request<P: JsonText>(&self, out: OutgoingRequest<'_, P>) -> RequestResult {
        let shared = &*self.0;
        let id = out.id;
        if !shared.outbound.has_capacity() {
            let capacity =
                tokio::time::timeout_at(out.deadline, shared.outbound.wait_for_capacity()).await;
            capacity.map_err(|_| RequestError::Timeout)?;
        }
        let call = shared.pending_call(out.call);
        let (response, is_only_call) = shared.pending.insert(&out, call)?;
        let mut open = CancelOnDrop { shared, id, notify_server: false };
        shared.outbound.send_request(&out, is_only_call)?;
        open.notify_server = out.cancellable;
        let closed =
            RequestError::Unavailable { reason: UnavailableReason::ClosedOutput, sent: true };
        response.await.unwrap_or(Err(closed))
    }

    /// Counts a request with a response as open, and forwards its progress, until the guard is
    /// dropped: its task continues at the server.
    pub(crate) fn hold_open(
        &self,
        id: u64,
        progress: Option<mpsc::Sender<Progress>>,
        call: CallContext<'_>,
    ) -> OpenTaskGuard {
        self.0.pending.hold_open(id, progress, self.0.pending_call(Some(call)));
        OpenTaskGuard { id, active: ActiveTaskGuard::new(self.0.clone()) }
    }

    /// Records a task that the application polls, for at most `lifetime`.
    pub(crate) fn detach_task(&self, task_id: &str, lifetime: Duration) {
        self.0.pending.detach_task(task_id, lifetime);
    }

    /// Records the end of a task that the application polls.
    pub(crate) fn end_task(&self, task_id: &str) {
        self.0.pending.end_task(task_id);
    }

    /// Queues a request whose response nobody waits for. Needs no runtime.
    pub(crate) fn send_detached(&self, request: DetachedRequest) {
        self.0.detached_requests.add(&self.0, request);
    }

    /// Ends all waits for tasks, so that the server is requested to cancel the tasks, and waits at
    /// most `limit` until the server has received the requests.
    pub(crate) async fn cancel_tasks(&self, limit: Duration) {
        let mut active = self.0.active_tasks.subscribe();
        self.0.active_tasks.send_modify(|active| active.cancelled = true);
        let _ = tokio::time::timeout(limit, active.wait_for(|active| active.count == 0)).await;
    }

    /// Waits until [`Self::cancel_tasks`] is called.
    pub(crate) async fn tasks_cancelled(&self) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self.0.active_tasks.subscribe().wait_for(|active| active.cancelled).await;
    }

    /// Resolves when the server sent an error response whose id is that of no request, or no id.
    pub(crate) fn unattributed_error(&self) -> Notified<'_> {
        self.0.unattributed_error.notified()
    }

    /// Waits for the next notification of a changed task, counted from the first poll or from
    /// `enable`.
    pub(crate) fn task_changed(&self) -> Notified<'_> {
        self.0.task_changed.notified()
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
        self.0.rate_limiter.stop();
    }

    /// Fails all pending requests and rejects new requests. The first reason is kept.
    pub(crate) fn close(&self, reason: UnavailableReason) {
        self.0.close(reason);
    }

    /// Closes the server's input after a last attempt to write the queue.
    pub(crate) fn close_input(&self) {
        self.0.outbound.close();
    }

    /// Waits for the first valid message.
    pub(crate) async fn first_message(&self) {
        self.0.first_message.wait().await;
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
        loop {
            let responded = self.0.responded.notified();
            if self.has_responded() {
                return;
            }
            responded.await;
        }
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

    /// Returns the owned call of a request, if a message of the server may need the call.
    fn pending_call(&self, call: Option<CallContext<'_>>) -> Option<Box<PendingCall>> {
        let call = call?;
        let needed = call.callback.is_some()
            || call
                .caller
                .is_some_and(|caller| caller.notifications.is_some() || caller.hold.is_some())
            || self.server_requests.has_callbacks()
            || self.events.has_subscribers();
        needed.then(|| Box::new(call.into()))
    }

    fn close(&self, reason: UnavailableReason) {
        self.pending.close(&reason);
        self.outbound.fail(reason);
    }
}

/// A guard that notifies the server of a cancellation if the caller is dropped before the response.
struct CancelOnDrop<'a> {
    shared: &'a SessionState,
    id: u64,
    notify_server: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        let max_duration = self.shared.limits.callback_timeout.min(MAX_REQUEST_TIMEOUT);
        let open_for = self.notify_server.then_some(max_duration);
        let unanswered = self.shared.pending.remove(self.id, open_for);
        if unanswered {
            self.shared.outbound.forget(self.id, self.notify_server);
        }
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
