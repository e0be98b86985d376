//! Recovery of the id from a message that is not valid JSON.

use super::cursor::string_end;
use crate::id::RequestId;
use crate::text::key_is;

/// Finds the id of a message that is not valid JSON: truncated, not UTF-8, nested too deeply, or
/// preceded by NUL bytes.
///
/// Only the member `id` of the outermost object counts, and only if the line starts with that
/// object (after white space, NULs and a byte order mark). A log line that quotes a message and an
/// id inside a result are therefore ignored. Two different ids give `None`. The second value is
/// whether the outermost object has a `result` or an `error` and no `method`.
pub fn recover_top_level_id(bytes: &[u8]) -> (Option<RequestId>, bool) {
    let mut walk = LossyScanner { bytes, at: 0 };
    let mut members = TopLevelMembers::default();
    if walk.enter_object() {
        while let Some((key, value)) = walk.next_member() {
            members.record(key, value);
        }
    }
    let is_response = members.has_outcome && !members.has_method;
    (if members.has_conflicting_ids { None } else { members.id }, is_response)
}

/// The relevant members of the outermost object.
#[derive(Default)]
struct TopLevelMembers {
    id: Option<RequestId>,
    has_conflicting_ids: bool,
    has_outcome: bool,
    has_method: bool,
}

impl TopLevelMembers {
    fn record(&mut self, key: &[u8], value: &[u8]) {
        match top_level_name(key) {
            Some("id") => {
                let id = std::str::from_utf8(value).ok().and_then(RequestId::from_raw);
                self.has_conflicting_ids |= self.id.is_some() && self.id != id;
                self.id = id.or(self.id.take());
            }
            Some("method") => self.has_method = true,
            Some("result" | "error") => self.has_outcome = true,
            Some(_) | None => {}
        }
    }
}

/// Returns the name of a relevant member, also if the key is written with escapes.
fn top_level_name(key: &[u8]) -> Option<&'static str> {
    let key = std::str::from_utf8(key).ok()?;
    ["id", "method", "result", "error"].into_iter().find(|name| key_is(key, name))
}

/// A position in bytes that resemble JSON.
struct LossyScanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> LossyScanner<'a> {
    fn enter_object(&mut self) -> bool {
        let before = self.bytes.iter().take_while(|byte| {
            matches!(byte, 0 | 0xEF | 0xBB | 0xBF) || byte.is_ascii_whitespace()
        });
        self.at = before.count();
        self.eat(b'{')
    }

    /// Returns the next member. If the end of the bytes truncates the value, the returned value is
    /// empty, because a prefix of an id is not the id.
    fn next_member(&mut self) -> Option<(&'a [u8], &'a [u8])> {
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
        let complete = self.skip_value();
        Some((&self.bytes[start..end], if complete { &self.bytes[value..self.at] } else { b"" }))
    }

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
        let matched = self.bytes.get(self.at) == Some(&byte);
        if matched {
            self.at += 1;
        }
        matched
    }
}
