//! The calls of one request of a client for whose session or principal this replica is responsible.
//!
//! A call that may not run twice is recorded immediately before it is sent, so that no replica runs it
//! again and its outcome is known to be unknown if this replica ends.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::BoxFuture;
use innkeeper_host::SendCheck;
use innkeeper_protocol::RequestId;
use serde_json::value::{RawValue, to_raw_value};

use crate::replicas::{CallRecord, Ownership, RecordRejection, Replicas};

/// The calls of one request. The records are removed when the value is dropped; those of a request that
/// another replica passes on, only when that replica cannot pass the request on again.
#[derive(Debug)]
pub(crate) struct OwnedCalls {
    replicas: Replicas,
    ownership: Arc<Ownership>,
    request: OwnedRequest,
    recorded: Mutex<Vec<String>>,
    /// Whether the records stay: another replica removes them when it has the response, or the
    /// response is not stored.
    keeps_records: AtomicBool,
    repeated: Mutex<Option<String>>,
}

/// The request of a client that has the calls.
#[derive(Debug)]
pub(crate) struct OwnedRequest {
    /// The id of the request; that of the first replica that received it.
    pub(crate) id: String,
    /// Whether another replica passed the request on.
    pub(crate) is_forwarded: bool,
    pub(crate) session: Option<Box<str>>,
    /// The number of the stream with the response; 0 without a session.
    pub(crate) stream: u64,
}

impl OwnedCalls {
    pub(crate) fn new(
        replicas: Replicas,
        ownership: Arc<Ownership>,
        request: OwnedRequest,
    ) -> Self {
        Self {
            replicas,
            ownership,
            request,
            recorded: Mutex::default(),
            keeps_records: AtomicBool::new(false),
            repeated: Mutex::default(),
        }
    }

    /// Returns the check of a call. A call that may run twice is not recorded.
    pub(crate) fn check(
        self: &Arc<Self>,
        request: &RequestId,
        item: &str,
        may_repeat: bool,
    ) -> Arc<dyn SendCheck> {
        let record = (!may_repeat).then(|| CallRecord {
            session: self.request.session.clone(),
            stream: self.request.stream,
            request: request_json(request),
            item: item.to_owned(),
        });
        let calls = self.clone();
        let is_recorded = AtomicBool::new(false);
        Arc::new(OwnedCall { calls, id: call_id(&self.request.id, request), record, is_recorded })
    }

    /// Returns the id of a call of the request, which is the same at each replica.
    pub(crate) fn id_of(&self, request: &RequestId) -> String {
        call_id(&self.request.id, request)
    }

    /// Returns whether another replica passed the request on. It does so again after a broken connection.
    pub(crate) fn is_forwarded(&self) -> bool {
        self.request.is_forwarded
    }

    /// Leaves the records to another replica.
    pub(crate) fn keep_records(&self) {
        self.keeps_records.store(true, Ordering::Relaxed);
    }

    /// Returns the id of a call that was not sent because another replica sent it before.
    pub(crate) fn repeated(&self) -> Option<String> {
        self.repeated.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for OwnedCalls {
    fn drop(&mut self) {
        if !self.keeps_records.load(Ordering::Relaxed) {
            let recorded = self.recorded.get_mut().unwrap_or_else(PoisonError::into_inner);
            for id in recorded.drain(..) {
                // The response may not arrive, also if this replica sent it.
                match self.request.is_forwarded {
                    true => self.replicas.forget_broken_call(&self.ownership.key, id),
                    false => self.replicas.forget_call(&self.ownership.key, id),
                }
            }
        }
    }
}

/// Returns the id of a call of a request, which is the same at each replica.
pub(crate) fn call_id(request: &str, client_id: &RequestId) -> String {
    format!("{request}:{client_id}")
}

/// Returns the id of a client's request as JSON.
pub(crate) fn request_json(id: &RequestId) -> Box<RawValue> {
    to_raw_value(id).unwrap_or_default()
}

#[derive(Debug)]
struct OwnedCall {
    calls: Arc<OwnedCalls>,
    id: String,
    /// `None` for a call that may run twice.
    record: Option<CallRecord>,
    is_recorded: AtomicBool,
}

/// Why a call is not sent that another replica may send.
const LOST: &str = "another replica can own the session";

impl OwnedCall {
    async fn check_ownership(&self) -> Result<(), String> {
        let OwnedCalls { replicas, ownership, .. } = &*self.calls;
        let Some(record) = &self.record else {
            return if replicas.owns(ownership) { Ok(()) } else { Err(LOST.to_owned()) };
        };
        if self.is_recorded.load(Ordering::Relaxed) {
            // A second attempt of the same call.
            let kept = replicas.keep(ownership, &[]).await.map_err(|error| error.to_string())?;
            return if kept { Ok(()) } else { Err(LOST.to_owned()) };
        }
        match replicas.record_call(ownership, &self.id, record).await {
            Ok(()) => {
                self.is_recorded.store(true, Ordering::Relaxed);
                let recorded = &self.calls.recorded;
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push(self.id.clone());
                Ok(())
            }
            Err(RecordRejection::Lost) => Err(LOST.to_owned()),
            Err(RecordRejection::Duplicate) => {
                let repeated = &self.calls.repeated;
                *repeated.lock().unwrap_or_else(PoisonError::into_inner) = Some(self.id.clone());
                Err("the call was sent before".to_owned())
            }
            Err(RecordRejection::Unavailable(reason)) => Err(reason),
        }
    }
}

impl SendCheck for OwnedCall {
    fn check(&self) -> BoxFuture<'_, Result<(), String>> {
        Box::pin(self.check_ownership())
    }
}
