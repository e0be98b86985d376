//! One connected client: its identity, its requests in flight, and the requests of servers that it
//! answers.

mod callback;
mod open_questions;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use innkeeper_host::{CallbackError, CallbackResult, LogLevel, ServerRequest};
use innkeeper_protocol::request_meta::EXTENSION_TASKS;
use innkeeper_protocol::{ErrorObject, RequestId, Revision, envelope, method, skim};
use serde_json::value::RawValue;
use tokio::sync::{SetOnce, watch};

use crate::json_text;
use crate::principal::Principal;
use crate::sink::MessageSink;
use crate::task_ids::TaskIdPair;

pub(crate) use callback::ClientCallback;
use open_questions::OpenQuestions;

/// Maximum number of requests of one client in flight; more are rejected.
pub(crate) const MAX_REQUESTS_IN_FLIGHT: usize = 1_024;

/// The capabilities of a client that answers requests of servers.
const ANSWER_CAPABILITIES: [&str; 3] = ["sampling", "elicitation", "roots"];

/// The revision and the capabilities of a client.
#[derive(Clone, Debug)]
pub(crate) struct ClientIdentity {
    pub(crate) revision: Revision,
    pub(crate) capabilities: Arc<RawValue>,
}

impl ClientIdentity {
    /// Returns whether the client declares that it answers requests with this method. Custom
    /// methods have no capability.
    pub(crate) fn declares(&self, method: &str) -> bool {
        self.missing_capability(method).is_none()
    }

    /// Returns the capability that a client needs to answer requests with this method, and that the
    /// client does not declare.
    pub(crate) fn missing_capability(&self, method: &str) -> Option<&'static str> {
        let capability = match method {
            method::SAMPLING_CREATE_MESSAGE => "sampling",
            method::ELICITATION_CREATE => "elicitation",
            method::ROOTS_LIST => "roots",
            _ => return None,
        };
        (!self.has_capability(capability)).then_some(capability)
    }

    /// Returns whether the client declares the tasks extension of 2026-07-28.
    pub(crate) fn declares_task_extension(&self) -> bool {
        skim::member(self.capabilities.get(), "extensions")
            .and_then(|extensions| skim::member(extensions, EXTENSION_TASKS))
            .is_some_and(|value| value.starts_with('{'))
    }

    fn has_capability(&self, capability: &str) -> bool {
        skim::member(self.capabilities.get(), capability)
            .is_some_and(|value| value.starts_with('{'))
    }

    pub(crate) fn answers_requests(&self) -> bool {
        ANSWER_CAPABILITIES.iter().any(|name| self.has_capability(name))
    }

    /// Returns the capabilities as if the client filled forms.
    pub(crate) fn with_elicitation(&self) -> Box<RawValue> {
        let text = json_text::with_default(self.capabilities.get().to_owned(), "elicitation", "{}");
        RawValue::from_string(text).unwrap_or_default()
    }

    /// Returns the capabilities as if the client answered every kind of request.
    pub(crate) fn with_all_kinds(&self) -> Box<RawValue> {
        let text =
            ANSWER_CAPABILITIES.iter().fold(self.capabilities.get().to_owned(), |text, name| {
                json_text::with_default(text, name, "{}")
            });
        RawValue::from_string(text).unwrap_or_default()
    }
}

/// The number of the next client.
static NEXT_CLIENT: AtomicU64 = AtomicU64::new(1);

/// A client with a connection or a session.
#[derive(Debug)]
pub(crate) struct Client {
    /// A number that no other client of the process has.
    pub(crate) number: u64,
    pub(crate) principal: Principal,
    pub(crate) endpoint: usize,
    /// Receives the messages that belong to no request.
    pub(crate) general: MessageSink,
    pub(crate) settings: ClientSettings,
    stage: watch::Sender<ClientStage>,
    requests: Mutex<HashMap<RequestId, Arc<SetOnce<()>>>>,
    questions: OpenQuestions,
}

/// What a client has told about itself.
#[derive(Debug, Default)]
pub(crate) struct ClientSettings {
    identity: OnceLock<ClientIdentity>,
    /// Set by `notifications/initialized`.
    pub(crate) initialized: SetOnce<()>,
    log_level: Mutex<Option<LogLevel>>,
}

impl ClientSettings {
    /// Records what the client declared in `initialize`; returns whether this is the first time.
    pub(crate) fn initialize(&self, identity: ClientIdentity) -> bool {
        self.identity.set(identity).is_ok()
    }

    /// Returns what the client declared in `initialize`.
    pub(crate) fn identity(&self) -> Option<&ClientIdentity> {
        self.identity.get()
    }

    /// Sets the minimum level of log messages for the client.
    pub(crate) fn set_log_level(&self, level: LogLevel) {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner) = Some(level);
    }

    pub(crate) fn log_level(&self) -> Option<LogLevel> {
        *self.log_level.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// How far a connection or session has come to its end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd)]
enum ClientStage {
    #[default]
    Open,
    /// The client sends no more messages.
    InputEnded,
    Ended,
}

/// The reason why a request cannot start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestRejection {
    DuplicateId,
    TooMany,
}

