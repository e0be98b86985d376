//! Replaces escapes within a text: percent-encoding, references of HTML, escapes of programming
//! languages, and quoted-printable.

use memchr::{memchr, memchr_iter, memchr3};

/// Minimum number of escapes in an escaped text.
const MIN_ESCAPES: usize = 3;

/// Minimum number of quoted-printable escapes: addresses contain `=12` by chance.
const MIN_QUOTED_PRINTABLE: usize = 6;

/// Maximum length of a reference such as `&NewLine;`, in bytes.
const MAX_REFERENCE_BYTES: usize = 12;

/// References to ASCII characters, and to characters that a text does not show.
const REFERENCES: [(&str, char); 34] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("ensp", ' '),
    ("emsp", ' '),
    ("thinsp", ' '),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("shy", '\u{ad}'),
    ("zwnj", '\u{200c}'),
    ("zwj", '\u{200d}'),
    ("ZeroWidthSpace", '\u{200b}'),
    ("sol", '/'),
    ("bsol", '\\'),
    ("period", '.'),
    ("comma", ','),
    ("colon", ':'),
    ("semi", ';'),
    ("excl", '!'),
    ("quest", '?'),
    ("num", '#'),
    ("dollar", '$'),
    ("percnt", '%'),
    ("ast", '*'),
    ("plus", '+'),
    ("equals", '='),
    ("lowbar", '_'),
    ("hyphen", '-'),
    ("lpar", '('),
    ("rpar", ')'),
    ("commat", '@'),
];

/// Returns the text with its escapes replaced; `None` if there are too few.
pub(super) fn unescape(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let has_quoted_printable = memchr_iter(b'=', bytes)
        .filter(|at| read_hex(bytes, at + 1, 2).is_some())
        .nth(MIN_QUOTED_PRINTABLE - 1)
        .is_some();
    if !has_quoted_printable && memchr3(b'%', b'&', b'\\', bytes).is_none() {
        return None;
    }
    let plus_is_blank = memchr(b' ', bytes).is_none();
    let mut decoded = Vec::with_capacity(bytes.len());
    let mut at = 0;
    let mut count = 0;
    while let Some(&byte) = bytes.get(at) {
        let escape = match byte {
            b'%' => read_percent(bytes, at),
            b'&' => read_reference(text, at),
            b'\\' => read_backslash(bytes, at),
            b'=' if has_quoted_printable => read_quoted_printable(bytes, at),
            _ => None,
        };
        match escape {
            Some(Escape { length, value, is_proof }) => {
                match value {
                    EscapeValue::Byte(byte) => decoded.push(byte),
                    EscapeValue::Char(character) => {
                        decoded.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
                    }
                    EscapeValue::Nothing => {}
                }
                count += usize::from(is_proof);
                at += length;
            }
            // Counting the backslashes again for each of them would take quadratic time.
            None if byte == b'\\' => {
                let slashes = count_backslashes(bytes, at);
                decoded.extend_from_slice(&bytes[at..at + slashes]);
                at += slashes;
            }
            None => {
                decoded.push(if byte == b'+' && plus_is_blank { b' ' } else { byte });
                at += 1;
            }
        }
    }
    (count >= MIN_ESCAPES).then(|| String::from_utf8_lossy(&decoded).into_owned())
}

struct Escape {
    /// Number of bytes as written.
    length: usize,
    value: EscapeValue,
    /// Whether ordinary text rarely has such an escape.
    is_proof: bool,
}

enum EscapeValue {
    Byte(u8),
    Char(char),
    Nothing,
}

impl Escape {
    fn new(length: usize, value: EscapeValue) -> Self {
        Self { length, value, is_proof: true }
    }

    /// Surrogates and other numbers that are no character become nothing.
    fn of_number(length: usize, number: u32) -> Self {
        Self::new(length, char::from_u32(number).map_or(EscapeValue::Nothing, EscapeValue::Char))
    }
}

/// Returns the value of `count` hexadecimal digits.
fn read_hex(bytes: &[u8], at: usize, count: usize) -> Option<u32> {
    let digits = bytes.get(at..at.checked_add(count)?)?;
    digits.iter().try_fold(0_u32, |value, digit| {
        Some(value.checked_mul(16)? + char::from(*digit).to_digit(16)?)
    })
}

