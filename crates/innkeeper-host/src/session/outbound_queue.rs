//! The queue of outgoing messages for a message transport.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::{ProtocolError, UnavailableReason};
use crate::session::RequestError;

/// Maximum number of queued messages of any size: far more than the concurrent calls of a server.
const MAX_QUEUED_MESSAGES: usize = 4096;

#[derive(Debug)]
pub(crate) enum OutboundCommand {
    /// Send this message to the server.
    Send(OutboundMessage),
    /// Abandon this request, whose caller no longer waits.
    Forget { id: u64, notify_server: bool },
}

impl OutboundCommand {
    fn is_request(&self, id: u64) -> bool {
        matches!(self, Self::Send(OutboundMessage { kind: MessageKind::Request { id: waits, .. }, .. }) if *waits == id)
    }
}

#[derive(Debug)]
pub(crate) struct OutboundMessage {
    pub(crate) kind: MessageKind,
    /// JSON text.
    pub(crate) body: Bytes,
    permit: QueuePermit,
}

impl OutboundMessage {
    /// Releases the message's place in the queue and returns its parts.
    pub(crate) fn into_parts(self) -> (MessageKind, Bytes) {
        drop(self.permit);
        (self.kind, self.body)
    }
}

/// The properties of a message that a transport needs without parsing it.
#[derive(Debug)]
pub(crate) enum MessageKind {
    /// A request.
    Request {
        id: u64,
        method: Cow<'static, str>,
        /// Name of the tool or prompt, or the URI, if a header must contain it.
        name: Option<Box<str>>,
        /// Arguments that the server expects as headers.
        header_params: Vec<(String, String)>,
    },
    /// A notification.
    Notification { method: Box<str> },
    /// A response to a request of the server.
    Response,
}

#[derive(Debug, Default)]
struct CommandQueue {
    commands: VecDeque<OutboundCommand>,
    unavailable_reason: Option<UnavailableReason>,
}

#[derive(Debug, Default)]
struct SharedQueue {
    queue: Mutex<CommandQueue>,
    limit: usize,
    bytes: AtomicUsize,
    message_count: AtomicUsize,
    work: Notify,
    capacity_freed: Notify,
    closed: Notify,
}

impl SharedQueue {
    fn queue(&self) -> MutexGuard<'_, CommandQueue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_capacity(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < self.limit
            && self.message_count.load(Ordering::Relaxed) < MAX_QUEUED_MESSAGES
    }
}

#[derive(Debug)]
pub(super) struct OutboundSender(Arc<SharedQueue>);

/// The transport's end of the queue.
#[derive(Debug)]
pub(crate) struct OutboundReceiver(Arc<SharedQueue>);

/// A permit that counts the bytes of a message until the message is sent.
#[derive(Debug)]
struct QueuePermit(Arc<SharedQueue>, usize);

impl Drop for QueuePermit {
    fn drop(&mut self) {
        self.0.bytes.fetch_sub(self.1, Ordering::Relaxed);
        self.0.message_count.fetch_sub(1, Ordering::Relaxed);
        self.0.capacity_freed.notify_waiters();
    }
}

/// Creates a queue with a limit in bytes.
pub(super) fn channel(limit: usize) -> (OutboundSender, OutboundReceiver) {
    let shared = Arc::new(SharedQueue { limit, ..SharedQueue::default() });
    (OutboundSender(shared.clone()), OutboundReceiver(shared))
}

impl OutboundSender {
    pub(super) fn has_capacity(&self) -> bool {
        self.0.has_capacity()
    }

    /// Waits until another message can be queued; the caller limits the wait.
    pub(super) async fn wait_for_capacity(&self) {
        loop {
            let freed = self.0.capacity_freed.notified();
            if self.has_capacity() {
                return;
            }
            freed.await;
        }
    }

    /// Queues the message that `write` produces, without its line end.
    pub(super) fn send(
        &self,
        message_kind: MessageKind,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), RequestError> {
        let mut body = Vec::new();
        write(&mut body).map_err(|error| {
            RequestError::Protocol(ProtocolError::Serialization(error.to_string().into()))
        })?;
        body.truncate(body.trim_ascii_end().len());
        if body.len() > self.0.limit {
            return Err(RequestError::TooLarge { bytes: body.len(), limit: self.0.limit });
        }
        let mut queue = self.0.queue();
        if let Some(reason) = &queue.unavailable_reason {
            return Err(RequestError::Unavailable { reason: reason.clone(), sent: false });
        }
        self.0.bytes.fetch_add(body.len(), Ordering::Relaxed);
        self.0.message_count.fetch_add(1, Ordering::Relaxed);
        let permit = QueuePermit(self.0.clone(), body.len());
        queue.commands.push_back(OutboundCommand::Send(OutboundMessage {
            kind: message_kind,
            body: body.into(),
            permit,
        }));
        drop(queue);
        self.0.work.notify_one();
        Ok(())
    }

    /// Abandons a request. A request that is still queued is not sent.
    pub(super) fn forget(&self, id: u64, notify: bool) {
        let mut queue = self.0.queue();
        if let Some(index) = queue.commands.iter().position(|command| command.is_request(id)) {
            let unsent = queue.commands.remove(index);
            drop(queue);
            drop(unsent);
        } else if queue.unavailable_reason.is_none() {
            queue.commands.push_back(OutboundCommand::Forget { id, notify_server: notify });
            drop(queue);
            self.0.work.notify_one();
        }
    }

    /// Rejects all further messages, drops the queue and signals the transport to end.
    pub(super) fn close(&self, reason: UnavailableReason) {
        let mut queue = self.0.queue();
        queue.unavailable_reason.get_or_insert(reason);
        let unsent = std::mem::take(&mut queue.commands);
        drop(queue);
        drop(unsent);
        self.0.work.notify_one();
        self.0.capacity_freed.notify_waiters();
        self.0.closed.notify_waiters();
    }
}

impl OutboundReceiver {
    /// Returns the next command; `None` after the session is closed. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<OutboundCommand> {
        loop {
            let work = self.0.work.notified();
            {
                let mut queue = self.0.queue();
                if let Some(command) = queue.commands.pop_front() {
                    return Some(command);
                }
                if queue.unavailable_reason.is_some() {
                    return None;
                }
            }
            work.await;
        }
    }

    /// Waits until the session is closed. Cancel-safe.
    pub(crate) async fn closed(&self) {
        loop {
            let ended = self.0.closed.notified();
            if self.0.queue().unavailable_reason.is_some() {
                return;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
mod tests;
