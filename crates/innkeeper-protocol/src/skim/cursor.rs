//! A place in JSON text that is known to be valid, and the steps from there.

use memchr::memchr;

use super::brackets::container_end;

/// A place in JSON text. Every step that finds something else than it expects says so and leaves
/// the cursor wherever it stopped.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Cursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    /// The next byte that is not white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.text.as_bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Steps into a container that starts with `bracket`.
    pub(crate) fn enter(&mut self, bracket: u8) -> bool {
        self.eat(bracket)
    }

    /// Steps over a key and its colon; `None` at the end of the object, which is stepped over.
    pub(crate) fn next_key(&mut self) -> Option<&'a str> {
        self.eat(b',');
        if self.peek() != Some(b'"') {
            self.eat(b'}');
            return None;
        }
        let key = self.string()?;
        self.eat(b':').then_some(key)
    }

    /// Whether the cursor stands before another element; at the end of the array, which is stepped
    /// over, it does not.
    pub(crate) fn next_element(&mut self) -> bool {
        self.eat(b',');
        !self.eat(b']') && self.peek().is_some()
    }

    /// Steps over one value and returns its text.
    pub(crate) fn value(&mut self) -> Option<&'a str> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => {
                self.string()?;
            }
            b'{' | b'[' => self.at += container_end(&self.text.as_bytes()[self.at..])?,
            b',' | b':' | b'}' | b']' => return None,
            _ => self.scalar(),
        }
        self.text.get(start..self.at)
    }

    /// Steps over a string and returns what is between its quotes.
    fn string(&mut self) -> Option<&'a str> {
        let start = self.at + 1;
        let end = string_end(self.text.as_bytes(), start)?;
        self.at = end + 1;
        self.text.get(start..end)
    }

    fn scalar(&mut self) {
        let rest = &self.text.as_bytes()[self.at..];
        let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}' | b' ' | b'\n' | b'\r' | b'\t');
        self.at += rest.iter().position(ends).unwrap_or(rest.len());
    }

    fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        if found {
            self.at += 1;
        }
        found
    }
}

/// Where the string that starts behind the quote at `start - 1` has its closing quote.
///
/// Only quotes are searched for: a quote is escaped if an odd number of backslashes stands before
/// it, and each backslash is counted for one quote only.
pub(super) fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut from = start;
    loop {
        let quote = from + quote(bytes.get(from..)?)?;
        let backslashes =
            bytes[from..quote].iter().rev().take_while(|byte| **byte == b'\\').count();
        if backslashes.is_multiple_of(2) {
            return Some(quote);
        }
        from = quote + 1;
    }
}

/// The first quote. Keys and most values are short, and then starting a vector search costs more
/// than looking at two words.
fn quote(bytes: &[u8]) -> Option<usize> {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = u64::from_le_bytes([0x80; 8]);
    const QUOTES: u64 = u64::from_le_bytes([b'"'; 8]);
    const WORDS: usize = 2;
    let (words, _) = bytes.as_chunks::<8>();
    for (index, word) in words.iter().take(WORDS).enumerate() {
        let differs = u64::from_le_bytes(*word) ^ QUOTES;
        // Of the bytes that are zero, the lowest is marked for certain, which is the one wanted.
        let zero = differs.wrapping_sub(ONES) & !differs & HIGH;
        if zero != 0 {
            return Some(index * 8 + zero.trailing_zeros() as usize / 8);
        }
    }
    memchr(b'"', bytes)
}