/// Returns the value and the length of a number up to a byte that is no digit.
fn read_number(bytes: &[u8], at: usize, radix: u32) -> Option<(u32, usize)> {
    let digits =
        bytes.get(at..)?.iter().take(8).map_while(|byte| char::from(*byte).to_digit(radix));
    let (value, length) = digits.fold((0_u32, 0), |(value, length), digit| {
        (value.wrapping_mul(radix).wrapping_add(digit), length + 1)
    });
    (length > 0).then_some((value, length))
}

fn read_byte(bytes: &[u8], at: usize) -> Option<EscapeValue> {
    read_hex(bytes, at, 2).and_then(|value| u8::try_from(value).ok()).map(EscapeValue::Byte)
}

fn read_percent(bytes: &[u8], at: usize) -> Option<Escape> {
    if let Some(value) = read_byte(bytes, at + 1) {
        return Some(Escape::new(3, value));
    }
    // The notation of old scripts.
    let is_unicode = matches!(bytes.get(at + 1), Some(b'u' | b'U'));
    is_unicode
        .then(|| read_hex(bytes, at + 2, 4))
        .flatten()
        .map(|number| Escape::of_number(6, number))
}

fn read_quoted_printable(bytes: &[u8], at: usize) -> Option<Escape> {
    match (bytes.get(at + 1), bytes.get(at + 2)) {
        (Some(b'\n'), _) => Some(Escape::new(2, EscapeValue::Nothing)),
        (Some(b'\r'), Some(b'\n')) => Some(Escape::new(3, EscapeValue::Nothing)),
        _ => Some(Escape::new(3, read_byte(bytes, at + 1)?)),
    }
}

fn read_reference(text: &str, at: usize) -> Option<Escape> {
    let bytes = text.as_bytes();
    if bytes.get(at + 1) == Some(&b'#') {
        let is_hex = matches!(bytes.get(at + 2), Some(b'x' | b'X'));
        let start = at + 2 + usize::from(is_hex);
        let (number, digits) = read_number(bytes, start, if is_hex { 16 } else { 10 })?;
        let end = start + digits;
        let has_end = bytes.get(end) == Some(&b';');
        return Some(Escape::of_number(end + usize::from(has_end) - at, number));
    }
    let name = bytes.get(at + 1..)?;
    let end = name.iter().take(MAX_REFERENCE_BYTES + 4).position(|byte| *byte == b';')?;
    let name = std::str::from_utf8(&name[..end]).ok()?;
    let (_, character) = REFERENCES.iter().find(|(known, _)| *known == name)?;
    Some(Escape::new(end + 2, EscapeValue::Char(*character)))
}

/// Reads an escape after any number of backslashes: text that is quoted twice has several.
fn read_backslash(bytes: &[u8], at: usize) -> Option<Escape> {
    let slashes = count_backslashes(bytes, at);
    let kind = at + slashes;
    let start = kind + 1;
    let is_braced = bytes.get(start) == Some(&b'{');
    let to_kind = slashes + 1;
    match bytes.get(kind)? {
        b'u' | b'x' | b'U' if is_braced => {
            let (number, digits) = read_number(bytes, start + 1, 16)?;
            let has_end = bytes.get(start + 1 + digits) == Some(&b'}');
            has_end.then(|| Escape::of_number(to_kind + digits + 2, number))
        }
        b'u' => Some(Escape::of_number(to_kind + 4, read_hex(bytes, start, 4)?)),
        b'U' => Some(Escape::of_number(to_kind + 8, read_hex(bytes, start, 8)?)),
        b'x' => Some(Escape::new(to_kind + 2, read_byte(bytes, start)?)),
        b'0'..=b'3' => {
            let digits = bytes.get(kind..kind + 3)?;
            let number = digits
                .iter()
                .try_fold(0, |value, digit| Some(value * 8 + char::from(*digit).to_digit(8)?))?;
            Some(Escape::new(slashes + 3, EscapeValue::Byte(u8::try_from(number).ok()?)))
        }
        // JSON text has these in every line.
        b'n' | b'r' | b't' => {
            let value = EscapeValue::Char(if bytes[kind] == b't' { ' ' } else { '\n' });
            Some(Escape { length: to_kind, value, is_proof: false })
        }
        _ => None,
    }
}

fn count_backslashes(bytes: &[u8], at: usize) -> usize {
    bytes[at..].iter().take_while(|byte| **byte == b'\\').count()
}
