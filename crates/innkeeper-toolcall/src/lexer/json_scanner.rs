//! Incremental tokenizer for the structure of JSON-like text.

use memchr::memchr3;

use super::{LexUpdate, MAX_NAME_BYTES, PrefixMatch, match_prefix};

/// Maximum nesting depth of a call; the deepest known schemas have ten levels.
pub(crate) const MAX_DEPTH: usize = 128;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// The start of an object or array, with the depth inside.
    Open { object: bool, depth: usize },
    /// The end of an object or array, with the depth outside.
    Close { depth: usize },
    /// A key, if the key is short enough to be a known name.
    Key { text: String, depth: usize },
    /// A string value, if the string is short enough to be a tool name.
    Text { text: String, depth: usize },
    /// The start of a number or a literal.
    Scalar { depth: usize },
    /// The closing marker, before the end of the value.
    Marker,
    /// Unbalanced brackets, or too many nested brackets.
    Unbalanced,
    /// The rest of the input is too short for a decision.
    NeedMore,
}

/// The result of a scan of one value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueStatus {
    /// The input ends inside the value.
    NeedMore,
    /// The value ended with its last bracket or with the closing marker.
    Complete,
    /// The text is no longer a value.
    Invalid,
}

/// A scanner that tracks its position in one value. The scanner accepts single quotes, bare words
/// and missing commas, so that it finds the end of repairable JSON.
#[derive(Debug)]
pub(super) struct JsonScanner {
    /// Whether each level is an object (otherwise an array).
    levels: Vec<bool>,
    open_string: Option<OpenString>,
    expects_key: bool,
    in_word: bool,
    /// A marker that ends the call even inside invalid JSON.
    close_marker: Option<&'static str>,
    /// Whether a blank line in a string ends the value. Strings of valid JSON have no blank lines.
    blank_line_ends: bool,
    /// The depth down to which keys must be quoted.
    strict_depth: usize,
}

/// A string whose end has not been found.
#[derive(Debug)]
struct OpenString {
    quote: u8,
    escaped: bool,
    is_key: bool,
    /// Whether the last byte was a line end.
    after_newline: bool,
    text: Vec<u8>,
}

impl JsonScanner {
    pub(super) fn new(close_marker: Option<&'static str>) -> Self {
        Self {
            levels: Vec::new(),
            open_string: None,
            expects_key: false,
            in_word: false,
            close_marker,
            blank_line_ends: false,
            strict_depth: 0,
        }
    }

    /// The number of open objects and arrays.
    pub(super) fn depth(&self) -> usize {
        self.levels.len()
    }

    /// Sets the depth down to which a missing key ends the value at once. For text that may not be
    /// JSON at all.
    pub(super) fn set_strict_depth(&mut self, depth: usize) {
        self.strict_depth = depth;
    }

    /// Ends the value at a blank line in a string. For text that may no longer be JSON.
    pub(super) fn set_blank_line_ends(&mut self) {
        self.blank_line_ends = true;
    }

