//! A stream of messages to a client of the legacy era over HTTP, with a log for resumption.
//!
//! The messages that the client has not received yet and the last received messages stay in the
//! log. A client that lost its connection continues after the last event that it received
//! (`Last-Event-ID`).

mod stored;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use bytes::Bytes;
use tokio::sync::{Notify, mpsc};

use crate::quota::Reservation;
use crate::replicas::{LogEntry, Ownership};
pub(crate) use event_reader::EventReader;

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

mod event_reader;
#[cfg(test)]
mod tests;
