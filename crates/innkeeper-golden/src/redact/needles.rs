//! What to search for a secret: its bytes, and what Base64 and hexadecimal digits make of it.

use std::fmt::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// All characters but the unreserved ones of RFC 3986.
const RESERVED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// What `encodeURIComponent` of JavaScript escapes.
const ESCAPED_BY_JAVASCRIPT: &AsciiSet =
    &RESERVED.remove(b'!').remove(b'*').remove(b'\'').remove(b'(').remove(b')');

/// A text to search.
pub(super) struct Needle {
    pub(super) bytes: Vec<u8>,
    pub(super) form: Form,
    pub(super) secret: usize,
}

impl fmt::Debug for Needle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Needle").field("secret", &self.secret).finish_non_exhaustive()
    }
}

/// How a needle's bytes are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    Exact,
    /// Hexadecimal digits of any case.
    Hex,
    /// Base64 of any alphabet, with line breaks.
    Base64 {
        /// The character before holds bits of the secret's first byte.
        shares_first: bool,
        /// The character after holds bits of the secret's last byte.
        shares_last: bool,
    },
}

impl Form {
    /// Compares a byte of a needle with a byte of a text.
    pub(super) fn is_same(self, expected: u8, byte: u8) -> bool {
        match self {
            Self::Exact => expected == byte,
            Self::Hex => expected == byte.to_ascii_lowercase(),
            Self::Base64 { .. } => {
                expected == byte || matches!((expected, byte), (b'+', b'-') | (b'/', b'_'))
            }
        }
    }
}

/// Returns everything to search for a value.
pub(super) fn needles(value: &str, secret: usize) -> Vec<Needle> {
    let mut needles = vec![Needle { bytes: value.into(), form: Form::Exact, secret }];
    for spelling in spellings(value) {
        needles.push(Needle {
            bytes: hex::encode(&spelling).into_bytes(),
            form: Form::Hex,
            secret,
        });
        for offset in 0..3 {
            let (text, form) = base64_at(&spelling, offset);
            needles.push(Needle { bytes: text.into_bytes(), form, secret });
        }
    }
    needles
}

/// Returns the texts that Base64 and hexadecimal digits may be of.
fn spellings(value: &str) -> Vec<Vec<u8>> {
    let bytes = value.as_bytes();
    let mut spellings = vec![bytes.to_vec()];
    let json = serde_json::Value::from(value).to_string();
    let json = json[1..json.len() - 1].to_owned();
    let mut texts = vec![json.replace('/', "\\/"), escape_non_ascii(&json), json];
    for escaped in [RESERVED, ESCAPED_BY_JAVASCRIPT] {
        let percent = utf8_percent_encode(value, escaped).to_string();
        texts.push(percent.replace("%20", "+"));
        texts.push(percent);
    }
    let digits = hex::encode(bytes);
    texts.push(digits.to_ascii_uppercase());
    texts.push(digits);
    for offset in 0..3 {
        let base64 = base64_at(bytes, offset).0;
        texts.push(base64.replace('+', "-").replace('/', "_"));
        texts.push(base64);
    }
    for text in texts {
        if !spellings.iter().any(|spelling| *spelling == text.as_bytes()) {
            spellings.push(text.into_bytes());
        }
    }
    spellings
}

fn escape_non_ascii(json: &str) -> String {
    let mut text = String::with_capacity(json.len());
    for unit in json.encode_utf16() {
        match u8::try_from(unit) {
            Ok(byte) if byte.is_ascii() => text.push(char::from(byte)),
            Ok(_) | Err(_) => {
                // Writing to a `String` cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        }
    }
    text
}

/// Returns the Base64 characters that hold only bits of `bytes` if `offset` other bytes come before.
fn base64_at(bytes: &[u8], offset: usize) -> (String, Form) {
    let mut shifted = vec![0; offset];
    shifted.extend_from_slice(bytes);
    let text = STANDARD_NO_PAD.encode(&shifted);
    let begin = (offset * 8).div_ceil(6);
    let end = shifted.len() * 8 / 6;
    let form = Form::Base64 {
        shares_first: offset > 0,
        shares_last: !(shifted.len() * 8).is_multiple_of(6),
    };
    (text[begin..end].to_owned(), form)
}
