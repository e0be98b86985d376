//! Text out of raw JSON strings, and text made safe to show.

use std::borrow::Cow;
use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, Error, Visitor};

/// Decodes the raw JSON of a string; `None` if it is not one.
///
/// Lone surrogate escapes, which JavaScript and Python write for a string cut in the middle of a
/// character, become U+FFFD: half a character is no reason to lose the text around it.
pub(crate) fn decode(raw: &str) -> Option<Cow<'_, str>> {
    let inner = raw.strip_prefix('"')?.strip_suffix('"')?;
    if memchr::memchr(b'\\', inner.as_bytes()).is_none() {
        return Some(Cow::Borrowed(inner));
    }
    serde_json::from_str::<LossyString>(raw).ok().map(|text| Cow::Owned(text.0))
}

/// Whether a raw key, as written between its quotes, spells `name`.
pub(crate) fn key_is(raw_key: &str, name: &str) -> bool {
    if !raw_key.contains('\\') {
        return raw_key == name;
    }
    // An escape is longer than what it stands for.
    raw_key.len() > name.len()
        && serde_json::from_str::<String>(&format!("\"{raw_key}\"")).is_ok_and(|key| key == name)
}

/// `text` on one line with everything that is not plainly printable escaped, at most `limit`
/// characters long.
pub(crate) fn printable(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut length = 0;
    for character in text.chars() {
        let start = shown.len();
        match character {
            '"' | '\'' => shown.push(character),
            _ => shown.extend(character.escape_debug()),
        }
        length += shown[start..].chars().count();
        if length > limit {
            shown.truncate(start);
            while shown.chars().count() + 1 > limit && shown.pop().is_some() {}
            shown.push('…');
            break;
        }
    }
    shown
}

/// A string whose lone surrogates were replaced.
struct LossyString(String);

impl<'de> Deserialize<'de> for LossyString {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = LossyString;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a string")
            }

            fn visit_bytes<E: Error>(self, bytes: &[u8]) -> Result<LossyString, E> {
                Ok(LossyString(String::from_utf8_lossy(bytes).into_owned()))
            }
        }

        // Asked for bytes, serde_json hands lone surrogates over in their three-byte form instead
        // of failing.
        deserializer.deserialize_bytes(Text)
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, key_is, printable};

    /// Proves: TR3.7
    #[test]
    fn strings_are_decoded_and_half_characters_replaced() {
        assert_eq!(decode(r#""plain""#).as_deref(), Some("plain"));
        assert_eq!(decode(r#""\ud83d\ude00\u00e4\n""#).as_deref(), Some("\u{1F600}ä\n"));
        let half = decode(r#""a\ude00b""#).unwrap();
        assert!(half.starts_with('a') && half.ends_with('b') && half.contains('\u{FFFD}'));
        for odd in ["", "\"", "5", "null", "[\"a\"]", r#""\x""#] {
            assert_eq!(decode(odd), None, "{odd}");
        }
    }

    #[test]
    fn a_key_is_itself_however_it_is_escaped() {
        assert!(key_is("id", "id") && key_is(r"\u0069\u0064", "id") && key_is(r"a\/b", "a/b"));
        assert!(!key_is("ID", "id") && !key_is(r"\u0049d", "id") && !key_is("idid", "id"));
        assert!(!key_is(r"id\", "id") && !key_is(r"\ud83dxxxx", "id"));
    }

    #[test]
    fn shown_text_is_cut_at_the_limit_and_one_past_it() {
        assert_eq!(printable("abcde", 5), "abcde");
        assert_eq!(printable("abcdef", 5), "abcd…");
        assert_eq!(printable("\u{1b}[0m\"x\"", 20), "\\u{1b}[0m\"x\"");
        assert_eq!(printable("abc\u{1b}", 5), "abc…");
        assert_eq!(printable("ääääää", 5), "ääää…");
    }
}
