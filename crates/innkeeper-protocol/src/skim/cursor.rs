//! Cursor over valid JSON text.

use memchr::memchr;

use super::brackets::container_end;

/// A position in JSON text. A step that does not find the expected token returns `false` or `None`
/// and leaves the cursor at an unspecified position.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

/// A member of an object, with its byte positions in the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MemberSpan<'a> {
    /// The raw key without quotes.
    pub(crate) key: &'a str,
    /// The position of the key's first quote.
    pub(crate) start: usize,
    pub(crate) value_start: usize,
    /// The position after the value.
    pub(crate) end: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns the next byte that is not white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Enters a container that starts with `bracket`.
    pub(crate) fn enter(&mut self, bracket: u8) -> bool {
        self.eat(bracket)
    }

    /// Consumes a key and its colon and returns the key. At the end of the object, consumes the
    /// bracket and returns `None`.
    pub(crate) fn next_key(&mut self) -> Option<&'a str> {
        self.eat(b',');
        if self.peek() != Some(b'"') {
            self.eat(b'}');
            return None;
        }
        let key = self.next_string()?;
        self.eat(b':').then_some(key)
    }

    /// Returns the position of the next byte.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// Consumes one member and returns its positions. Returns `None` at the end of the object.
    pub(crate) fn next_member(&mut self) -> Option<MemberSpan<'a>> {
        self.eat(b',');
        if self.peek() != Some(b'"') {
            return None;
        }
        let start = self.at;
        let key = self.next_key()?;
        self.peek();
        let value_start = self.at;
        self.next_value()?;
        Some(MemberSpan { key, start, value_start, end: self.at })
    }

    /// Whether another element follows. At the end of the array, consumes the bracket and returns
    /// `false`.
    pub(crate) fn next_element(&mut self) -> bool {
        self.eat(b',');
        !self.eat(b']') && self.peek().is_some()
    }

    /// Consumes one value and returns its text.
    pub(crate) fn next_value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.next_string()?;
            }
            b'{' | b'[' => self.at += container_end(&self.text.as_bytes()[self.at..])?,
            b',' | b':' | b'}' | b']' => return None,
            _ => self.skip_scalar(),
        }
        self.text.get(start..self.at)
    }

    /// Consumes a string and returns the text between its quotes.
    fn next_string(&mut self) -> Option<&'a str> {
        let start = self.at + 1;
        let end = string_end(self.text.as_bytes(), start)?;
        self.at = end + 1;
        self.text.get(start..end)
    }

    fn skip_scalar(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        self.at += rest
            .iter()
            .position(|byte| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t'))
            .unwrap_or(rest.len());
    }

    fn eat(&mut self, byte: u8) -> bool {
        let matched = self.peek() == Some(byte);
        if matched {
            self.at += 1;
        }
        matched
    }
}

/// Returns the position of the closing quote of the string whose contents start at `start`.
///
/// The function searches for quotes only: a quote is escaped if an odd number of backslashes
/// precedes it, and each backslash is counted for one quote only.
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut from = start;
    loop {
        let quote = from + find_quote(bytes.get(from..)?)?;
        let backslashes =
            bytes[from..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes.is_multiple_of(2) {
            return Some(quote);
        }
        from = quote + 1;
    }
}

/// Returns the position of the first quote. Keys and most values are short, and for short strings
/// two word comparisons are faster than the start of a vector search.
fn find_quote(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const WORDS: usize = 2;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let differs = u64::from_le_bytes(*word) ^ QUOTES;
        // Only the lowest marked byte is certainly zero, and this function needs only that byte.
        let zero = differs.wrapping_sub(ONES) & !differs & HIGH;
        if zero != 0 {
            return Some(index * 8 + zero.trailing_zeros() as usize / 8);
        }
    }
    memchr(b'"', bytes)
}
