//! What goes to a server that is no pipe: single messages, for the transport to take one by one.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use tokio::sync::Notify;

use crate::error::{Lost, ProtocolFault};
use crate::server::session::Fault;

/// Messages waiting at once, whatever their size: far more than the calls a server may be given.
const MESSAGES: usize = 4096;

/// What a transport is told to do.
#[derive(Debug)]
pub(crate) enum Order {
    /// Carry this to the server.
    Send(Parcel),
    /// Nobody waits for the answer to this request any more.
    Forget {
        /// Which request.
        id: u64,
        /// Whether the server is to be told.
        tell: bool,
    },
}

impl Order {
    fn asks(&self, id: u64) -> bool {
        matches!(self, Self::Send(Parcel { what: What::Request { id: waits, .. }, .. }) if *waits == id)
    }
}

/// One message, ready to be sent.
#[derive(Debug)]
pub(crate) struct Parcel {
    /// What kind of message it is.
    pub(crate) what: What,
    /// The JSON text.
    pub(crate) body: Bytes,
    weight: Weight,
}

impl Parcel {
    /// What is left once the message is on its way.
    pub(crate) fn take(self) -> (What, Bytes) {
        drop(self.weight);
        (self.what, self.body)
    }
}

/// What a transport has to know of a message without reading it.
#[derive(Debug)]
pub(crate) enum What {
    /// A request.
    Request {
        /// Its id.
        id: u64,
        /// Its method.
        method: &'static str,
        /// The tool, prompt or URI it is for, where a header has to name it.
        name: Option<Box<str>>,
        /// Arguments that the server wants to see in headers.
        params: Vec<(String, String)>,
    },
    /// A notification.
    Notification {
        /// Its method.
        method: Box<str>,
    },
    /// An answer to a request of the server.
    Response,
}

#[derive(Debug, Default)]
struct Queue {
    orders: VecDeque<Order>,
    lost: Option<Lost>,
}

#[derive(Debug, Default)]
struct Shared {
    queue: Mutex<Queue>,
    limit: usize,
    bytes: AtomicUsize,
    count: AtomicUsize,
    work: Notify,
    room: Notify,
    ended: Notify,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn has_room(&self) -> bool {
        self.bytes.load(Ordering::Relaxed) < self.limit
            && self.count.load(Ordering::Relaxed) < MESSAGES
    }
}

/// The session's end.
#[derive(Debug)]
pub(super) struct Messages(Arc<Shared>);

/// The transport's end.
#[derive(Debug)]
pub(crate) struct Orders(Arc<Shared>);

/// Counts a message until it is on its way.
#[derive(Debug)]
struct Weight(Arc<Shared>, usize);

impl Drop for Weight {
    fn drop(&mut self) {
        self.0.bytes.fetch_sub(self.1, Ordering::Relaxed);
        self.0.count.fetch_sub(1, Ordering::Relaxed);
        self.0.room.notify_waiters();
    }
}

/// A queue for `limit` bytes.
pub(super) fn queue(limit: usize) -> (Messages, Orders) {
    let shared = Arc::new(Shared { limit, ..Shared::default() });
    (Messages(shared.clone()), Orders(shared))
}

impl Messages {
    pub(super) fn has_room(&self) -> bool {
        self.0.has_room()
    }

    /// Resolves when another message may be queued; the caller bounds the wait.
    pub(super) async fn room(&self) {
        loop {
            let freed = self.0.room.notified();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }

    /// Queues a message that `write` makes, without its line end.
    pub(super) fn send(
        &self,
        what: What,
        write: impl FnOnce(&mut Vec<u8>) -> Result<(), serde_json::Error>,
    ) -> Result<(), Fault> {
        let unwritable = |why: String| Fault::Protocol(ProtocolFault::Unwritable(why.into()));
        let mut body = Vec::new();
        write(&mut body).map_err(|error| unwritable(error.to_string()))?;
        body.truncate(body.trim_ascii_end().len());
        if body.len() > self.0.limit {
            return Err(unwritable(format!("it is longer than {} bytes", self.0.limit)));
        }
        let mut queue = self.0.queue();
        if let Some(reason) = &queue.lost {
            return Err(Fault::Lost { reason: reason.clone(), sent: false });
        }
        self.0.bytes.fetch_add(body.len(), Ordering::Relaxed);
        self.0.count.fetch_add(1, Ordering::Relaxed);
        let weight = Weight(self.0.clone(), body.len());
        queue.orders.push_back(Order::Send(Parcel { what, body: body.into(), weight }));
        drop(queue);
        self.0.work.notify_one();
        Ok(())
    }

    /// Says that nobody waits for an answer any more. A request that is still queued is not sent.
    pub(super) fn forget(&self, id: u64, tell: bool) {
        let mut queue = self.0.queue();
        if let Some(place) = queue.orders.iter().position(|order| order.asks(id)) {
            let unsent = queue.orders.remove(place);
            drop(queue);
            drop(unsent);
        } else if queue.lost.is_none() {
            queue.orders.push_back(Order::Forget { id, tell });
            drop(queue);
            self.0.work.notify_one();
        }
    }

    /// Refuses everything from now on; what is queued is dropped and the transport told to end.
    pub(super) fn close(&self, reason: Lost) {
        let mut queue = self.0.queue();
        queue.lost.get_or_insert(reason);
        let unsent = std::mem::take(&mut queue.orders);
        drop(queue);
        drop(unsent);
        self.0.work.notify_one();
        self.0.room.notify_waiters();
        self.0.ended.notify_waiters();
    }
}

impl Orders {
    /// The next order; `None` once the session is closed. Cancel-safe.
    pub(crate) async fn next(&self) -> Option<Order> {
        loop {
            let work = self.0.work.notified();
            {
                let mut queue = self.0.queue();
                if let Some(order) = queue.orders.pop_front() {
                    return Some(order);
                }
                if queue.lost.is_some() {
                    return None;
                }
            }
            work.await;
        }
    }

    /// Resolves once the session is closed. Cancel-safe.
    pub(crate) async fn closed(&self) {
        loop {
            let ended = self.0.ended.notified();
            if self.0.queue().lost.is_some() {
                return;
            }
            ended.await;
        }
    }
}

#[cfg(test)]
mod tests;
