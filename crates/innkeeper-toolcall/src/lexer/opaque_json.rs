//! JSON data that must not be interpreted as calls.

use super::json_scanner::{JsonScanner, Token};

/// Maximum number of skipped bytes. An object without an end is skipped up to this length.
const MAX_SKIPPED_BYTES: usize = 1 << 20;

/// The rest of a JSON value, up to its last bracket.
#[derive(Debug)]
pub(crate) struct OpaqueJson {
    scan: JsonScanner,
    skipped_bytes: usize,
}

impl OpaqueJson {
    pub(super) fn new(mut scan: JsonScanner) -> Self {
        scan.set_strict_depth(0);
        scan.set_blank_line_ends();
        Self { scan, skipped_bytes: 0 }
    }

    /// Creates the state after the prefix `text`, if `text` is the start of a value that has not
    /// ended.
    pub(crate) fn from_prefix(text: &str) -> Option<Self> {
        let mut data = Self::new(JsonScanner::new(None));
        let (read, ended) = data.skip(text);
        (read == text.len() && !ended).then_some(data)
    }

    /// Returns how many bytes of the input belong to the value, and whether the value ends there.
    /// Text that is not JSON also ends the value.
    pub(crate) fn skip(&mut self, input: &str) -> (usize, bool) {
        let mut at = 0;
        loop {
            match self.scan.next_token(input, &mut at) {
                Token::NeedMore => {
                    self.skipped_bytes += at;
                    return (at, self.skipped_bytes >= MAX_SKIPPED_BYTES);
                }
                Token::Close { depth: 0 } | Token::Unbalanced => return (at, true),
                Token::Close { .. }
                | Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. }
                | Token::Marker => {}
            }
        }
    }

    /// Returns the maximum number of bytes for one step.
    pub(crate) fn read_limit(&self) -> usize {
        (MAX_SKIPPED_BYTES - self.skipped_bytes).min(4096)
    }
}