    /// Scans the rest of a value and reports all of it as arguments.
    pub(super) fn scan_value(
        &mut self,
        input: &str,
        at: &mut usize,
        update: &mut LexUpdate,
    ) -> ValueStatus {
        let from = *at;
        let value = loop {
            match self.next_token(input, at) {
                Token::NeedMore => break ValueStatus::NeedMore,
                Token::Unbalanced => break ValueStatus::Invalid,
                Token::Marker | Token::Close { depth: 0 } => break ValueStatus::Complete,
                Token::Close { .. }
                | Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. } => {}
            }
        };
        update.fragment = Some(from..*at);
        value
    }

    /// Returns the next token at or after `at`, and moves `at` past the token.
    pub(super) fn next_token(&mut self, input: &str, at: &mut usize) -> Token {
        let bytes = input.as_bytes();
        while *at < bytes.len() {
            if self.open_string.is_some() {
                match self.scan_string(input, at) {
                    Some(token) => return token,
                    None => continue,
                }
            }
            match self.match_close_marker(&input[*at..]) {
                PrefixMatch::Yes => return Token::Marker,
                PrefixMatch::Partial => return Token::NeedMore,
                PrefixMatch::No => {}
            }
            let byte = bytes[*at];
            let strict = self.expects_key && self.levels.len() <= self.strict_depth;
            if strict && !b" \t\r\n\"'}".contains(&byte) {
                return Token::Unbalanced;
            }
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.in_word = false,
                b'{' | b'[' => {
                    *at += 1;
                    return self.open_container(byte == b'{');
                }
                b'}' | b']' => {
                    *at += 1;
                    return self.close_container(byte == b'}');
                }
                b',' => {
                    self.in_word = false;
                    self.expects_key = self.levels.last() == Some(&true);
                }
                b':' => {
                    self.in_word = false;
                    self.expects_key = false;
                }
                b'"' => self.start_string(byte),
                b'\'' if !self.in_word => self.start_string(byte),
                _ if !self.in_word && !self.expects_key => {
                    self.in_word = true;
                    *at += char_len(input, *at);
                    return Token::Scalar { depth: self.levels.len() };
                }
                _ => self.in_word = true,
            }
            *at += char_len(input, *at);
        }
        Token::NeedMore
    }

    fn match_close_marker(&self, rest: &str) -> PrefixMatch {
        self.close_marker.map_or(PrefixMatch::No, |close| match_prefix(rest, close))
    }

    fn open_container(&mut self, object: bool) -> Token {
        if self.levels.len() == MAX_DEPTH {
            return Token::Unbalanced;
        }
        self.levels.push(object);
        self.expects_key = object;
        self.in_word = false;
        Token::Open { object, depth: self.levels.len() }
    }

    fn close_container(&mut self, object: bool) -> Token {
        if self.levels.pop() != Some(object) {
            return Token::Unbalanced;
        }
        self.expects_key = false;
        self.in_word = false;
        Token::Close { depth: self.levels.len() }
    }

    fn start_string(&mut self, quote: u8) {
        let is_key = self.expects_key;
        self.open_string = Some(OpenString {
            quote,
            escaped: false,
            is_key,
            after_newline: false,
            text: Vec::new(),
        });
    }

    /// Continues inside a string. Returns `None` if there is no token yet.
    fn scan_string(&mut self, input: &str, at: &mut usize) -> Option<Token> {
        let open = self.open_string.as_mut()?;
        let rest = &input.as_bytes()[*at..];
        if open.escaped {
            open.escaped = false;
            let length = char_len(input, *at);
            open.append_bounded(&rest[..length]);
            *at += length;
            return None;
        }
        let Some(offset) = memchr3(open.quote, b'\\', b'\n', rest) else {
            open.append_bounded(rest);
            open.after_newline &= rest.is_empty();
            *at = input.len();
            return None;
        };
        open.append_bounded(&rest[..offset]);
        *at += offset;
        let blank_line = offset == 0 && open.after_newline && rest[offset] == b'\n';
        if blank_line && self.blank_line_ends {
            return Some(Token::Unbalanced);
        }
        open.after_newline = rest[offset] == b'\n';
        match rest[offset] {
            b'\\' => {
                open.escaped = true;
                open.append_bounded(b"\\");
            }
            b'\n' => {
                // JSON strings contain no raw line ends, so a marker after a line end is a real
                // marker.
                match self
                    .close_marker
                    .map_or(PrefixMatch::No, |close| match_prefix(&input[*at + 1..], close))
                {
                    PrefixMatch::Yes => return Some(Token::Marker),
                    PrefixMatch::Partial => return Some(Token::NeedMore),
                    PrefixMatch::No => open.append_bounded(b"\n"),
                }
            }
            _ => {
                *at += 1;
                return self.finish_string();
            }
        }
        *at += 1;
        None
    }

    fn finish_string(&mut self) -> Option<Token> {
        let open = self.open_string.take()?;
        let depth = self.levels.len();
        let text = if open.text.len() > MAX_NAME_BYTES {
            String::new()
        } else {
            String::from_utf8(open.text).unwrap_or_default()
        };
        if open.is_key {
            self.expects_key = false;
            return Some(Token::Key { text, depth });
        }
        Some(Token::Text { text, depth })
    }
}

impl OpenString {
    /// Stores up to one byte more than the maximum length of a name. The extra byte marks the
    /// string as too long.
    fn append_bounded(&mut self, bytes: &[u8]) {
        let remaining = (MAX_NAME_BYTES + 1).saturating_sub(self.text.len());
        self.text.extend_from_slice(&bytes[..bytes.len().min(remaining)]);
    }
}

/// Returns the length of the character at `at` in bytes.
fn char_len(input: &str, at: usize) -> usize {
    input[at..].chars().next().map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests;