impl Client {
    pub(crate) fn new(principal: Principal, endpoint: usize, general: MessageSink) -> Self {
        Self {
            number: NEXT_CLIENT.fetch_add(1, Ordering::Relaxed),
            principal,
            endpoint,
            general,
            settings: ClientSettings::default(),
            stage: watch::Sender::default(),
            requests: Mutex::default(),
            questions: OpenQuestions::default(),
        }
    }

    /// Numbers the requests to the client from the number after this: an answer to a request of an
    /// earlier replica then answers none of this one.
    pub(crate) fn start_questions_after(&self, number: u64) {
        self.questions.start_after(number);
    }

    fn requests(&self) -> MutexGuard<'_, HashMap<RequestId, Arc<SetOnce<()>>>> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request until the guard is dropped.
    pub(crate) fn start_request(
        self: &Arc<Self>,
        id: &RequestId,
    ) -> Result<RequestGuard, RequestRejection> {
        let mut requests = self.requests();
        if requests.len() >= MAX_REQUESTS_IN_FLIGHT {
            return Err(RequestRejection::TooMany);
        }
        if requests.contains_key(id) {
            return Err(RequestRejection::DuplicateId);
        }
        let cancelled = Arc::new(SetOnce::new());
        requests.insert(id.clone(), cancelled.clone());
        Ok(RequestGuard { client: self.clone(), id: id.clone(), cancelled })
    }

    pub(crate) fn has_requests(&self) -> bool {
        !self.requests().is_empty()
    }

    pub(crate) fn cancel(&self, id: &RequestId) {
        if let Some(cancelled) = self.requests().get(id) {
            // A second cancellation finds the cell set.
            let _ = cancelled.set(());
        }
    }

    /// Passes a response of the client to the request that it belongs to.
    pub(crate) fn answer(&self, id: &RequestId, outcome: Result<&RawValue, ErrorObject>) {
        self.questions.answer(id, outcome);
    }

    /// Sends a request of a server to the client and waits for the response; dropping the future cancels
    /// the request at the client. In a request about a task, the client gets its id of the task and the
    /// server its own.
    pub(crate) async fn ask(
        self: &Arc<Self>,
        sink: &MessageSink,
        method: &str,
        params: Option<&RawValue>,
        task: Option<&TaskIdPair>,
    ) -> CallbackResult {
        let Some(task) = task else { return self.questions.ask(sink, method, params).await };
        let params = params.map(|params| task.for_client(params));
        let response = self.questions.ask(sink, method, params.as_deref()).await?;
        Ok(task.for_server(&response))
    }

    /// Passes a request that belongs to no call to the client, on its general stream; a request about a
    /// task has the ids of the task.
    pub(crate) async fn respond_outside_call(
        self: &Arc<Self>,
        request: ServerRequest,
        task: Option<TaskIdPair>,
    ) -> CallbackResult {
        if !self.settings.identity().is_some_and(|identity| identity.declares(&request.method)) {
            let message = "method not supported by the client";
            return Err(CallbackError::new(envelope::code::METHOD_NOT_FOUND, message));
        }
        let ServerRequest { method, params, .. } = &request;
        self.ask(&self.general, method, params.as_deref(), task.as_ref()).await
    }

    /// Ends the subscriptions of a client that sends no more messages, and fails the open requests to
    /// it. Its other requests continue.
    pub(crate) fn finish_input(&self) {
        self.enter(ClientStage::InputEnded);
        self.questions.fail_all();
    }

    fn enter(&self, stage: ClientStage) {
        self.stage.send_if_modified(|current| {
            let is_later = *current < stage;
            if is_later {
                *current = stage;
            }
            is_later
        });
    }

    /// Waits until the client sends no more messages.
    pub(crate) async fn input_ended(&self) {
        let mut stages = self.stage.subscribe();
        // The sender lives as long as the client.
        let _ = stages.wait_for(|stage| *stage >= ClientStage::InputEnded).await;
    }

    /// Fails the open requests to the client, and cancels its requests in flight.
    pub(crate) fn disconnect(&self) {
        self.questions.fail_all();
        for cancelled in self.requests().values() {
            let _ = cancelled.set(());
        }
    }

    /// Records the end of the connection or session.
    pub(crate) fn end(&self) {
        self.enter(ClientStage::Ended);
    }

    /// Returns whether the connection or session has ended.
    pub(crate) fn has_ended(&self) -> bool {
        *self.stage.borrow() == ClientStage::Ended
    }
}

#[derive(Debug)]
pub(crate) struct RequestGuard {
    client: Arc<Client>,
    id: RequestId,
    cancelled: Arc<SetOnce<()>>,
}

impl RequestGuard {
    /// Waits until the client cancels the request.
    pub(crate) async fn cancelled(&self) {
        self.cancelled.wait().await;
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.client.requests().remove(&self.id);
    }
}

#[cfg(test)]
mod tests;
