//! A request to a server, with its deadlines, and how a session sends it.

use std::borrow::Cow;
use std::time::Duration;

use innkeeper_protocol::JsonText;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::call_context::PendingCall;
use super::{CallContext, Progress, RequestError, RequestResult, Session, SessionState};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::error::UnavailableReason;

#[derive(Debug)]
pub(crate) struct OutgoingRequest<'a, P> {
    pub(crate) id: u64,
    pub(crate) method: Cow<'static, str>,
    pub(crate) params: &'a P,
    pub(crate) headers: HeaderValues<'a>,
    pub(crate) deadline: RequestDeadline,
    pub(crate) progress: Option<mpsc::Sender<Progress>>,
    /// Whether the server is notified when the caller is dropped (the specification forbids this
    /// for `initialize`).
    pub(crate) cancellable: bool,
    /// Whether the request stays open as long as the connection and does not count as in flight.
    pub(crate) background: bool,
    /// The call that the request belongs to; `None` for requests of the host itself.
    pub(crate) call: Option<CallContext<'a>>,
    /// The task whose result the request returns, for messages of the server about the task.
    pub(crate) task_id: Option<&'a str>,
}

impl<'a, P> OutgoingRequest<'a, P> {
    /// Creates a cancellable request with default options.
    pub(crate) fn new(
        id: u64,
        method: impl Into<Cow<'static, str>>,
        params: &'a P,
        deadline: Instant,
    ) -> Self {
        Self {
            id,
            method: method.into(),
            params,
            headers: HeaderValues::default(),
            deadline: RequestDeadline { at: deadline, extension: None },
            progress: None,
            cancellable: true,
            background: false,
            call: None,
            task_id: None,
        }
    }
}

/// The values that transports over HTTP repeat in headers.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct HeaderValues<'a> {
    /// Tool, prompt, URI or task.
    pub(crate) name: Option<&'a str>,
    pub(crate) arguments: &'a [(String, String)],
}

/// When a request times out.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestDeadline {
    pub(crate) at: Instant,
    /// How far progress or a running callback may extend the deadline.
    pub(crate) extension: Option<DeadlineExtension>,
}

impl RequestDeadline {
    /// Returns the deadline after activity of the server.
    pub(super) fn extended(self, last_activity: Option<Instant>) -> Instant {
        let (Some(extension), Some(last_activity)) = (self.extension, last_activity) else {
            return self.at;
        };
        (last_activity + extension.idle_timeout).min(extension.deadline)
    }
}

/// A deadline that moves while the server shows activity.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeadlineExtension {
    /// Maximum time without activity.
    pub(crate) idle_timeout: Duration,
    /// Absolute deadline.
    pub(crate) deadline: Instant,
}

impl Session {
    /// Sends a request and waits for the response or the deadline. Dropping the future, or a
    /// timeout, sends `notifications/cancelled`; a later response is discarded.
    pub(crate) async fn request<P: JsonText>(&self, out: OutgoingRequest<'_, P>) -> RequestResult {
        let shared = &*self.0;
        let id = out.id;
        if !shared.outbound.has_capacity() {
            let capacity =
                tokio::time::timeout_at(out.deadline.at, shared.outbound.wait_for_capacity()).await;
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
}

impl SessionState {
    /// Returns the owned call of a request, if a message of the server may need the call.
    pub(super) fn pending_call(&self, call: Option<CallContext<'_>>) -> Option<Box<PendingCall>> {
        let call = call?;
        let needed = call.callback.is_some()
            || call
                .caller
                .is_some_and(|caller| caller.notifications.is_some() || caller.hold.is_some())
            || self.server_requests.has_callbacks()
            || self.events.has_subscribers();
        needed.then(|| Box::new(call.into()))
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
        let max_duration = self.shared.server_requests.callback_timeout().min(MAX_REQUEST_TIMEOUT);
        let open_for = self.notify_server.then_some(max_duration);
        let unanswered = self.shared.pending.remove(self.id, open_for);
        if unanswered {
            self.shared.outbound.forget(self.id, self.notify_server);
        }
    }
}
