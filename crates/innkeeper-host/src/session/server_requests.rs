//! Requests of a server, passed to the application's callback within limits.

use std::future::pending;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::RequestId;
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::SetOnce;
use tokio::time::timeout;

use super::SessionState;
use super::call_context::{CallCallbackHandle, PendingCall};
use super::inbound_sink::MessageSource;
use super::request_slots::{RequestSlot, RequestSlots, SlotError};
use crate::audit::AuditEvent;
use crate::callback::{
    CallbackCapabilities, CallbackError, CallbackRegistry, CallbackResult, RequestKind,
    ServerRequest,
};
use crate::event::CallReference;
use crate::tasks::BackgroundTasks;
use crate::text::display_prefix;

/// Maximum number of characters shown of a method name.
const MAX_SHOWN_CHARS: usize = 64;

#[derive(Debug)]
pub(super) struct ServerRequests {
    callbacks: CallbackRegistry,
    tasks: BackgroundTasks,
    callback_timeout: Duration,
    slots: Arc<RequestSlots>,
    rejected_count: AtomicU64,
    /// The cell that cancels each open request; at most as many as open requests.
    cancellations: Mutex<Vec<(RequestId, Arc<SetOnce<()>>)>>,
}

impl ServerRequests {
    pub(super) fn new(
        callbacks: CallbackRegistry,
        tasks: BackgroundTasks,
        callback_timeout: Duration,
    ) -> Self {
        Self {
            callbacks,
            tasks,
            callback_timeout,
            slots: Arc::default(),
            rejected_count: AtomicU64::new(0),
            cancellations: Mutex::default(),
        }
    }

    fn cancellations(&self) -> MutexGuard<'_, Vec<(RequestId, Arc<SetOnce<()>>)>> {
        self.cancellations.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Cancels an open request, which then has no response; returns whether the request is open.
    pub(super) fn cancel(&self, id: &RequestId) -> bool {
        let cancellations = self.cancellations();
        let found = cancellations.iter().filter(|(open_id, _)| open_id == id);
        // A second cancellation finds the cell set.
        found.map(|(_, cancelled)| drop(cancelled.set(()))).count() > 0
    }

    pub(super) fn callback_timeout(&self) -> Duration {
        self.callback_timeout
    }

    pub(super) fn tasks(&self) -> &BackgroundTasks {
        &self.tasks
    }

    /// Reports a rejected request, if it has a place in the log.
    fn report_rejection(&self, request: &ServerRequest, explanation: &str) {
        let count = self.rejected_count.fetch_add(1, Ordering::Relaxed) + 1;
        if is_reported(count) {
            let shown_method = &display_prefix(&request.method, MAX_SHOWN_CHARS);
            AuditEvent::RequestRefused { subject: shown_method, reason: explanation, count }
                .emit(&request.server);
        }
    }

    pub(super) fn has_callbacks(&self) -> bool {
        !self.callbacks.is_empty()
    }

    /// Returns whether a callback is running for a request of the server.
    pub(super) fn is_busy(&self) -> bool {
        self.slots.is_busy()
    }
}

/// Returns whether the rejection with this number is reported: each of the first, then each power of
/// two, so that a flood cannot flood the log.
fn is_reported(count: u64) -> bool {
    count <= 16 || count.is_power_of_two()
}

