//! The events of a stream that other replicas can read.

use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::{
    EventLog, EventStream, MAX_STORED_BYTES, StoredPart, StreamEvent, StreamStore, UnstoredPart,
};
use crate::replicas::{EntryKind, LogEntry, StreamLog};

impl EventStream {
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
        let _ = self.store.set((store, Arc::downgrade(self)));
        self.enqueue(&mut self.log());
    }

    pub(crate) fn store(&self) -> Option<&StreamStore> {
        self.store.get().map(|(store, _)| store)
    }

    /// Asks for the storing of what is not stored.
    pub(super) fn enqueue(&self, log: &mut EventLog) {
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
        let position = last;
        let closed = log.closed;
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
}
