//! Dispatches the messages of a server to callers and handlers.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::envelope::{Incoming, Message};
use innkeeper_protocol::request_meta::META_SUBSCRIPTION_ID;
use innkeeper_protocol::view::Task;
use innkeeper_protocol::{
    ErrorObject, Frame, MalformedKind, MalformedMessage, RequestId, envelope, method, skim,
};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::change_notifier::{PROMPTS, RESOURCES, TOOLS};
use super::inbound_sink::MessageSource;
use super::unknown_session::refuses_session;
use super::{RequestError, SessionState, server_requests};
use crate::error::{ProtocolError, UnavailableReason};
use crate::text::display_prefix;

/// Maximum number of characters logged of an unknown name.
const MAX_SHOWN_CHARS: usize = 64;

/// Time to wait for the single-line form of a response that was also printed over multiple lines.
const MULTILINE_GRACE: Duration = Duration::from_millis(100);

/// The class of an incoming message for the rate limiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageClass {
    Awaited,
    Unsolicited,
    Request,
}

impl SessionState {
    /// Waits until more may be read; the wait is bounded.
    pub(super) async fn wait_for_capacity(&self) {
        self.reading.wait_for_capacity(&self.server).await;
    }

    /// Handles one line.
    pub(super) fn receive_frame(this: &Arc<Self>, frame: Frame<'_>) {
        match frame {
            Frame::Line(line) => Self::receive_message(this, line, MessageSource::Pipe),
            Frame::TooLong { head } => this.handle_too_long(head),
        }
    }

    /// Handles one message or a batch.
    pub(super) fn receive_message(this: &Arc<Self>, text: &[u8], source: MessageSource) {
        match envelope::parse(text) {
            Ok(Message::Single(incoming)) => {
                this.charge(Self::dispatch(this, incoming, source), text.len());
            }
            Ok(Message::Batch(items)) => {
                let mut awaited = false;
                for item in items {
                    let class = match item {
                        Ok(incoming) => Self::dispatch(this, incoming, source),
                        Err(malformed) => {
                            this.handle_malformed(malformed);
                            MessageClass::Unsolicited
                        }
                    };
                    this.charge(class, 0);
                    awaited |= class == MessageClass::Awaited;
                }
                if !awaited {
                    this.reading.rate.count(text.len() as u64);
                }
            }
            Err(malformed) => {
                this.reading.rate.count(text.len() as u64);
                this.unusable_output.keep_early_line(text);
                this.handle_malformed(malformed);
                Self::detect_multiline(this, text);
            }
        }
    }

    /// Counts an unsolicited message of this length.
    fn charge(&self, class: MessageClass, length: usize) {
        match class {
            MessageClass::Awaited => {}
            MessageClass::Unsolicited => self.reading.rate.count(length as u64),
            MessageClass::Request => self.reading.rate.count_request(length as u64),
        }
    }

    fn dispatch(this: &Arc<Self>, incoming: Incoming<'_>, source: MessageSource) -> MessageClass {
        this.unusable_output.record_message();
        match incoming {
            Incoming::Response { id, outcome } => this.handle_response(&id, outcome, source),
            Incoming::Request { id, method, params } => {
                Self::handle_request(this, id, &method, params, source);
                MessageClass::Request
            }
            Incoming::Notification { method, params } => {
                this.handle_notification(&method, params, source);
                MessageClass::Unsolicited
            }
        }
    }

    fn handle_response(
        &self,
        id: &RequestId,
        outcome: Result<&RawValue, ErrorObject>,
        source: MessageSource,
    ) -> MessageClass {
        if let (Err(error), MessageSource::Response(request)) = (&outcome, source)
            && id.as_client_id() == Some(request)
            && refuses_session(error)
        {
            // The transport starts another session, or passes the error on.
            return MessageClass::Awaited;
        }
        let waiter = id.as_client_id().and_then(|client_id| self.pending.take_responder(client_id));
        self.pending.record_response();
        let Some(waiter) = waiter else {
            // Most of them arrive after a timeout or a cancellation, which is already logged.
            self.unusable_output.count();
            let id = id.to_string();
            let id = &*display_prefix(&id, MAX_SHOWN_CHARS);
            tracing::debug!(server = &*self.server, id, "response to unknown or cancelled request");
            if outcome.is_err() {
                self.unusable_output.unattributed_error.notify_one();
            }
            return MessageClass::Unsolicited;
        };
        let response = match outcome {
            Ok(result) => {
                self.reading.results.try_reserve(result.get().len(), || result.to_owned()).ok_or(
                    RequestError::Unavailable {
                        reason: UnavailableReason::ResultBufferFull,
                        sent: true,
                    },
                )
            }
            Err(error) => Err(RequestError::ErrorResponse(error)),
        };
        // The caller may have been dropped in the meantime; the response is then discarded.
        let _ = waiter.send(response);
        MessageClass::Awaited
    }

    fn handle_request(
        this: &Arc<Self>,
        id: RequestId,
        method: &str,
        params: Option<&RawValue>,
        source: MessageSource,
    ) {
        if this.is_modern() {
            this.log_unusable("request from a server of the modern era", None);
        } else if method == method::PING {
            this.outbound.respond(&id, &serde_json::json!({}));
        } else {
            server_requests::handle_request(this, id, method, params, source);
        }
    }

