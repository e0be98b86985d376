//! JSON text as a list of tokens, made on a thread of the runtime: what is left for Python's thread is
//! to create the objects.

use std::ops::Range;

use base64::Engine as _;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use memchr::memchr2;
use serde_json::value::RawValue;

/// JSON text with its tokens in order.
pub(crate) struct Tape {
    pub(super) text: Box<str>,
    pub(super) tokens: Vec<Token>,
}

/// One token.
pub(super) enum Token {
    Null,
    Bool(bool),
    Int(i64),
    /// An integer of more than 64 bits: its sign, and the bytes of its magnitude, the least first.
    LongInt {
        is_negative: bool,
        magnitude: Box<[u8]>,
    },
    /// An integer with more than [`MAX_DIGITS`], as their number.
    EndlessInt(usize),
    Float(f64),
    /// A string or a key without escapes.
    Str(Range<usize>),
    /// A string or a key whose escapes are replaced.
    Unescaped(Box<str>),
    /// The bytes of a `blob`.
    Bytes(Vec<u8>),
    /// A string in quotes with half of a surrogate pair: no Unicode text, but a Python string.
    Surrogates(Range<usize>),
    StartArray,
    StartObject,
    /// The end of an array or object.
    End,
}

impl Tape {
    /// Creates the tape of a JSON value.
    pub(crate) fn new(json: Box<RawValue>) -> Self {
        let text: Box<str> = json.into();
        let mut scanner = Scanner { text: &text, position: 0 };
        let mut tokens = Vec::new();
        while let Some(token) = scanner.next_token() {
            tokens.push(token);
        }
        Self { text, tokens }
    }

    /// Creates the tape of the result of `resources/read`, with each `blob` of its contents as bytes. A
    /// `blob` that is not Base64 stays a string.
    pub(crate) fn from_resource(json: Box<RawValue>) -> Self {
        let mut tape = Self::new(json);
        let mut open = Vec::new();
        let mut in_contents = false;
        for index in 0..tape.tokens.len() {
            if open.len() == 1 && matches!(open[0], Open::Object { expects_key: true }) {
                in_contents = tape.string(index) == Some("contents");
            }
            let is_blob = in_contents
                && open.len() == CONTENT_DEPTH
                && matches!(open.last(), Some(Open::Object { expects_key: false }))
                && tape.string(index - 1) == Some("blob");
            if is_blob && let Some(bytes) = tape.string(index).and_then(decode) {
                tape.tokens[index] = Token::Bytes(bytes);
            }
            match &tape.tokens[index] {
                Token::StartArray => open.push(Open::Array),
                Token::StartObject => open.push(Open::Object { expects_key: true }),
                Token::End => {
                    open.pop();
                    pass_value(&mut open);
                }
                _ => pass_value(&mut open),
            }
        }
        tape
    }

    /// Returns the text of a token that is a string.
    pub(super) fn string(&self, index: usize) -> Option<&str> {
        match self.tokens.get(index)? {
            Token::Str(range) => Some(&self.text[range.clone()]),
            Token::Unescaped(text) => Some(text),
            _ => None,
        }
    }
}

/// The longest integer of a server. The time of a conversion grows with the square of the length; this
/// one takes about 10 ms.
pub(super) const MAX_DIGITS: usize = 100_000;

/// Returns the bytes of a number, the least first. Python's own conversion would keep the thread of the
/// event loop busy, for half a minute with a million digits.
fn magnitude(digits: &str) -> Box<[u8]> {
    /// The most digits that always fit into 64 bits.
    const GROUP: usize = 19;
    let mut limbs: Vec<u64> = Vec::with_capacity(digits.len() / GROUP + 1);
    let mut rest = digits;
    while !rest.is_empty() {
        let (group, next) = rest.split_at(rest.len().min(GROUP));
        rest = next;
        let factor = group.bytes().fold(1, |factor, _| factor * 10_u128);
        let mut carry = group.bytes().fold(0, |value, digit| value * 10 + u128::from(digit - b'0'));
        for limb in &mut limbs {
            let product = u128::from(*limb) * factor + carry;
            *limb = product as u64;
            carry = product >> 64;
        }
        if carry > 0 {
            limbs.push(carry as u64);
        }
    }
    limbs.iter().flat_map(|limb| limb.to_le_bytes()).collect()
}