/// Passes a request to the callback of its call, else to the host's callback; rejects the request at
/// once without a callback of the host, without the capability of the client of the call, or with
/// too many open requests. The end of the call drops the
/// future of the call's own callback; a cancellation by the server drops the future of any callback.
pub(super) fn handle_request(
    shared: &Arc<SessionState>,
    id: RequestId,
    method: &str,
    params: Option<&RawValue>,
    source: MessageSource,
) {
    let state = &shared.server_requests;
    let kind = RequestKind::from_method(method);
    let capabilities = state.callbacks.capabilities_for(&shared.server, kind);
    let for_many_clients =
        capabilities.as_ref().is_some_and(CallbackCapabilities::is_for_many_clients);
    let call = shared.request_call(params, source, for_many_clients);
    let call_callback = call.as_ref().and_then(|call| call.callback.clone());
    let caller = call.as_ref().and_then(|call| call.caller.clone());
    let request = ServerRequest {
        server: shared.server.clone(),
        key: string_id(&id),
        method: method.into(),
        params: params.map(ToOwned::to_owned),
        call: call.map_or(CallReference::Unknown, PendingCall::into_reference),
    };
    if capabilities.is_none() {
        state.report_rejection(&request, "no callback registered");
        return reject(shared, &id, &CallbackError::method_not_found());
    }
    if let Some(error) = caller.as_ref().and_then(|caller| caller.rejection(&request)) {
        state.report_rejection(&request, &error.message);
        return reject(shared, &id, &error);
    }
    let principal = match caller {
        Some(caller) => caller.principal.clone(),
        None => shared.pending.only_principal(),
    };
    let asks_one_user = principal.is_none() && !for_many_clients;
    let is_elicitation = kind == RequestKind::Elicitation;
    let slot = match state.slots.open(principal, is_elicitation, asks_one_user) {
        Ok(slot) => slot,
        Err(SlotError::TooManyElicitations) => {
            state.report_rejection(&request, "too many elicitations at once");
            return shared.outbound.respond(&id, &json!({ "action": "decline" }));
        }
        Err(SlotError::TooManyRequests) => {
            state.report_rejection(&request, "too many requests at once");
            let error = CallbackError::internal_error("too many requests at once");
            return reject(shared, &id, &error);
        }
    };
    let open = OpenRequest::new(shared.clone(), id, slot);
    state.tasks.spawn(async move {
        let state = &open.shared.server_requests;
        let responding = async {
            let _turn = open.slot.turn().await;
            let own = call_callback.as_ref().map(CallCallbackHandle::use_callback);
            match state.callbacks.respond(request, own) {
                Some(answering) => answering.await,
                None => Err(CallbackError::method_not_found()),
            }
        };
        let call_ended = async {
            match &call_callback {
                Some(callback) => callback.call_ended().await,
                None => pending().await,
            }
        };
        let response = tokio::select! {
            biased;
            _ = open.cancelled.wait() => return open.abandon(),
            () = call_ended => Err(CallbackError::internal_error("the call has ended")),
            answer = timeout(state.callback_timeout, responding) => answer.unwrap_or_else(|_| {
                Err(CallbackError::internal_error("the callback timed out"))
            }),
            // The connection is closed, so a response cannot be sent.
            _ = open.shared.pending.closed() => Err(CallbackError::internal_error("the session is closed")),
        };
        open.respond(response);
    });
}

fn string_id(id: &RequestId) -> Option<Box<str>> {
    match id {
        RequestId::String(text) => Some(text.clone()),
        RequestId::Integer(_) => None,
    }
}

fn reject(shared: &SessionState, id: &RequestId, error: &CallbackError) {
    shared.outbound.respond_error(id, error.code, &error.message);
}

/// An open request. The server gets a response however the request ends, even after a panic of the
/// callback.
struct OpenRequest {
    shared: Arc<SessionState>,
    id: Option<RequestId>,
    slot: RequestSlot,
    cancelled: Arc<SetOnce<()>>,
}

impl OpenRequest {
    fn new(shared: Arc<SessionState>, id: RequestId, slot: RequestSlot) -> Self {
        let cancelled = Arc::new(SetOnce::new());
        shared.server_requests.cancellations().push((id.clone(), cancelled.clone()));
        Self { shared, id: Some(id), slot, cancelled }
    }

    /// Closes a cancelled request without a response.
    fn abandon(mut self) {
        self.id = None;
    }

    fn respond(mut self, response: CallbackResult) {
        let Some(id) = self.id.take() else { return };
        match response {
            Ok(result) => self.shared.outbound.respond(&id, &result),
            Err(error) => reject(&self.shared, &id, &error),
        }
    }
}

impl Drop for OpenRequest {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            reject(&self.shared, &id, &CallbackError::internal_error("the callback failed"));
        }
        self.shared
            .server_requests
            .cancellations()
            .retain(|(_, cancelled)| !Arc::ptr_eq(cancelled, &self.cancelled));
        // The server was waiting for the host, so the idle time of its calls starts again.
        self.shared.pending.touch_all();
    }
}

#[cfg(test)]
mod tests;
