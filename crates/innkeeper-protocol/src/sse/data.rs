//! The data of the event at hand, up to the limit.

use super::{HEAD_LIMIT, KEEP};

/// Lines of data with `\n` between them.
pub(super) struct Data {
    bytes: Vec<u8>,
    limit: usize,
    /// A line has begun.
    present: bool,
    /// The limit was crossed: the rest is dropped.
    discarding: bool,
}

impl Data {
    pub(super) fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), limit, present: false, discarding: false }
    }

    /// What is kept; of data that crossed the limit, its head.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Begins a line; says whether that crossed the limit.
    pub(super) fn open_line(&mut self) -> bool {
        let follows = std::mem::replace(&mut self.present, true);
        follows && self.extend(b"\n")
    }

    /// Adds to the line; says whether that crossed the limit, once.
    pub(super) fn extend(&mut self, part: &[u8]) -> bool {
        if self.discarding {
            return false;
        }
        let room = self.limit - self.bytes.len();
        self.discarding = part.len() > room;
        if self.discarding {
            self.bytes.extend_from_slice(&part[..room.min(HEAD_LIMIT)]);
            self.bytes.truncate(HEAD_LIMIT);
        } else {
            self.bytes.extend_from_slice(part);
        }
        self.discarding
    }

    /// Whether the limit was crossed and the data goes on.
    pub(super) fn is_discarding(&self) -> bool {
        self.discarding
    }

    /// Ends the event; says whether there is a message in it.
    pub(super) fn end(&mut self) -> bool {
        let present = std::mem::take(&mut self.present);
        let discarded = std::mem::take(&mut self.discarding);
        present && !discarded
    }

    #[cfg(test)]
    pub(super) fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Lets go of what was handed out.
    pub(super) fn forget(&mut self) {
        self.bytes.clear();
        if self.bytes.capacity() > KEEP {
            self.bytes = Vec::new();
        }
    }
}

impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Data")
            .field("limit", &self.limit)
            .field("kept", &self.bytes.len())
            .field("discarding", &self.discarding)
            .finish_non_exhaustive()
    }
}
