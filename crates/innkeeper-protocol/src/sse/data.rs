//! Data of the current event, up to the limit.

use super::{MAX_HEAD_BYTES, RETAINED_CAPACITY};

/// Data lines joined with `\n`.
pub(super) struct EventData {
    bytes: Vec<u8>,
    limit: usize,
    /// Whether the event has a data line.
    present: bool,
    /// Whether the data exceeded the limit; the rest is discarded.
    discarding: bool,
}

impl EventData {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, present: false, discarding: false }
    }

    /// Returns the stored data. For data over the limit, returns its head.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Starts a data line. Returns whether the data now exceeds the limit.
    pub(super) fn start_line(&mut self) -> bool {
        let follows = std::mem::replace(&mut self.present, true);
        follows && self.extend(b"\n")
    }

    /// Appends to the current line. Returns whether the data now exceeds the limit; `true` only
    /// once.
    pub(super) fn extend(&mut self, chunk: &[u8]) -> bool {
        if self.discarding {
            return false;
        }
        let remaining = self.limit - self.bytes.len();
        self.discarding = chunk.len() > remaining;
        if self.discarding {
            self.bytes.extend_from_slice(&chunk[..remaining.min(MAX_HEAD_BYTES)]);
            self.bytes.truncate(MAX_HEAD_BYTES);
        } else {
            self.bytes.extend_from_slice(chunk);
        }
        self.discarding
    }

    /// Whether the data exceeds the limit and the event has not ended.
    pub(super) fn is_discarding(&self) -> bool {
        self.discarding
    }

    /// Ends the event. Returns whether the event is a message.
    pub(super) fn finish(&mut self) -> bool {
        let present = std::mem::take(&mut self.present);
        let discarded = std::mem::take(&mut self.discarding);
        present && !discarded
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Clears the data after the caller has received it.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > RETAINED_CAPACITY {
            self.bytes = Vec::new();
        }
    }
}

impl std::fmt::Debug for EventData {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EventData")
            .field("limit", &self.limit)
            .field("kept", &self.bytes.len())
            .field("discarding", &self.discarding)
            .finish_non_exhaustive()
    }
}