    fn handle_notification(&self, method: &str, params: Option<&RawValue>, source: MessageSource) {
        self.forward_notification(method, params, source);
        match method {
            method::PROGRESS => self.forward_progress(params),
            method::CANCELLED => self.handle_cancelled(params),
            method::TOOLS_LIST_CHANGED => self.change_notifier.mark_changed(TOOLS),
            method::PROMPTS_LIST_CHANGED => self.change_notifier.mark_changed(PROMPTS),
            method::RESOURCES_LIST_CHANGED => self.change_notifier.mark_changed(RESOURCES),
            method::RESOURCES_UPDATED => self.handle_updated(params),
            method::SUBSCRIPTIONS_ACKNOWLEDGED => self.handle_acknowledged(params),
            // `forward_notification` has published the event.
            method::MESSAGE => {}
            // A task poll starts at once; the content of an unsolicited notification is not
            // trusted.
            method::TASKS_STATUS | method::TASKS_CHANGED => {
                self.end_reported_task(params);
                self.active_tasks.changed.notify_waiters();
            }
            _ => {
                let method = &*display_prefix(method, MAX_SHOWN_CHARS);
                tracing::debug!(server = &*self.server, method, "notification");
            }
        }
    }

    /// Cancels a request or a subscription of the server. The request may have ended, and other
    /// requests of the host are the host's to cancel.
    fn handle_cancelled(&self, params: Option<&RawValue>) {
        let id = params.and_then(|params| skim::member(params.get(), "requestId"));
        let id = id.and_then(RequestId::from_raw);
        if !id.is_some_and(|id| self.server_requests.cancel(&id) || self.end_subscription(&id)) {
            tracing::debug!(server = &*self.server, "cancellation of no open request");
        }
    }

    /// Ends an acknowledged subscription, so that the host sends the subscription again; returns
    /// whether the id is the id of the subscription.
    fn end_subscription(&self, id: &RequestId) -> bool {
        let id = id
            .as_client_id()
            .filter(|id| self.is_modern() && self.change_notifier.is_acknowledged(*id));
        let Some(waiter) = id.and_then(|id| self.pending.take_responder(id)) else { return false };
        let reason =
            UnavailableReason::ConnectionLost("the server cancelled the subscription".into());
        // The waiter may have been dropped.
        let _ = waiter.send(Err(RequestError::Unavailable { reason, sent: true }));
        true
    }

    /// Records the end of a task that the application polls.
    fn end_reported_task(&self, params: Option<&RawValue>) {
        let task = params.and_then(|params| Task::from_raw(params).ok());
        if let Some(task) = task.filter(|task| task.status.is_terminal()) {
            self.pending.end_task(&task.id);
        }
    }

    fn handle_updated(&self, params: Option<&RawValue>) {
        let uri = params.and_then(|params| skim::member(params.get(), "uri"));
        match uri.and_then(|uri| serde_json::from_str(uri).ok()) {
            Some(uri) => self.change_notifier.mark_updated(uri),
            None => self.log_unusable("resource update without URI", None),
        }
    }

    fn handle_acknowledged(&self, params: Option<&RawValue>) {
        let meta = params.and_then(|params| skim::member(params.get(), "_meta"));
        let id = meta.and_then(|meta| skim::member(meta, META_SUBSCRIPTION_ID));
        match id.and_then(RequestId::from_raw).as_ref().and_then(RequestId::as_client_id) {
            Some(id) => self.change_notifier.acknowledge(id),
            None => self.log_unusable("acknowledgement of unknown request", None),
        }
    }

    fn handle_malformed(&self, malformed: MalformedMessage) {
        let response =
            malformed.looks_like_response || malformed.kind == MalformedKind::NeitherResultNorError;
        let waiter = response
            .then_some(malformed.id.as_ref())
            .flatten()
            .and_then(RequestId::as_client_id)
            .and_then(|id| self.pending.take_responder(id));
        self.log_unusable("malformed message", Some(&malformed));
        if waiter.is_none() && response {
            self.unusable_output.unattributed_error.notify_one();
        }
        if waiter.is_none() && self.unusable_output.count_line() {
            self.close(UnavailableReason::InvalidMessages);
        }
        if let Some(waiter) = waiter {
            let error = RequestError::Protocol(ProtocolError::Malformed(malformed));
            let _ = waiter.send(Err(error));
        }
    }

    /// Handles a line that may be part of a multi-line response: its caller does not wait for the
    /// deadline, only for the time in which a single-line response can still follow.
    fn detect_multiline(this: &Arc<Self>, line: &[u8]) {
        let id = this.unusable_output.push_line(line);
        let Some(number) = id.as_ref().and_then(RequestId::as_client_id) else { return };
        let shared = Arc::clone(this);
        this.server_requests.tasks().spawn(async move {
            sleep(MULTILINE_GRACE).await;
            let Some(waiter) = shared.pending.take_responder(number) else { return };
            let kind = MalformedKind::MultiLineJson;
            let malformed =
                MalformedMessage { id, looks_like_response: true, kind, detail: String::new() };
            let error = RequestError::Protocol(ProtocolError::Malformed(malformed));
            let _ = waiter.send(Err(error));
        });
    }

    pub(super) fn handle_too_long(&self, head: &[u8]) {
        let (id, _) = innkeeper_protocol::skim::recover_top_level_id(head);
        self.log_unusable("line over the limit", None);
        let waiter = id
            .as_ref()
            .and_then(RequestId::as_client_id)
            .and_then(|id| self.pending.take_responder(id));
        if let Some(waiter) = waiter {
            let error = ProtocolError::TooLarge { limit: self.reading.max_line_bytes };
            let _ = waiter.send(Err(RequestError::Protocol(error)));
        }
    }

    pub(super) fn log_unusable(&self, what: &'static str, detail: Option<&MalformedMessage>) {
        self.unusable_output.log(&self.server, what, detail);
    }
}
