//! Bytes that may be cut inside a letter.

use super::{Interceptor, Sink};

/// What stands for bytes that are no UTF-8.
const REPLACEMENT: &str = "\u{fffd}";

impl Interceptor {
    /// As [`Interceptor::push`], for bytes cut anywhere, inside a letter too. What is no UTF-8 at
    /// all becomes U+FFFD.
    pub fn push_bytes(&mut self, bytes: &[u8], sink: &mut Sink<'_>) {
        let joined;
        let mut rest = bytes;
        if !self.letter.is_empty() {
            joined = [std::mem::take(&mut self.letter).as_slice(), bytes].concat();
            rest = &joined;
        }
        let mut read = 0;
        for chunk in rest.utf8_chunks() {
            read += chunk.valid().len() + chunk.invalid().len();
            if !chunk.valid().is_empty() {
                self.push(chunk.valid(), sink);
            }
            if read == rest.len() && begins_a_letter(chunk.invalid()) {
                self.letter = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.push(REPLACEMENT, sink);
            }
        }
    }

    /// The stream ended inside a letter.
    pub(super) fn end_of_bytes(&mut self, sink: &mut Sink<'_>) {
        if !std::mem::take(&mut self.letter).is_empty() {
            self.push(REPLACEMENT, sink);
        }
    }
}

/// Whether these bytes are the beginning of one letter, so that more of them may follow.
fn begins_a_letter(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) | None => 0,
    };
    bytes.len() < length
}
