//! Cursor over JSON text that checks the syntax: each byte is read once.

use crate::json_string::plain_len;

/// A position in JSON text. A step fails at the first byte that RFC 8259 does not permit there; the
/// position is then unspecified. The cursor accepts exactly the values that `serde_json` accepts
/// as raw values.
#[derive(Clone, Debug)]
pub(crate) struct CheckedCursor<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> CheckedCursor<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        Self { text, at: 0 }
    }

    fn bytes(&self) -> &'a [u8] {
        self.text.as_bytes()
    }

    /// Returns the next byte that is not white space.
    pub(crate) fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes().get(self.at) {
                Some(b' ' | b'\n' | b'\r' | b'\t') => self.at += 1,
                other => return other.copied(),
            }
        }
    }

    /// Consumes this byte if it is the next one.
    pub(crate) fn eat(&mut self, byte: u8) -> bool {
        let found = self.peek() == Some(byte);
        self.at += usize::from(found);
        found
    }

    /// Consumes a key with its colon, and returns the text between the quotes.
    pub(crate) fn key(&mut self) -> Option<&'a str> {
        if self.peek() != Some(b'"') {
            return None;
        }
        let start = self.at + 1;
        self.skip_string()?;
        let key = self.text.get(start..self.at - 1);
        if self.eat(b':') { key } else { None }
    }

    /// Consumes a value with at most this many nested containers, and returns its text.
    pub(crate) fn value(&mut self, max_depth: usize) -> Option<&'a str> {
        self.peek();
        let start = self.at;
        self.skip_value(max_depth)?;
        self.text.get(start..self.at)
    }

    fn skip_value(&mut self, max_depth: usize) -> Option<()> {
        debug_assert!(max_depth <= u128::BITS as usize, "one bit for each container");
        // The open containers from the innermost one, in the lowest bit: 1 for an object.
        let mut open = 0_u128;
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                bracket @ (b'{' | b'[') => {
                    depth += 1;
                    if depth > max_depth {
                        return None;
                    }
                    self.at += 1;
                    let is_object = bracket == b'{';
                    open = open << 1 | u128::from(is_object);
                    // The closing bracket is two bytes after the opening one in ASCII.
                    if self.peek()? != bracket + 2 {
                        if is_object {
                            self.key()?;
                        }
                        continue;
                    }
                }
                b't' => self.skip_literal(b"true")?,
                b'f' => self.skip_literal(b"false")?,
                b'n' => self.skip_literal(b"null")?,
                _ => self.skip_number()?,
            }
            loop {
                if depth == 0 {
                    return Some(());
                }
                let is_object = open & 1 == 1;
                match self.peek()? {
                    b',' => {
                        self.at += 1;
                        if is_object {
                            self.key()?;
                        }
                        break;
                    }
                    b'}' if is_object => {}
                    b']' if !is_object => {}
                    _ => return None,
                }
                self.at += 1;
                depth -= 1;
                open >>= 1;
            }
        }
    }

    fn skip_literal(&mut self, literal: &[u8]) -> Option<()> {
        let found = self.bytes()[self.at..].starts_with(literal);
        self.at += literal.len();
        found.then_some(())
    }

    fn skip_number(&mut self) -> Option<()> {
        self.at += usize::from(self.byte() == Some(b'-'));
        match self.byte()? {
            b'0' => self.at += 1,
            b'1'..=b'9' => self.skip_digits()?,
            _ => return None,
        }
        if self.byte() == Some(b'.') {
            self.at += 1;
            self.skip_digits()?;
        }
        if let Some(b'e' | b'E') = self.byte() {
            self.at += 1;
            self.at += usize::from(matches!(self.byte(), Some(b'+' | b'-')));
            self.skip_digits()?;
        }
        Some(())
    }

    /// Consumes at least one digit.
    fn skip_digits(&mut self) -> Option<()> {
        let start = self.at;
        while self.byte().is_some_and(|byte| byte.is_ascii_digit()) {
            self.at += 1;
        }
        (self.at > start).then_some(())
    }

    fn byte(&self) -> Option<u8> {
        self.bytes().get(self.at).copied()
    }

    /// Consumes a string; the next byte is its quote.
    fn skip_string(&mut self) -> Option<()> {
        self.at += 1;
        loop {
            self.at += plain_len(&self.bytes()[self.at..]);
            match self.byte()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.skip_escape()?,
                _ => return None,
            }
        }
    }

    fn skip_escape(&mut self) -> Option<()> {
        match self.bytes().get(self.at + 1)? {
            b'"' | b'\\' | b'/' | b'b' | b'f' | b'n' | b'r' | b't' => self.at += 2,
            b'u' => {
                let digits = self.bytes().get(self.at + 2..self.at + 6)?;
                if !digits.iter().all(u8::is_ascii_hexdigit) {
                    return None;
                }
                self.at += 6;
            }
            _ => return None,
        }
        Some(())
    }
}

#[cfg(test)]
mod tests;
