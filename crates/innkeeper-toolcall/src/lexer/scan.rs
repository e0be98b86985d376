//! The structure of JSON-like text, byte by byte: how deep it is, what is a string, what a key.

use memchr::memchr3;

use super::{Begins, NAME, Notes, begins};

/// How deep a call may be nested; the deepest schemas seen in the wild have ten levels.
pub(crate) const DEPTH: usize = 128;

/// Something worth knowing in the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// An object or array has begun; the depth it has inside.
    Open { object: bool, depth: usize },
    /// An object or array has ended; the depth outside of it.
    Close { depth: usize },
    /// A key, if it is short enough to matter.
    Key { text: String, depth: usize },
    /// A string that is a value, if it is short enough to matter.
    Text { text: String, depth: usize },
    /// A value that is no string, object or array has begun.
    Scalar { depth: usize },
    /// The closing marker stands where the value has not ended.
    Marker,
    /// Brackets that do not match, or too many of them.
    Odd,
    /// The rest of the input, from here on, is too short to decide.
    More,
}

/// How far a value was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Value {
    /// To the end of the input.
    More,
    /// To its last bracket, or to the marker that ends it.
    Ended,
    /// To where it is none any more.
    Broken,
}

/// Reads a value and keeps where it is in it. Tolerant of single quotes, bare words and missing
/// commas, so that what can be repaired is found whole.
#[derive(Debug)]
pub(super) struct Scan {
    /// For each level whether it is an object.
    levels: Vec<bool>,
    string: Option<Open>,
    expects_key: bool,
    in_word: bool,
    /// A marker that ends the call even where JSON is broken.
    close: Option<&'static str>,
    /// Whether an empty line in a string ends everything: no string of JSON has one.
    blank_line_ends: bool,
    /// Down to which depth a key has to stand in quotes.
    strict: usize,
}

/// A string that is being read.
#[derive(Debug)]
struct Open {
    quote: u8,
    escaped: bool,
    key: bool,
    /// Whether the last byte was a line end.
    line_ended: bool,
    text: Vec<u8>,
}

impl Scan {
    pub(super) fn new(close: Option<&'static str>) -> Self {
        Self {
            levels: Vec::new(),
            string: None,
            expects_key: false,
            in_word: false,
            close,
            blank_line_ends: false,
            strict: 0,
        }
    }

    /// For text that may be no JSON at all: down to this depth, what is no key where one has to be
    /// ends it at once.
    pub(super) fn strict_to(&mut self, depth: usize) {
        self.strict = depth;
    }

    /// For text that may have stopped to be JSON long ago.
    pub(super) fn end_at_blank_lines(&mut self) {
        self.blank_line_ends = true;
    }

    /// Reads the rest of a value, all of which is told as arguments.
    pub(super) fn value(&mut self, input: &str, at: &mut usize, notes: &mut Notes) -> Value {
        let from = *at;
        let value = loop {
            match self.next(input, at) {
                Token::More => break Value::More,
                Token::Odd => break Value::Broken,
                Token::Marker | Token::Close { depth: 0 } => break Value::Ended,
                Token::Close { .. }
                | Token::Open { .. }
                | Token::Key { .. }
                | Token::Text { .. }
                | Token::Scalar { .. } => {}
            }
        };
        notes.fragment = Some(from..*at);
        value
    }

