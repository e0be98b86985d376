//! Finding the id of a message that cannot be parsed.

use super::cursor::string_end;
use crate::id::RequestId;

/// Finds the id of a message that is not valid JSON: cut off, not UTF-8, nested too deep, or with
/// NUL bytes before it.
///
/// Only a member `id` of the outermost object counts, and only if the line starts with that object
/// (after white space, NULs and a byte order mark), so that neither a log line that quotes a message
/// nor an id inside a result is taken for one. Two different ids are none. The second value says
/// whether the outermost object has a `result` or an `error` and no `method`.
pub fn top_level_id(bytes: &[u8]) -> (Option<RequestId>, bool) {
    let mut walk = Walk { bytes, at: 0 };
    let mut seen = Seen::default();
    if walk.enter_object() {
        while let Some((key, value)) = walk.member() {
            seen.member(key, value);
        }
    }
    let answers = seen.outcome && !seen.method;
    (if seen.conflict { None } else { seen.id }, answers)
}

/// What the outermost object was seen to have.
#[derive(Default)]
struct Seen {
    id: Option<RequestId>,
    conflict: bool,
    outcome: bool,
    method: bool,
}

impl Seen {
    fn member(&mut self, key: &[u8], value: &[u8]) {
        match key {
            b"id" => {
                let id = std::str::from_utf8(value).ok().and_then(RequestId::from_raw);
                self.conflict |= self.id.is_some() && self.id != id;
                self.id = id.or(self.id.take());
            }
            b"method" => self.method = true,
            b"result" | b"error" => self.outcome = true,
            _ => {}
        }
    }
}

/// A place in bytes that only resemble JSON.
struct Walk<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Walk<'a> {
    fn enter_object(&mut self) -> bool {
        let before =
            |byte: &u8| matches!(byte, 0 | 0xEF | 0xBB | 0xBF) || byte.is_ascii_whitespace();
        self.at = self.bytes.iter().take_while(|byte| before(byte)).count();
        self.eat(b'{')
    }

    /// The next member. Its value may be cut off by the end of the bytes: then it is empty, because
    /// the start of an id is not the id.
    fn member(&mut self) -> Option<(&'a [u8], &'a [u8])> {
        self.eat(b',');
        if !self.eat(b'"') {
            return None;
        }
        let start = self.at;
        let end = string_end(self.bytes, start)?;
        self.at = end + 1;
        if !self.eat(b':') {
            return None;
        }
        self.skip_space();
        let value = self.at;
        let whole = self.skip_value();
        Some((&self.bytes[start..end], if whole { &self.bytes[value..self.at] } else { b"" }))
    }

    /// Steps over a value; whether its end was found.
    fn skip_value(&mut self) -> bool {
        let mut depth = 0_usize;
        while let Some(byte) = self.bytes.get(self.at) {
            match byte {
                b'"' => {
                    let Some(end) = string_end(self.bytes, self.at + 1) else {
                        self.at = self.bytes.len();
                        return false;
                    };
                    self.at = end;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' if depth > 0 => depth -= 1,
                b'}' | b']' | b',' if depth == 0 => return true,
                _ => {}
            }
            self.at += 1;
        }
        false
    }

    fn skip_space(&mut self) {
        let rest = &self.bytes[self.at..];
        self.at += rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    }

    fn eat(&mut self, byte: u8) -> bool {
        self.skip_space();
        let found = self.bytes.get(self.at) == Some(&byte);
        if found {
            self.at += 1;
        }
        found
    }
}
