//! A stream of messages to a client of the legacy era over HTTP, with a log for resumption.
//!
//! The messages that the client has not received yet and the last received messages stay in the
//! log. A client that lost its connection continues after the last event that it received
//! (`Last-Event-ID`).

use std::any::Any;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::quota::Reservation;
use crate::replicas::{EntryKind, LogEntry, Ownership, StreamLog};

/// Maximum number of messages in the log of a stream.
pub(crate) const MAX_LOGGED_EVENTS: usize = 256;

/// Maximum total size in bytes of the messages in the log of a stream, apart from the newest one.
pub(crate) const MAX_LOGGED_BYTES: usize = 1 << 20;

/// A message with its position in the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StreamEvent {
    /// The position, from 1.
    pub(crate) position: u64,
    pub(crate) message: Bytes,
}

#[derive(Debug, Default)]
struct EventLog {
    events: VecDeque<StreamEvent>,
    bytes: usize,
    /// The position of the newest message; 0 before the first.
    last_position: u64,
    /// The position of the newest message that a reader took.
    read_position: u64,
    closed: bool,
    /// Number of the current reader; an older reader ends.
    reader: u64,
    /// The memory of a closed stream.
    memory: Option<Reservation>,
    stored: StoredPart,
}

/// What the store of the replicas has of a stream. Readers wait for the rest.
#[derive(Clone, Copy, Debug, Default)]
struct StoredPart {
    /// Whether the store knows the stream, or did not respond.
    is_known: bool,
    /// Whether the store has the ids of the requests.
    has_requests: bool,
    /// Whether the store did not take a part, so that no other replica can continue the stream.
    is_incomplete: bool,
    position: u64,
    closed: bool,
    /// Whether a task stores the messages, or is about to.
    is_queued: bool,
}

/// The store of the messages of a stream for other replicas.
#[derive(Debug)]
pub(crate) struct StreamStore {
    pub(crate) ownership: Arc<Ownership>,
    /// The id of the session.
    pub(crate) session: Arc<str>,
    /// The ids of the requests of the stream, as JSON.
    pub(crate) requests: Option<Arc<str>>,
    /// Takes the streams with messages to store; each stream at most once.
    pub(crate) queue: mpsc::UnboundedSender<Arc<EventStream>>,
}

/// The part of a stream that is not stored.
#[derive(Debug)]
pub(crate) struct UnstoredPart {
    pub(crate) entries: Vec<LogEntry>,
    pub(crate) is_new: bool,
    /// The position of the oldest message to keep.
    pub(crate) oldest: u64,
    position: u64,
    closed: bool,
}

/// Maximum size in bytes of a message in the store of the replicas.
const MAX_STORED_BYTES: usize = 1 << 20;

impl EventLog {
    /// Returns whether the oldest message has no place beside the newest.
    fn exceeds_limits(&self) -> bool {
        let (Some(oldest), Some(newest)) = (self.events.front(), self.events.back()) else {
            return false;
        };
        // A reader that misses a message ends, so a large response must not remove the progress
        // before it.
        let factor = if oldest.position > self.read_position { 2 } else { 1 };
        let bytes = self.bytes - newest.message.len();
        self.events.len() > 1
            && (self.events.len() > factor * MAX_LOGGED_EVENTS || bytes > factor * MAX_LOGGED_BYTES)
    }
}

/// A stream of messages with one reader at a time.
#[derive(Debug)]
pub(crate) struct EventStream {
    /// The number of the stream within its session.
    pub(crate) number: u64,
    log: Mutex<EventLog>,
    changed: Notify,
    store: OnceLock<(StreamStore, Weak<Self>)>,
}

impl EventStream {
    pub(crate) fn new(number: u64) -> Self {
        Self { number, log: Mutex::default(), changed: Notify::new(), store: OnceLock::new() }
    }

    /// Creates a stream with the messages that another replica stored. The messages before one that
    /// is too long for the store are lost.
    pub(crate) fn restored(number: u64, stored: StreamLog) -> Self {
        let mut log = EventLog::default();
        for LogEntry { position, kind, message } in stored.entries {
            let is_next = position == log.last_position + u64::from(kind != EntryKind::Closed);
            if !is_next {
                // The store did not take the messages before.
                log.events.clear();
                log.bytes = 0;
            }
            log.last_position = position;
            match kind {
                EntryKind::Message => {
                    log.bytes += message.len();
                    log.events.push_back(StreamEvent { position, message });
                }
                EntryKind::Omitted => {
                    log.events.clear();
                    log.bytes = 0;
                }
                EntryKind::Closed => log.closed = true,
            }
        }
        log.stored = StoredPart {
            is_known: true,
            has_requests: true,
            position: log.last_position,
            closed: log.closed,
            ..StoredPart::default()
        };
        Self { log: Mutex::new(log), ..Self::new(number) }
    }

