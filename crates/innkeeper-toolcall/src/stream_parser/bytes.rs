//! Input of bytes that may end inside a character.

use super::{ParseEventSink, ToolCallParser};

/// The replacement for bytes that are not UTF-8.
const REPLACEMENT: &str = "\u{fffd}";

impl ToolCallParser {
    /// Like [`ToolCallParser::push`], for bytes that may end inside a character. Bytes that are not
    /// UTF-8 become U+FFFD.
    pub fn push_bytes(&mut self, bytes: &[u8], sink: &mut ParseEventSink<'_>) {
        let joined;
        let mut rest = bytes;
        if !self.pending.partial_char.is_empty() {
            joined = [std::mem::take(&mut self.pending.partial_char).as_slice(), bytes].concat();
            rest = &joined;
        }
        let mut read = 0;
        for chunk in rest.utf8_chunks() {
            read += chunk.valid().len() + chunk.invalid().len();
            if !chunk.valid().is_empty() {
                self.push(chunk.valid(), sink);
            }
            if read == rest.len() && is_char_prefix(chunk.invalid()) {
                self.pending.partial_char = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.push(REPLACEMENT, sink);
            }
        }
    }

    /// Handles the end of the stream inside a character.
    pub(super) fn flush_partial_char(&mut self, sink: &mut ParseEventSink<'_>) {
        if !std::mem::take(&mut self.pending.partial_char).is_empty() {
            self.push(REPLACEMENT, sink);
        }
    }
}

/// Whether the bytes are the start of one character that more bytes may complete.
fn is_char_prefix(bytes: &[u8]) -> bool {
    let length = match bytes.first() {
        Some(0xc2..=0xdf) => 2,
        Some(0xe0..=0xef) => 3,
        Some(0xf0..=0xf4) => 4,
        Some(_) | None => 0,
    };
    bytes.len() < length
}
