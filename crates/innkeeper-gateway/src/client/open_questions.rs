//! The requests of servers that wait for the response of one client.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use innkeeper_host::{CallbackError, CallbackResult};
use innkeeper_protocol::{ErrorObject, RequestId, envelope, method};
use serde_json::json;
use serde_json::value::RawValue;
use tokio::sync::oneshot;

use crate::sink::MessageSink;

/// Maximum number of open requests to one client.
pub(super) const MAX_OPEN_QUESTIONS: usize = 64;

/// The open requests by their number, which is their id at the client.
#[derive(Debug, Default)]
pub(super) struct OpenQuestions {
    waiting: Mutex<HashMap<u64, oneshot::Sender<CallbackResult>>>,
    last: AtomicU64,
}

impl OpenQuestions {
    fn waiting(&self) -> MutexGuard<'_, HashMap<u64, oneshot::Sender<CallbackResult>>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Numbers the requests from the number after this.
    pub(super) fn start_after(&self, number: u64) {
        self.last.store(number, Ordering::Relaxed);
    }

    /// Sends a request to the client and waits for the response. Dropping the future cancels the request
    /// at the client.
    pub(super) async fn ask(
        &self,
        sink: &MessageSink,
        method: &str,
        params: Option<&RawValue>,
    ) -> CallbackResult {
        let (sender, receiver) = oneshot::channel();
        let id = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        {
            let mut waiting = self.waiting();
            if waiting.len() >= MAX_OPEN_QUESTIONS {
                return Err(unavailable("the client has too many open requests"));
            }
            waiting.insert(id, sender);
        }
        let mut open = OpenQuestion { questions: self, sink, id, answered: false };
        let mut message = Vec::new();
        let written = match params {
            Some(params) => envelope::write_request(&mut message, id, method, params),
            // Some clients require `params`.
            None => envelope::write_request(&mut message, id, method, &json!({})),
        };
        written.map_err(|error| unavailable(&error.to_string()))?;
        if !sink.send(message.into()).await {
            open.answered = true;
            return Err(unavailable("the client cannot receive requests"));
        }
        let answer = receiver.await;
        open.answered = true;
        answer.unwrap_or_else(|_| Err(unavailable("the client has disconnected")))
    }

    /// Passes a response of the client to the request that it belongs to.
    pub(super) fn answer(&self, id: &RequestId, outcome: Result<&RawValue, ErrorObject>) {
        let question = id.as_client_id().and_then(|id| self.waiting().remove(&id));
        let Some(question) = question else {
            tracing::debug!(%id, "response of a client to no open request");
            return;
        };
        let answer = match outcome {
            Ok(result) => Ok(result.to_owned()),
            Err(error) => Err(CallbackError::new(error.code, error.message)),
        };
        // The request may have ended.
        let _ = question.send(answer);
    }

    /// Fails all open requests.
    pub(super) fn fail_all(&self) {
        self.waiting().clear();
    }

    #[cfg(test)]
    pub(super) fn is_empty(&self) -> bool {
        self.waiting().is_empty()
    }
}

fn unavailable(message: &str) -> CallbackError {
    CallbackError::new(envelope::code::INTERNAL_ERROR, message)
}

/// A request to the client that has no response yet.
struct OpenQuestion<'a> {
    questions: &'a OpenQuestions,
    sink: &'a MessageSink,
    id: u64,
    answered: bool,
}

impl Drop for OpenQuestion<'_> {
    fn drop(&mut self) {
        self.questions.waiting().remove(&self.id);
        if self.answered {
            return;
        }
        let mut message = Vec::new();
        let params = json!({ "requestId": self.id });
        if envelope::write_notification(&mut message, method::CANCELLED, Some(&params)).is_ok() {
            // A client that does not read fast enough keeps the request open.
            self.sink.notify(message.into());
        }
    }
}