    /// Stores the messages from now on, and those that no reader took. A reader gets a message only
    /// when the message is stored, so that no replica misses what a client has.
    pub(crate) fn store_in(self: &Arc<Self>, store: StreamStore) {
        // A stream has one store.
        drop(self.store.set((store, Arc::downgrade(self))));
        self.enqueue(&mut self.log());
    }

    /// Returns the store of the messages.
    pub(crate) fn store(&self) -> Option<&StreamStore> {
        self.store.get().map(|(store, _)| store)
    }

    /// Asks for the storing of what is not stored.
    fn enqueue(&self, log: &mut EventLog) {
        let Some((store, this)) = self.store.get() else { return };
        if log.stored.is_queued {
            return;
        }
        if let Some(this) = this.upgrade() {
            // Without a receiver the gateway has ended.
            log.stored.is_queued = store.queue.send(this).is_ok();
        }
    }

    /// Returns what is not stored; `None` if there is nothing, and the next message asks again.
    pub(crate) fn unstored(&self) -> Option<UnstoredPart> {
        let mut log = self.log();
        let StoredPart { is_known, has_requests, position, closed, .. } = log.stored;
        if is_known && position == log.last_position && closed == log.closed {
            log.stored.is_queued = false;
            return None;
        }
        let newer = log.events.iter().filter(|event| event.position > position);
        let mut entries: Vec<_> = newer
            .map(|StreamEvent { position, message }| {
                let kind = match message.len() <= MAX_STORED_BYTES {
                    true => EntryKind::Message,
                    false => EntryKind::Omitted,
                };
                LogEntry { position: *position, kind, message: message.clone() }
            })
            .collect();
        let last = log.last_position;
        if log.closed && !closed {
            let kind = EntryKind::Closed;
            entries.push(LogEntry { position: last, kind, message: Bytes::new() });
        }
        let oldest = log.events.front().map_or(last, |event| event.position);
        let (position, closed) = (last, log.closed);
        Some(UnstoredPart { entries, is_new: !has_requests, oldest, position, closed })
    }

    /// Lets readers take what is stored, and also what the store did not take.
    pub(crate) fn mark_stored(&self, part: &UnstoredPart, is_taken: bool) {
        let mut log = self.log();
        log.stored.is_known = true;
        log.stored.has_requests |= is_taken;
        log.stored.is_incomplete |= !is_taken;
        log.stored.position = part.position;
        log.stored.closed = part.closed;
        drop(log);
        self.changed.notify_waiters();
    }

