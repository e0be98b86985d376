//! The outbound side of a session: a pipe or a message transport.

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{JsonText, RequestId, envelope};
use serde::Serialize;

use super::outbound_queue::{MessageKind, OutboundSender};
use super::writer::SessionWriter;
use super::{OutgoingRequest, RequestError};
use crate::error::UnavailableReason;

/// The destination of outgoing messages.
#[derive(Debug)]
pub(super) enum Outbound {
    /// The standard input of a child process.
    Pipe(Box<SessionWriter>),
    /// A transport that sends each message separately.
    Transport(OutboundSender),
}

impl Outbound {
    /// Returns whether another message can be queued.
    pub(super) fn has_capacity(&self) -> bool {
        match self {
            Self::Pipe(writer) => writer.has_capacity(),
            Self::Transport(messages) => messages.has_capacity(),
        }
    }

    /// Returns the number of bytes queued for a pipe.
    #[cfg(test)]
    pub(super) fn queued_bytes(&self) -> usize {
        match self {
            Self::Pipe(writer) => writer.queued_bytes(),
            Self::Transport(_) => 0,
        }
    }

    /// Waits until another message can be queued; the caller limits the wait.
    pub(super) async fn wait_for_capacity(&self) {
        match self {
            Self::Pipe(writer) => writer.wait_for_capacity().await,
            Self::Transport(messages) => messages.wait_for_capacity().await,
        }
    }

    /// Queues a request; the flag is true for the only pending request.
    pub(super) fn send_request<P: JsonText>(
        &self,
        out: &OutgoingRequest<'_, P>,
        is_only_call: bool,
    ) -> Result<(), RequestError> {
        let &OutgoingRequest { id, ref method, params, .. } = out;
        match self {
            Self::Pipe(writer) => writer.send_request(id, method, params, is_only_call),
            Self::Transport(messages) => {
                let name = out.headers.name.map(Into::into);
                let headers = out.headers.arguments.to_vec();
                let kind = MessageKind::Request {
                    id,
                    method: method.clone(),
                    name,
                    header_params: headers,
                };
                messages.send(kind, |body| envelope::write_request(body, id, method, params))
            }
        }
    }

    /// Queues a notification unless the server has stopped reading.
    pub(super) fn send_notification(
        &self,
        method: &str,
        params: Option<&impl Serialize>,
    ) -> Result<(), RequestError> {
        match self {
            Self::Pipe(writer) => writer.send_notification(method, params),
            Self::Transport(messages) => {
                let kind = MessageKind::Notification { method: method.into() };
                send_best_effort(messages, kind, |body| {
                    envelope::write_notification(body, method, params)
                })
            }
        }
    }

    /// Queues a response to a request of the server unless the server has stopped reading. An
    /// oversized response is replaced by an error, so that the server does not wait.
    pub(super) fn respond(&self, id: &RequestId, result: &impl Serialize) {
        let queued = match self {
            Self::Pipe(writer) => writer.respond(id, result),
            Self::Transport(messages) => {
                send_best_effort(messages, MessageKind::Response, |body| {
                    envelope::write_response(body, id, result)
                })
            }
        };
        if matches!(queued, Err(RequestError::TooLarge { .. })) {
            self.respond_error(id, code::INTERNAL_ERROR, "response too large");
        }
    }

    /// Queues an error response to a request of the server unless the server has stopped reading. Only
    /// queues: a destructor calls it.
    pub(super) fn respond_error(&self, id: &RequestId, code: i64, message: &str) {
        match self {
            Self::Pipe(writer) => writer.respond_error(id, code, message),
            Self::Transport(messages) => {
                let _ = send_best_effort(messages, MessageKind::Response, |body| {
                    envelope::write_error(body, id, code, message)
                });
            }
        }
    }

    /// Abandons a request; the flag also notifies the server. Only queues: a destructor calls it.
    pub(super) fn forget(&self, id: u64, notify_server: bool) {
        match self {
            Self::Pipe(writer) if notify_server => writer.queue_cancellation(id),
            Self::Pipe(_) => {}
            Self::Transport(messages) => messages.forget(id, notify_server),
        }
    }

    /// Closes the destination.
    pub(super) fn close(&self) {
        match self {
            Self::Pipe(writer) => writer.close(),
            Self::Transport(messages) => messages.close(UnavailableReason::Shutdown),
        }
    }

    /// Rejects all further messages.
    pub(super) fn fail(&self, reason: UnavailableReason) {
        match self {
            Self::Pipe(writer) => writer.fail(reason),
            Self::Transport(messages) => messages.close(reason),
        }
    }
}

/// Sends an unimportant message, which is dropped without capacity.
fn send_best_effort(
    messages: &OutboundSender,
    kind: MessageKind,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> Result<(), RequestError> {
    if messages.has_capacity() { messages.send(kind, write) } else { Ok(()) }
}
