//! The way out of a session: a pipe that takes lines, or a transport that takes messages.

use innkeeper_protocol::envelope::code;
use innkeeper_protocol::{RequestId, envelope, method};
use serde::Serialize;

use super::messages::{Messages, What};
use super::writer::Writer;
use super::{Fault, Outgoing};
use crate::error::Lost;

/// Where what the host says goes.
#[derive(Debug)]
pub(super) enum Outlet {
    /// A child's standard input.
    Pipe(Writer),
    /// A transport that carries each message by itself.
    Messages(Messages),
}

impl Outlet {
    /// Whether another message may be queued.
    pub(super) fn has_room(&self) -> bool {
        match self {
            Self::Pipe(writer) => writer.has_room(),
            Self::Messages(messages) => messages.has_room(),
        }
    }

    /// Bytes that wait in front of a pipe.
    #[cfg(test)]
    pub(super) fn queued(&self) -> usize {
        match self {
            Self::Pipe(writer) => writer.queued(),
            Self::Messages(_) => 0,
        }
    }

    /// Resolves when another message may be queued; the caller bounds the wait.
    pub(super) async fn room(&self) {
        match self {
            Self::Pipe(writer) => writer.room().await,
            Self::Messages(messages) => messages.room().await,
        }
    }

    /// Queues a request; `alone` is the only one that waits for an answer.
    pub(super) fn request<P: Serialize>(
        &self,
        out: &Outgoing<'_, P>,
        alone: bool,
    ) -> Result<(), Fault> {
        let Outgoing { id, method, params, .. } = *out;
        match self {
            Self::Pipe(writer) => writer.request(id, method, params, alone),
            Self::Messages(messages) => {
                let (name, headers) = (out.name.map(Into::into), out.headers.to_vec());
                let what = What::Request { id, method, name, params: headers };
                messages.send(what, |body| envelope::write_request(body, id, method, params))
            }
        }
    }

    /// Queues a notification unless the server has stopped reading.
    pub(super) fn notification(&self, method: &str, params: Option<&impl Serialize>) {
        match self {
            Self::Pipe(writer) => writer.notification(method, params),
            Self::Messages(messages) => {
                let what = What::Notification { method: method.into() };
                small(messages, what, |body| envelope::write_notification(body, method, params));
            }
        }
    }

    /// Queues an answer to a request of the server unless it has stopped reading. One that is too
    /// long to be sent becomes an error, so that the server does not wait for it.
    pub(super) fn answer(&self, id: &RequestId, result: &impl Serialize) {
        let fits = match self {
            Self::Pipe(writer) => writer.answer(id, result),
            Self::Messages(messages) => {
                small(messages, What::Response, |body| envelope::write_response(body, id, result))
            }
        };
        if !fits {
            self.refuse(id, code::INTERNAL_ERROR, "the answer is too long");
        }
    }

    /// Queues an error answer to a request of the server unless it has stopped reading.
    pub(super) fn refuse(&self, id: &RequestId, code: i64, message: &str) {
        match self {
            Self::Pipe(writer) => writer.refuse(id, code, message),
            Self::Messages(messages) => {
                let write = |body: &mut Vec<u8>| envelope::write_error(body, id, code, message);
                small(messages, What::Response, write);
            }
        }
    }

    /// Says that nobody waits for this request any more; `tell` the server of it, too.
    pub(super) fn forget(&self, id: u64, tell: bool) {
        match self {
            Self::Pipe(writer) if tell => {
                let params = serde_json::json!({ "requestId": id });
                writer.notification(method::CANCELLED, Some(&params));
            }
            Self::Pipe(_) => {}
            Self::Messages(messages) => messages.forget(id, tell),
        }
    }

    /// Closes the way, after what is queued was offered once more to a pipe.
    pub(super) fn close(&self) {
        match self {
            Self::Pipe(writer) => writer.close(),
            Self::Messages(messages) => messages.close(Lost::Shutdown),
        }
    }

    /// Refuses everything from now on.
    pub(super) fn fail(&self, reason: Lost) {
        match self {
            Self::Pipe(writer) => writer.fail(reason),
            Self::Messages(messages) => messages.close(reason),
        }
    }
}

/// Sends what nobody waits for: without room, or after the end, it is dropped. False if it is too
/// long to be sent at all.
fn small(
    messages: &Messages,
    what: What,
    write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
) -> bool {
    !messages.has_room() || !matches!(messages.send(what, write), Err(Fault::Protocol(_)))
}
