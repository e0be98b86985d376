//! Fields of an event, with bounded buffers for names and values.

/// Maximum stored length of a field name: one byte more than the longest known name.
pub(super) const MAX_FIELD_NAME_BYTES: usize = 6;

/// A known field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Data,
    Event,
    Id,
    Retry,
}

impl Field {
    /// Parses a field name. Names are case-sensitive.
    pub(super) fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Data),
            b"event" => Some(Self::Event),
            b"id" => Some(Self::Id),
            b"retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

/// A buffer that stores at most `LIMIT` bytes, received in chunks.
#[derive(Debug, Default)]
pub(super) struct BoundedBuffer<const LIMIT: usize> {
    bytes: Vec<u8>,
    overflowed: bool,
}

impl<const LIMIT: usize> BoundedBuffer<LIMIT> {
    pub(super) fn extend(&mut self, chunk: &[u8]) {
        self.overflowed |= chunk.len() > LIMIT - self.bytes.len();
        if !self.overflowed {
            self.bytes.extend_from_slice(chunk);
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.overflowed = false;
    }

    /// Whether no byte has been received.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.overflowed
    }

    /// Returns the received bytes, unless they exceed the limit.
    pub(super) fn get(&self) -> Option<&[u8]> {
        (!self.overflowed).then_some(&self.bytes[..])
    }
}
