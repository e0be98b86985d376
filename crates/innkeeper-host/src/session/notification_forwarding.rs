//! Forwards notifications of a server to the application: events, progress, notifications of calls.

use std::sync::Arc;

use innkeeper_protocol::request_meta::META_RELATED_TASK;
use innkeeper_protocol::view::{LoggingMessageNotification, ProgressNotification};
use innkeeper_protocol::{RequestId, method, skim};
use serde_json::value::RawValue;

use super::call_context::PendingCall;
use super::inbound_sink::MessageSource;
use super::{CallNotification, Progress, SessionState};
use crate::event::{CallReference, HostEvent};

/// Maximum size in bytes of the method and the parameters of a forwarded notification.
const MAX_NOTIFICATION_BYTES: usize = 64 << 10;

impl SessionState {
    /// Publishes the event of a notification and, for a log message, the typed event; forwards the
    /// notification to the call that the notification belongs to.
    pub(super) fn forward_notification(
        &self,
        method: &str,
        params: Option<&RawValue>,
        source: MessageSource,
    ) {
        let is_published = self.events.has_subscribers();
        let call = self.notification_call(method, params, source);
        // The host cancels the request of the server itself.
        let listener = call.as_ref().filter(|_| method != method::CANCELLED);
        let listener = listener.and_then(PendingCall::notifications);
        if !is_published && listener.is_none() {
            return;
        }
        let bytes = method.len() + params.map_or(0, |params| params.get().len());
        if bytes > MAX_NOTIFICATION_BYTES {
            self.log_unusable("oversized notification not forwarded", None);
            return;
        }
        let shared_method: Arc<str> = method.into();
        let raw_params: Option<Arc<RawValue>> = params.map(|params| params.to_owned().into());
        if let Some(listener) = listener {
            let method = shared_method.clone();
            let params = raw_params.clone();
            let is_assumed = &*method == method::MESSAGE
                && source == MessageSource::Pipe
                && related_task(params.as_deref()).is_none();
            let notification = CallNotification { method, params, is_assumed };
            if listener.try_send(notification).is_err() {
                self.log_unusable("notification of a call dropped; receiver too slow", None);
            }
        }
        if !is_published {
            return;
        }
        self.events.publish(HostEvent::Notification {
            server: self.server.clone(),
            method: shared_method,
            params: raw_params.clone(),
            call: call.map_or(CallReference::Unknown, PendingCall::into_reference),
        });
        if method == method::MESSAGE {
            self.publish_log_message(raw_params);
        }
    }

    fn publish_log_message(&self, params: Option<Arc<RawValue>>) {
        let read = params
            .and_then(|params| Some((LoggingMessageNotification::from_raw(&params).ok()?, params)));
        let Some((LoggingMessageNotification { level, logger, data }, params)) = read else {
            self.log_unusable("malformed log message", None);
            return;
        };
        let server = self.server.clone();
        let meta = meta_member(&params);
        self.events.publish(HostEvent::Message { server, level, logger, data, meta, params });
    }

    /// Forwards progress to the caller of the request.
    pub(super) fn forward_progress(&self, params: Option<&RawValue>) {
        let read =
            params.and_then(|params| Some((ProgressNotification::from_raw(params).ok()?, params)));
        let Some((notification, params)) = read else {
            self.log_unusable("malformed progress", None);
            return;
        };
        let id = notification.progress_token.as_client_id();
        let Some(listener) =
            id.and_then(|id| self.pending.record_progress(id, notification.progress))
        else {
            self.log_unusable("progress with a decreased value or an unknown token", None);
            return;
        };
        let Some(listener) = listener else { return };
        let progress = Progress {
            progress: notification.progress,
            total: notification.total,
            message: notification.message,
            meta: meta_member(params),
            params: params.to_owned().into(),
        };
        if listener.try_send(progress).is_err() {
            self.log_unusable("progress dropped; receiver too slow", None);
        }
    }

    /// Returns the call that a request of the server belongs to. If the host calls `for_many_clients`,
    /// the only call in flight is not necessarily that call.
    pub(super) fn request_call(
        &self,
        params: Option<&RawValue>,
        source: MessageSource,
        for_many_clients: bool,
    ) -> Option<PendingCall> {
        match (related_task(params), source) {
            (Some(task_id), _) => self.pending.call_of_task(&task_id),
            (None, MessageSource::Pipe) if for_many_clients => {
                self.pending.prepare_shared_request();
                None
            }
            (None, _) => self.pending.call_of(source),
        }
    }

    fn notification_call(
        &self,
        method: &str,
        params: Option<&RawValue>,
        source: MessageSource,
    ) -> Option<PendingCall> {
        if method == method::PROGRESS {
            let token = RequestId::from_raw(skim::member(params?.get(), "progressToken")?)?;
            return self.pending.call(token.as_client_id()?);
        }
        if let Some(task_id) = related_task(params) {
            return self.pending.call_of_task(&task_id);
        }
        match (source, method) {
            (MessageSource::Pipe, method::TASKS_STATUS | method::TASKS_CHANGED) => {
                self.pending.call_of_task(&string_member(params?.get(), "taskId")?)
            }
            // Only a log message over a pipe is like a request of the server: both concern what
            // the server processes.
            (MessageSource::Pipe, method::MESSAGE)
            | (MessageSource::Response(_) | MessageSource::Standalone, _) => {
                self.pending.call_of(source)
            }
            (MessageSource::Pipe, _) => None,
        }
    }
}

/// Returns the id of the task that a message of revision 2025-11-25 belongs to.
fn related_task(params: Option<&RawValue>) -> Option<String> {
    let meta = skim::member(params?.get(), "_meta")?;
    string_member(skim::member(meta, META_RELATED_TASK)?, "taskId")
}

fn string_member(object: &str, key: &str) -> Option<String> {
    serde_json::from_str(skim::member(object, key)?).ok()
}

fn meta_member(params: &RawValue) -> Option<Arc<RawValue>> {
    let meta = skim::member(params.get(), "_meta")?.to_owned();
    RawValue::from_string(meta).ok().map(Arc::from)
}

#[cfg(test)]
mod tests;
