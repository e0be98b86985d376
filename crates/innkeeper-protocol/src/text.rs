//! Raw JSON strings and line breaks, and escaping of text for display.

use std::borrow::Cow;

/// Decodes a raw JSON string. Returns `None` if `raw` is not a string.
///
/// JavaScript and Python write lone surrogate escapes for a string that is cut in the middle of a
/// character. Such escapes become U+FFFD, so that the rest of the string remains usable.
pub(crate) fn decode_string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    decode_escapes(inner).map(Cow::Owned)
}

/// Decodes the text between the quotes of a string. Returns `None` for an escape that JSON does not
/// have.
fn decode_escapes(text: &str) -> Option<String> {
    let mut decoded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = memchr::memchr(b'\\', rest.as_bytes()) {
        let (plain, escape) = rest.split_at(at);
        decoded.push_str(plain);
        let (character, length) = decode_escape(escape.as_bytes())?;
        decoded.push(character);
        rest = &escape[length..];
    }
    decoded.push_str(rest);
    Some(decoded)
}

/// Decodes the escape at the start, and returns its length.
fn decode_escape(escape: &[u8]) -> Option<(char, usize)> {
    const UNIT_LEN: usize = "\\u0000".len();
    let character = match escape.get(1)? {
        b'n' => '\n',
        b't' => '\t',
        b'r' => '\r',
        b'b' => '\u{8}',
        b'f' => '\u{c}',
        plain @ (b'"' | b'\\' | b'/') => char::from(*plain),
        b'u' => {
            let first = utf16_unit(escape)?;
            let second = escape.get(UNIT_LEN..).and_then(utf16_unit);
            let units = [first, second.unwrap_or_default()];
            let decoded = char::decode_utf16(units).next()?;
            let length = decoded.as_ref().map_or(1, |character| character.len_utf16());
            let character = decoded.unwrap_or(char::REPLACEMENT_CHARACTER);
            return Some((character, length * UNIT_LEN));
        }
        _ => return None,
    };
    Some((character, 2))
}

/// Reads an escape of four hexadecimal digits.
fn utf16_unit(escape: &[u8]) -> Option<u16> {
    let digits = escape.strip_prefix(b"\\u")?.get(..4)?;
    let mut digits = digits.iter().map(|digit| char::from(*digit).to_digit(16));
    let unit = digits.try_fold(0, |unit, digit| Some(unit << 4 | digit?))?;
    u16::try_from(unit).ok()
}

/// Whether a raw key, as written between its quotes, decodes to `name`.
#[inline]
pub(crate) fn key_is(raw_key: &str, name: &str) -> bool {
    let may_have_escapes = raw_key.len() > name.len();
    if may_have_escapes {
        escaped_key_is(raw_key, name)
    } else {
        raw_key == name && !raw_key.contains('\\')
    }
}

fn escaped_key_is(raw_key: &str, name: &str) -> bool {
    // An escape sequence takes up to six bytes per byte of the character.
    raw_key.len() <= 6 * name.len()
        && raw_key.contains('\\')
        && serde_json::from_str::<String>(&format!("\"{raw_key}\"")).is_ok_and(|key| key == name)
}

/// Returns `text` as one line of at most `limit` characters, with every character escaped that is
/// not plainly printable.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut output = String::new();
    let mut length = 0;
    for character in text.chars() {
        let start = output.len();
        match character {
            '"' | '\'' => output.push(character),
            _ => output.extend(character.escape_debug()),
        }
        length += output[start..].chars().count();
        if length > limit {
            output.truncate(start);
            while output.chars().count() + 1 > limit && output.pop().is_some() {}
            output.push('…');
            break;
        }
    }
    output
}

/// Replaces line breaks in valid JSON by spaces. Raw JSON may be pretty-printed; for many readers a
/// single carriage return ends a line too. Line breaks in valid JSON are always white space, because
/// line breaks in strings are escaped.
pub(crate) fn replace_line_breaks(json: &mut [u8]) {
    let mut from = 0;
    while let Some(offset) = memchr::memchr2(b'\n', b'\r', &json[from..]) {
        from += offset;
        json[from] = b' ';
    }
}

#[cfg(test)]
mod tests {
    use super::{decode_string, key_is, printable};

    /// Proves: TR3.7
    #[test]
    fn strings_are_decoded_and_half_characters_replaced() {
        assert_eq!(decode_string(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(decode_string(r#""\ud83d\ude00\u00e4\n""#).as_deref(), Some("\u{1F600}ä\n"));
        let half = decode_string(r#""a\ude00b""#).unwrap();
        assert!(half.starts_with('a') && half.ends_with('b') && half.contains('\u{FFFD}'));
        assert_eq!(
            decode_string(r#""\"\\\/\b\f\r\t\u000aé""#).as_deref(),
            Some("\"\\/\u{8}\u{c}\r\t\né")
        );
        let halves = decode_string(r#""\ud83d\ud83d\ude00\ud83dx\ud83d""#);
        assert_eq!(halves.as_deref(), Some("\u{FFFD}\u{1F600}\u{FFFD}x\u{FFFD}"));
        for odd in
            ["", "\"", "5", "null", "[\"a\"]", r#""\x""#, r#""\""#, r#""\u12""#, r#""\u+123""#]
        {
            assert_eq!(decode_string(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_key_is_itself_however_it_is_escaped() {
        assert!(key_is("id", "id") && key_is(r"\u0069\u0064", "id") && key_is(r"a\/b", "a/b"));
        assert!(!key_is("ID", "id") && !key_is(r"\u0049d", "id") && !key_is("idid", "id"));
        assert!(!key_is(r"\\", r"\\") && key_is(r"\\", r"\"));
        assert!(!key_is(r"id\", "id") && !key_is(r"\ud83dxxxx", "id"));
        assert!(!key_is(&format!(r"\u0069d{}", "x".repeat(1000)), "id"));
    }

    #[test]
    fn printable_text_is_truncated_past_the_limit() {
        assert_eq!(printable("abcde", 5), "abcde");
        assert_eq!(printable("abcdef", 5), "abcd…");
        assert_eq!(printable("\u{1b}[0m\"x\"", 20), "\\u{1b}[0m\"x\"");
        assert_eq!(printable("abc\u{1b}", 5), "abc…");
        assert_eq!(printable("ääääää", 5), "ääää…");
    }
}