    /// Waits until the store knows the stream, if it has a store.
    pub(crate) async fn wait_known(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if self.store.get().is_none() || self.log().stored.is_known {
                return;
            }
            changed.await;
        }
    }

    /// Waits until a closed stream has ended in its store, if it has one. Returns whether the store
    /// has all of the stream.
    pub(crate) async fn wait_stored(&self) -> bool {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            let stored = self.log().stored;
            if self.store.get().is_none() || stored.closed {
                return !stored.is_incomplete;
            }
            changed.await;
        }
    }

    /// Returns the position of the last message that a reader may take, and whether it is the end.
    fn readable(&self, log: &EventLog) -> (u64, bool) {
        match self.store.get() {
            Some(_) => (log.stored.position, log.stored.closed),
            None => (log.last_position, log.closed),
        }
    }

    fn log(&self) -> MutexGuard<'_, EventLog> {
        self.log.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a message that must arrive. Removes the oldest messages that exceed the limits; messages
    /// that no reader took have twice the limits. Returns whether the stream is open.
    pub(crate) fn push(&self, message: Bytes) -> bool {
        self.push_if(message, |_| true)
    }

    /// Adds a message unless the messages without a reader exceed the limits.
    pub(crate) fn push_droppable(&self, message: Bytes) -> bool {
        self.push_if(message, |log| {
            let unread = log.last_position - log.read_position;
            // The unread messages are the newest ones.
            let unread = usize::try_from(unread).unwrap_or(usize::MAX);
            let bytes: usize =
                log.events.iter().rev().take(unread).map(|event| event.message.len()).sum();
            unread < MAX_LOGGED_EVENTS && bytes < MAX_LOGGED_BYTES
        })
    }

    fn push_if(&self, message: Bytes, accepts: impl FnOnce(&EventLog) -> bool) -> bool {
        let mut log = self.log();
        if log.closed || !accepts(&log) {
            return false;
        }
        log.last_position += 1;
        log.bytes += message.len();
        let position = log.last_position;
        log.events.push_back(StreamEvent { position, message });
        while log.exceeds_limits() {
            let Some(oldest) = log.events.pop_front() else { break };
            log.bytes -= oldest.message.len();
        }
        self.enqueue(&mut log);
        drop(log);
        self.changed.notify_waiters();
        true
    }

    /// Ends the stream after the messages in the log.
    pub(crate) fn close(&self) {
        let mut log = self.log();
        if log.closed {
            return;
        }
        log.closed = true;
        self.enqueue(&mut log);
        drop(log);
        self.changed.notify_waiters();
    }

    /// Returns whether the stream is closed.
    pub(crate) fn is_closed(&self) -> bool {
        self.log().closed
    }

    /// Returns the total size in bytes of the messages in the log.
    pub(crate) fn logged_bytes(&self) -> usize {
        self.log().bytes
    }

    /// Returns whether a reader took every message.
    pub(crate) fn is_read(&self) -> bool {
        let log = self.log();
        log.read_position == log.last_position
    }

    /// Keeps the reservation of the memory of the messages as long as the messages.
    pub(crate) fn keep_memory(&self, memory: Reservation) {
        self.log().memory = Some(memory);
    }

    /// Removes all messages. A reader that has not read them ends, and nobody can resume the stream.
    pub(crate) fn discard(&self) {
        let mut log = self.log();
        log.events.clear();
        log.bytes = 0;
        log.memory = None;
        drop(log);
        self.changed.notify_waiters();
    }

    /// Returns whether a message was added.
    pub(crate) fn has_messages(&self) -> bool {
        self.log().last_position > 0
    }

    /// Waits until the stream has a message or is closed.
    pub(crate) async fn wait_first(&self) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let log = self.log();
                if log.last_position > 0 || log.closed {
                    return;
                }
            }
            changed.await;
        }
    }

    /// Starts to read after a position. The previous reader ends. A reader that missed more messages
    /// than the log has gets those of the log, so that it does not miss the response. Returns `None` for
    /// a position that the stream has not reached, and if the log has no message any more.
    pub(crate) fn read_after(self: &Arc<Self>, position: u64) -> Option<EventReader> {
        let log = self.log();
        if position > log.last_position {
            return None;
        }
        let start = match log.events.front() {
            Some(oldest) => position.max(oldest.position - 1),
            None if position == log.last_position => position,
            None => return None,
        };
        if start > position {
            let missed = start - position;
            tracing::info!(
                missed,
                "client resumes an event stream that no longer has all messages"
            );
        }
        Some(self.start_reader(log, start))
    }

    /// Returns all messages of the log, which counts as reading them. The previous reader ends.
    pub(crate) fn read_all(&self) -> Vec<StreamEvent> {
        let mut log = self.log();
        log.reader += 1;
        log.read_position = log.last_position;
        let events = log.events.iter().cloned().collect();
        drop(log);
        self.changed.notify_waiters();
        events
    }

    /// Starts to read the messages that no reader took.
    pub(crate) fn read_latest(self: &Arc<Self>) -> EventReader {
        let log = self.log();
        let oldest = log.events.front().map_or(log.last_position + 1, |event| event.position);
        let position = log.read_position.max(oldest - 1);
        self.start_reader(log, position)
    }

    fn start_reader(
        self: &Arc<Self>,
        mut log: MutexGuard<'_, EventLog>,
        position: u64,
    ) -> EventReader {
        log.reader += 1;
        let number = log.reader;
        drop(log);
        self.changed.notify_waiters();
        EventReader { stream: self.clone(), position, number, _activity: None }
    }
}

/// The reader of a stream.
#[derive(Debug)]
pub(crate) struct EventReader {
    stream: Arc<EventStream>,
    position: u64,
    number: u64,
    /// Dropped with the reader.
    _activity: Option<Box<dyn Any + Send + Sync>>,
}

impl EventReader {
    /// Drops a value at the end of the reader.
    pub(crate) fn with_activity(self, activity: impl Any + Send + Sync) -> Self {
        Self { _activity: Some(Box::new(activity)), ..self }
    }

    /// Returns the next message. Returns `None` at the end of the stream, if another reader took
    /// over, and if the reader was so slow that the log lost a message. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<StreamEvent> {
        loop {
            let changed = self.stream.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            {
                let mut log = self.stream.log();
                if log.reader != self.number {
                    return None;
                }
                let (last_readable, is_closed) = self.stream.readable(&log);
                if last_readable > self.position {
                    let ahead = log.last_position - self.position;
                    let index = usize::try_from(ahead)
                        .ok()
                        .and_then(|ahead| log.events.len().checked_sub(ahead))?;
                    let event = log.events.get(index)?.clone();
                    self.position = event.position;
                    log.read_position = log.read_position.max(event.position);
                    return Some(event);
                }
                if is_closed {
                    return None;
                }
            }
            changed.await;
        }
    }

    /// Waits until the store of the replicas knows the stream, if there is one.
    pub(crate) async fn wait_known(&self) {
        self.stream.wait_known().await;
    }

    /// Returns the number of the stream.
    pub(crate) fn stream_number(&self) -> u64 {
        self.stream.number
    }
}

#[cfg(test)]
mod tests;