/// The result, the array of its contents, and one of these.
const CONTENT_DEPTH: usize = 3;

/// An array or object around a token.
enum Open {
    Array,
    Object { expects_key: bool },
}

/// After a key comes a value, and after a value a key.
fn pass_value(open: &mut [Open]) {
    if let Some(Open::Object { expects_key }) = open.last_mut() {
        *expects_key = !*expects_key;
    }
}

/// Decodes Base64 as servers write it: with line breaks, without padding, or in the form for URLs.
fn decode(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &STANDARD,
        GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    if let Ok(bytes) = LENIENT.decode(text) {
        return Some(bytes);
    }
    let in_one_line = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let standard: Vec<u8> = in_one_line
        .map(|byte| match byte {
            b'-' => b'+',
            b'_' => b'/',
            other => other,
        })
        .collect();
    LENIENT.decode(standard).ok()
}

/// Reads tokens from text that is known to be JSON.
struct Scanner<'t> {
    text: &'t str,
    position: usize,
}

impl Scanner<'_> {
    fn next_token(&mut self) -> Option<Token> {
        loop {
            let byte = *self.text.as_bytes().get(self.position)?;
            let start = self.position;
            match byte {
                b'"' => return Some(self.string()),
                b'-' | b'0'..=b'9' => return Some(self.number()),
                b'n' => return Some(self.word(4, Token::Null)),
                b't' => return Some(self.word(4, Token::Bool(true))),
                b'f' => return Some(self.word(5, Token::Bool(false))),
                _ => self.position = start + 1,
            }
            match byte {
                b'[' => return Some(Token::StartArray),
                b'{' => return Some(Token::StartObject),
                b']' | b'}' => return Some(Token::End),
                // Space, a comma or a colon.
                _ => {}
            }
        }
    }

    fn word(&mut self, bytes: usize, token: Token) -> Token {
        self.position += bytes;
        token
    }

    fn number(&mut self) -> Token {
        let start = self.position;
        let rest = &self.text.as_bytes()[start..];
        let length = rest
            .iter()
            .position(|byte| !matches!(byte, b'0'..=b'9' | b'-' | b'+' | b'.' | b'e' | b'E'))
            .unwrap_or(rest.len());
        self.position = start + length;
        let digits = &self.text[start..self.position];
        if digits.contains(['.', 'e', 'E']) {
            // JSON's syntax of numbers is a part of Rust's.
            return Token::Float(digits.parse().unwrap_or(f64::NAN));
        }
        if let Ok(value) = digits.parse() {
            return Token::Int(value);
        }
        let positive = digits.trim_start_matches('-');
        if positive.len() > MAX_DIGITS {
            return Token::EndlessInt(positive.len());
        }
        let is_negative = positive.len() < digits.len();
        Token::LongInt { is_negative, magnitude: magnitude(positive) }
    }

    fn string(&mut self) -> Token {
        let start = self.position + 1;
        let mut end = start;
        let mut has_escapes = false;
        let bytes = self.text.as_bytes();
        while let Some(found) = memchr2(b'"', b'\\', &bytes[end..]) {
            end += found;
            if bytes[end] == b'"' {
                break;
            }
            has_escapes = true;
            // The escaped character may be a quote.
            end += 2;
        }
        self.position = end + 1;
        if !has_escapes {
            return Token::Str(start..end);
        }
        let quoted = start - 1..end + 1;
        serde_json::from_str(&self.text[quoted.clone()])
            .map_or(Token::Surrogates(quoted), Token::Unescaped)
    }
}
