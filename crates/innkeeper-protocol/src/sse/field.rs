//! The fields of an event, and the room their names and values get.

/// Room for a field's name: one byte more than the longest that means anything.
pub(super) const KEY_LIMIT: usize = 6;

/// A field that means something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Data,
    Event,
    Id,
    Retry,
}

impl Field {
    /// By its name, which is told apart by case.
    pub(super) fn of(name: &[u8]) -> Option<Self> {
        match name {
            b"data" => Some(Self::Data),
            b"event" => Some(Self::Event),
            b"id" => Some(Self::Id),
            b"retry" => Some(Self::Retry),
            _ => None,
        }
    }
}

/// Bytes that come in pieces, up to `LIMIT` of them.
#[derive(Debug, Default)]
pub(super) struct Bounded<const LIMIT: usize> {
    bytes: Vec<u8>,
    crossed: bool,
}

impl<const LIMIT: usize> Bounded<LIMIT> {
    pub(super) fn extend(&mut self, part: &[u8]) {
        self.crossed |= part.len() > LIMIT - self.bytes.len();
        if !self.crossed {
            self.bytes.extend_from_slice(part);
        }
    }

    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.crossed = false;
    }

    /// Whether nothing has come.
    pub(super) fn is_empty(&self) -> bool {
        self.bytes.is_empty() && !self.crossed
    }

    /// All that came, unless it was too much.
    pub(super) fn get(&self) -> Option<&[u8]> {
        (!self.crossed).then_some(&self.bytes[..])
    }
}
