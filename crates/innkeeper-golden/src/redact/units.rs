//! Reads encoded text unit by unit: a byte as written, or an escape that stands for a byte or
//! character.
//!
//! The same text has several readings: `%41` is three characters or an `A`, and `\\u0041` is an `A`
//! in JSON inside JSON. [`read_units`] returns all of them, so that a search finds a secret in
//! whatever encodings it was written, also if they are mixed.

/// Number of encodings inside each other that are undone: JSON in JSON in a URL, for example.
pub(super) const MAX_LEVELS: usize = 3;

/// Maximum number of readings at one position.
const MAX_UNITS: usize = 12;

/// Maximum number of digits of an HTML character reference.
const MAX_REFERENCE_DIGITS: usize = 8;

/// Maximum number of bytes of an escape whose characters are not encoded, without the first.
const MAX_ESCAPE_BYTES: usize = MAX_REFERENCE_DIGITS + 3;

/// The named HTML references for characters that HTML needs escaped.
const NAMED_REFERENCES: [(&[u8], u8); 5] =
    [(b"amp", b'&'), (b"lt", b'<'), (b"gt", b'>'), (b"quot", b'"'), (b"apos", b'\'')];

/// One reading at a position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Unit {
    bytes: [u8; 4],
    len: u8,
    /// The position after the unit.
    pub(super) end: usize,
}

impl Unit {
    fn from_byte(byte: u8, end: usize) -> Self {
        Self { bytes: [byte, 0, 0, 0], len: 1, end }
    }

    fn from_char(character: char, end: usize) -> Self {
        let mut bytes = [0; 4];
        character.encode_utf8(&mut bytes);
        let len = match character.len_utf8() {
            1 => 1,
            2 => 2,
            3 => 3,
            _ => 4,
        };
        Self { bytes, len, end }
    }

    /// Returns the decoded bytes.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Returns the decoded byte, if it is exactly one.
    pub(super) fn byte(&self) -> Option<u8> {
        (self.len == 1).then_some(self.bytes[0])
    }
}

/// The readings at one position, the one as written first.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Units {
    items: [Unit; MAX_UNITS],
    len: usize,
}

impl Units {
    fn push(&mut self, unit: Unit) {
        if self.len < MAX_UNITS && !self.as_slice().contains(&unit) {
            self.items[self.len] = unit;
            self.len += 1;
        }
    }

    pub(super) fn as_slice(&self) -> &[Unit] {
        &self.items[..self.len]
    }
}

/// Returns whether a byte has readings other than itself.
pub(super) const fn is_special(byte: u8) -> bool {
    matches!(byte, b'\\' | b'%' | b'&' | b'+')
}

/// Returns whether the rest of an escape may be encoded itself.
fn has_special(text: &[u8], at: usize) -> bool {
    let rest = text.get(at..).unwrap_or_default();
    rest.iter().take(MAX_ESCAPE_BYTES).any(|byte| is_special(*byte))
}

/// Returns all readings at `at`; none at the end of the text.
pub(super) fn read_units(text: &[u8], at: usize, levels: usize) -> Units {
    let mut units = Units::default();
    let Some(&byte) = text.get(at) else { return units };
    if levels == 0 || !is_special(byte) {
        units.push(Unit::from_byte(byte, at + 1));
        return units;
    }
    if byte == b'\\'
        && let Some(units) = read_backslash_run(text, at, levels)
    {
        return units;
    }
    if levels > 1 && !has_special(text, at + 1) {
        let units = read_units(text, at, 1);
        if units.as_slice().iter().skip(1).all(|unit| !unit.byte().is_some_and(is_special)) {
            return units;
        }
    }
    let lower = read_units(text, at, levels - 1);
    units = lower;
    let reader = Reader { text, levels: levels - 1 };
    for unit in lower.as_slice() {
        match unit.byte() {
            Some(b'+') => units.push(Unit::from_byte(b' ', unit.end)),
            Some(b'%') => {
                if let Some((byte, end)) = reader.hex_byte(unit.end) {
                    units.push(Unit::from_byte(byte, end));
                }
            }
            Some(b'\\') => reader.read_backslash(unit.end, &mut units),
            Some(b'&') => {
                if let Some((character, end)) = reader.reference(unit.end) {
                    units.push(Unit::from_char(character, end));
                }
            }
            Some(_) | None => {}
        }
    }
    units
}

/// Returns the readings of a run of backslashes, such as before a quote in JSON in JSON, without the
/// recursion; `None` if what follows may be encoded itself.
///
/// Each level halves the run, so `2^levels` backslashes can be one, and a quote that was escaped
/// `levels` times follows one less.
fn read_backslash_run(text: &[u8], at: usize, levels: usize) -> Option<Units> {
    let max_len = 1 << levels;
    let rest = text[at..].iter().take(max_len + 1);
    let len = rest.take_while(|byte| **byte == b'\\').count();
    let mut units = Units::default();
    for len in 1..=len.min(max_len) {
        units.push(Unit::from_byte(b'\\', at + len));
    }
    if len < max_len {
        let end = at + len;
        if has_special(text, end) {
            return None;
        }
        let before = units.len;
        Reader { text, levels: 0 }.read_backslash(end, &mut units);
        if units.as_slice()[before..].iter().any(|unit| unit.byte().is_some_and(is_special)) {
            return None;
        }
    }
    Some(units)
}

/// Reads the rest of an escape, whose characters may be escaped themselves.
struct Reader<'t> {
    text: &'t [u8],
    levels: usize,
}

