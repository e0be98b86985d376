//! Calls of connected clients that wait for an approval.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use innkeeper_protocol::RequestId;
use serde_json::value::RawValue;
use tokio::sync::SetOnce;

use crate::client::{Client, ClientIdentity};
use crate::error::RpcError;
use crate::pending_questions::QuestionId;
use crate::sink::MessageSink;

/// A call whose client waits with an open request.
#[derive(Debug)]
pub(crate) struct WaitingCall {
    pub(crate) client: Option<Arc<Client>>,
    pub(crate) identity: ClientIdentity,
    pub(crate) sink: MessageSink,
    pub(crate) request: RequestId,
    /// The `_meta` of the request.
    pub(crate) meta: Option<Box<RawValue>>,
    /// Set once the approved call has a result or an error.
    pub(crate) reply: SetOnce<Result<Box<RawValue>, RpcError>>,
    /// Set when the client cancels its request.
    pub(crate) cancelled: SetOnce<()>,
}

/// The waiting calls of a gateway; at most as many as open questions.
#[derive(Debug, Default)]
pub(crate) struct WaitingCalls(Mutex<HashMap<QuestionId, Arc<WaitingCall>>>);

impl WaitingCalls {
    fn by_id(&self) -> MutexGuard<'_, HashMap<QuestionId, Arc<WaitingCall>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a call until the guard is dropped.
    pub(crate) fn register(&self, id: QuestionId, call: Arc<WaitingCall>) -> WaitingCallGuard<'_> {
        self.by_id().insert(id, call);
        WaitingCallGuard { calls: self, id }
    }

    pub(crate) fn find(&self, id: QuestionId) -> Option<Arc<WaitingCall>> {
        self.by_id().get(&id).cloned()
    }

    /// Marks the call of a request as cancelled by its client, and returns its question.
    pub(crate) fn cancel(&self, client: &Client, request: &RequestId) -> Option<QuestionId> {
        let by_id = self.by_id();
        let (id, call) = by_id.iter().find(|(_, call)| {
            call.request == *request
                && call.client.as_ref().is_some_and(|other| other.number == client.number)
        })?;
        // A second cancellation finds the cell set.
        let _ = call.cancelled.set(());
        Some(*id)
    }
}

/// A registered call.
#[derive(Debug)]
pub(crate) struct WaitingCallGuard<'a> {
    calls: &'a WaitingCalls,
    id: QuestionId,
}

impl Drop for WaitingCallGuard<'_> {
    fn drop(&mut self) {
        self.calls.by_id().remove(&self.id);
    }
}