    /// The next token at or after `at`, which is moved behind it.
    pub(super) fn next(&mut self, input: &str, at: &mut usize) -> Token {
        let bytes = input.as_bytes();
        while *at < bytes.len() {
            if self.string.is_some() {
                match self.string_on(input, at) {
                    Some(token) => return token,
                    None => continue,
                }
            }
            match self.marker(&input[*at..]) {
                Begins::Yes => return Token::Marker,
                Begins::Perhaps => return Token::More,
                Begins::No => {}
            }
            let byte = bytes[*at];
            let strict = self.expects_key && self.levels.len() <= self.strict;
            if strict && !b" \t\r\n\"'}".contains(&byte) {
                return Token::Odd;
            }
            match byte {
                b' ' | b'\t' | b'\r' | b'\n' => self.in_word = false,
                b'{' | b'[' => {
                    *at += 1;
                    return self.open(byte == b'{');
                }
                b'}' | b']' => {
                    *at += 1;
                    return self.shut(byte == b'}');
                }
                b',' => {
                    self.in_word = false;
                    self.expects_key = self.levels.last() == Some(&true);
                }
                b':' => {
                    self.in_word = false;
                    self.expects_key = false;
                }
                b'"' => self.begin(byte),
                b'\'' if !self.in_word => self.begin(byte),
                _ if !self.in_word && !self.expects_key => {
                    self.in_word = true;
                    *at += letter(input, *at);
                    return Token::Scalar { depth: self.levels.len() };
                }
                _ => self.in_word = true,
            }
            *at += letter(input, *at);
        }
        Token::More
    }

    fn marker(&self, rest: &str) -> Begins {
        self.close.map_or(Begins::No, |close| begins(rest, close))
    }

    fn open(&mut self, object: bool) -> Token {
        if self.levels.len() == DEPTH {
            return Token::Odd;
        }
        self.levels.push(object);
        self.expects_key = object;
        self.in_word = false;
        Token::Open { object, depth: self.levels.len() }
    }

    fn shut(&mut self, object: bool) -> Token {
        if self.levels.pop() != Some(object) {
            return Token::Odd;
        }
        self.expects_key = false;
        self.in_word = false;
        Token::Close { depth: self.levels.len() }
    }

    fn begin(&mut self, quote: u8) {
        let key = self.expects_key;
        self.string =
            Some(Open { quote, escaped: false, key, line_ended: false, text: Vec::new() });
    }

    /// Reads on in a string; `None` where nothing came of it yet.
    fn string_on(&mut self, input: &str, at: &mut usize) -> Option<Token> {
        let open = self.string.as_mut()?;
        let rest = &input.as_bytes()[*at..];
        if open.escaped {
            open.escaped = false;
            let length = letter(input, *at);
            open.keep(&rest[..length]);
            *at += length;
            return None;
        }
        let Some(hit) = memchr3(open.quote, b'\\', b'\n', rest) else {
            open.keep(rest);
            open.line_ended &= rest.is_empty();
            *at = input.len();
            return None;
        };
        open.keep(&rest[..hit]);
        *at += hit;
        let blank_line = hit == 0 && open.line_ended && rest[hit] == b'\n';
        if blank_line && self.blank_line_ends {
            return Some(Token::Odd);
        }
        open.line_ended = rest[hit] == b'\n';
        match rest[hit] {
            b'\\' => {
                open.escaped = true;
                open.keep(b"\\");
            }
            b'\n' => {
                // JSON has no raw line end in a string: the marker after one is a real one.
                match self.close.map_or(Begins::No, |close| begins(&input[*at + 1..], close)) {
                    Begins::Yes => {
                        *at += 1;
                        return Some(Token::Marker);
                    }
                    Begins::Perhaps => return Some(Token::More),
                    Begins::No => open.keep(b"\n"),
                }
            }
            _ => {
                *at += 1;
                return self.end_of_string();
            }
        }
        *at += 1;
        None
    }

    fn end_of_string(&mut self) -> Option<Token> {
        let open = self.string.take()?;
        let depth = self.levels.len();
        let text = if open.text.len() > NAME {
            String::new()
        } else {
            String::from_utf8(open.text).unwrap_or_default()
        };
        if open.key {
            self.expects_key = false;
            return Some(Token::Key { text, depth });
        }
        Some(Token::Text { text, depth })
    }
}

impl Open {
    /// Keeps what may be a name; one byte too many tells that it is none.
    fn keep(&mut self, bytes: &[u8]) {
        let room = (NAME + 1).saturating_sub(self.text.len());
        self.text.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

/// How many bytes the letter at `at` has.
fn letter(input: &str, at: usize) -> usize {
    input[at..].chars().next().map_or(1, char::len_utf8)
}