impl Reader<'_> {
    /// Returns the first reading at `at` that `accept` takes.
    fn next<T>(&self, at: usize, accept: impl Fn(u8) -> Option<T>) -> Option<(T, usize)> {
        let units = read_units(self.text, at, self.levels);
        units.as_slice().iter().find_map(|unit| Some((accept(unit.byte()?)?, unit.end)))
    }

    fn hex_number(&self, mut at: usize, digits: usize) -> Option<(u32, usize)> {
        let mut number = 0;
        for _ in 0..digits {
            let (digit, end) = self.next(at, |byte| char::from(byte).to_digit(16))?;
            number = number * 16 + digit;
            at = end;
        }
        Some((number, at))
    }

    fn hex_byte(&self, at: usize) -> Option<(u8, usize)> {
        let (number, end) = self.hex_number(at, 2)?;
        Some((u8::try_from(number).ok()?, end))
    }

    /// Reads what follows a backslash.
    fn read_backslash(&self, at: usize, units: &mut Units) {
        for unit in read_units(self.text, at, self.levels).as_slice() {
            let Some(byte) = unit.byte() else { continue };
            match byte {
                b'n' => units.push(Unit::from_byte(b'\n', unit.end)),
                b'r' => units.push(Unit::from_byte(b'\r', unit.end)),
                b't' => units.push(Unit::from_byte(b'\t', unit.end)),
                b'b' => units.push(Unit::from_byte(8, unit.end)),
                b'f' => units.push(Unit::from_byte(12, unit.end)),
                b'u' => {
                    if let Some((character, end)) = self.utf16_char(unit.end) {
                        units.push(Unit::from_char(character, end));
                    }
                }
                b'x' => {
                    if let Some((byte, end)) = self.hex_byte(unit.end) {
                        units.push(Unit::from_byte(byte, end));
                        units.push(Unit::from_char(char::from(byte), end));
                    }
                }
                // JSON escapes `"`, `\` and `/`; Markdown escapes all punctuation.
                _ if byte.is_ascii_punctuation() => units.push(Unit::from_byte(byte, unit.end)),
                _ => {}
            }
        }
    }

    /// Reads the digits of `\uXXXX`, with the second half of a surrogate pair.
    fn utf16_char(&self, at: usize) -> Option<(char, usize)> {
        let (first, end) = self.hex_number(at, 4)?;
        if let Some(character) = char::from_u32(first) {
            return Some((character, end));
        }
        for backslash in read_units(self.text, end, self.levels).as_slice() {
            if backslash.byte() != Some(b'\\') {
                continue;
            }
            let after_u = self.next(backslash.end, |byte| (byte == b'u').then_some(()));
            let second = after_u.and_then(|((), at)| self.hex_number(at, 4));
            if let Some((second @ 0xdc00..=0xdfff, end)) = second {
                let high = first.checked_sub(0xd800).filter(|high| *high < 0x400)?;
                return Some((char::from_u32(0x10000 + high * 0x400 + second - 0xdc00)?, end));
            }
        }
        None
    }

    /// Reads what follows `&` in an HTML character reference.
    fn reference(&self, at: usize) -> Option<(char, usize)> {
        let Some(((), mut at)) = self.next(at, |byte| (byte == b'#').then_some(())) else {
            return self.named_reference(at);
        };
        let mut radix = 10;
        if let Some(((), end)) = self.next(at, |byte| matches!(byte, b'x' | b'X').then_some(())) {
            radix = 16;
            at = end;
        }
        let mut number = 0_u32;
        for _ in 0..MAX_REFERENCE_DIGITS {
            let Some((digit, end)) = self.next(at, |byte| char::from(byte).to_digit(radix)) else {
                break;
            };
            number = number.checked_mul(radix)?.checked_add(digit)?;
            at = end;
        }
        let ((), end) = self.next(at, |byte| (byte == b';').then_some(()))?;
        Some((char::from_u32(number)?, end))
    }

    fn named_reference(&self, at: usize) -> Option<(char, usize)> {
        NAMED_REFERENCES.iter().find_map(|(name, byte)| {
            let mut end = at;
            for expected in name.iter().chain(b";") {
                end = self.next(end, |byte| byte.eq_ignore_ascii_case(expected).then_some(()))?.1;
            }
            Some((char::from(*byte), end))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_has_each_of_its_readings() {
        let cases: [(&str, &str); 17] = [
            (r"\u0041", "A"),
            (r"\\u0041", "A"),
            (r"\\\\u0041", "A"),
            (r"\u00E9", "é"),
            (r"\ud83d\ude00", "😀"),
            (r"\\ud83d\\ude00", "😀"),
            (r"\x41", "A"),
            (r"\xe9", "é"),
            (r"\/", "/"),
            ("%2f", "/"),
            ("%252F", "/"),
            ("%5Cu0041", "A"),
            (r"\u0025\u0034\u0031", "A"),
            ("+", " "),
            ("&#65;", "A"),
            ("&amp;#x41;", "A"),
            ("%26lt%3B", "<"),
        ];
        for (text, expected) in cases {
            let units = read_units(text.as_bytes(), 0, MAX_LEVELS);
            let has_reading = units
                .as_slice()
                .iter()
                .any(|unit| unit.bytes() == expected.as_bytes() && unit.end == text.len());
            assert!(has_reading, "{text}: {units:?}");
            assert_eq!(units.as_slice()[0], Unit::from_byte(text.as_bytes()[0], 1), "{text}");
        }
    }
}
