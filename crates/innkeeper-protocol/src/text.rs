//! Raw JSON strings and line breaks, and escaping of text for display.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Decodes a raw JSON string. Returns `None` if `raw` is not a string.
///
/// JavaScript and Python write lone surrogate escapes for a string that is cut in the middle of a
/// character. Such escapes become U+FFFD, so that the rest of the string remains usable.
pub(crate) fn decode_string(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<LossyString>(raw).ok().map(|text| Cow::Owned(text.0))
}

/// Whether a raw key, as written between its quotes, decodes to `name`.
pub(crate) fn key_is(raw_key: &str, name: &str) -> bool {
    if !raw_key.contains('\\') {
        return raw_key == name;
    }
    // An escape sequence takes up to six bytes per byte of the character.
    (name.len() + 1..=6 * name.len()).contains(&raw_key.len())
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

/// A string with lone surrogates replaced.
struct LossyString(String);

impl<'de> Deserialize<'de> for LossyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct LossyVisitor;

        impl Visitor<'_> for LossyVisitor {
            type Value = LossyString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<LossyString, E> {
                Ok(LossyString(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        // In bytes mode serde_json returns lone surrogates in their three-byte form and does not
        // fail.
        deserializer.deserialize_bytes(LossyVisitor)
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
        for odd in ["", "\"", "5", "null", "[\"a\"]", r#""\x""#] {
            assert_eq!(decode_string(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_key_is_itself_however_it_is_escaped() {
        assert!(key_is("id", "id") && key_is(r"\u0069\u0064", "id") && key_is(r"a\/b", "a/b"));
        assert!(!key_is("ID", "id") && !key_is(r"\u0049d", "id") && !key_is("idid", "id"));
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
