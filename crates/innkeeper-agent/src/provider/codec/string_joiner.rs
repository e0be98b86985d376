//! Decodes a text that arrives as a sequence of JSON strings.

use serde_json::value::RawValue;

use super::{ObjectView, decode_string};

/// Number of bytes in an escaped UTF-16 unit such as `\ud83d`.
const UNICODE_ESCAPE_LEN: usize = 6;

/// Holds a high surrogate at the end of a string until the next string: servers that split text by
/// UTF-16 units send the low surrogate there. A high surrogate without its low surrogate is dropped
/// at the end.
#[derive(Debug, Default)]
pub(crate) struct StringJoiner(Option<String>);

impl StringJoiner {
    /// Decodes the next string; `None` if the value is not a string.
    pub(crate) fn decode_next(&mut self, raw: &RawValue) -> Option<String> {
        let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
        let (now, half) = inner.split_at(inner.len() - trailing_surrogate_len(inner));
        if self.0.is_none() && half.is_empty() {
            return decode_string(raw);
        }
        let text = if now.is_empty() && !half.is_empty() {
            // Two high surrogates in a row: the first one has no low surrogate.
            self.0.take().map(|_| char::REPLACEMENT_CHARACTER.into()).unwrap_or_default()
        } else {
            let before = if now.is_empty() { None } else { self.0.take() };
            let literal = format!("\"{}{now}\"", before.unwrap_or_default());
            decode_string(&RawValue::from_string(literal).ok()?)?
        };
        if !half.is_empty() {
            self.0 = Some(half.to_owned());
        }
        Some(text)
    }

    pub(crate) fn decode_next_field(
        &mut self,
        fields: &ObjectView<'_>,
        name: &str,
    ) -> Option<String> {
        self.decode_next(fields.get(name)?)
    }
}

/// Returns the number of bytes of a high surrogate escape at the end of a string, else 0.
fn trailing_surrogate_len(inner: &str) -> usize {
    let Some(at) = inner.len().checked_sub(UNICODE_ESCAPE_LEN) else { return 0 };
    let (before, last) = inner.as_bytes().split_at(at);
    let is_half = matches!(
        last,
        [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', one, two]
            if one.is_ascii_hexdigit() && two.is_ascii_hexdigit()
    );
    // After an escaped backslash, the next backslash starts no escape.
    let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    if is_half && escapes % 2 == 0 { UNICODE_ESCAPE_LEN } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn join(strings: &[&str]) -> Vec<String> {
        let mut joined = StringJoiner::default();
        let raw = |text: &&str| RawValue::from_string(format!("\"{text}\"")).unwrap();
        strings.iter().map(|text| joined.decode_next(&raw(text)).unwrap()).collect()
    }

    #[test]
    fn half_a_surrogate_pair_waits_for_the_other_half() {
        for (strings, texts) in [
            (&["a", "b"][..], &["a", "b"][..]),
            (&[r"a\ud83d", r"\ude00b"], &["a", "\u{1f600}b"]),
            (&[r"a\uD83D", "", r"\uDE00"], &["a", "", "\u{1f600}"]),
            (&[r"\ud83d", r"\ude00\ud83d", r"\ude01"], &["", "\u{1f600}", "\u{1f601}"]),
            (&[r"a\ud83d\ude00", "b"], &["a\u{1f600}", "b"]),
            // An escaped backslash with letters is not a surrogate.
            (&[r"a\\ud83d", r"\ud83d\ude00"], &[r"a\ud83d", "\u{1f600}"]),
            (&[r"a\\\ud83d", r"\ude00"], &[r"a\", "\u{1f600}"]),
            (&["ü", "ud83d"], &["ü", "ud83d"]),
        ] {
            assert_eq!(join(strings), texts, "{strings:?}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_whose_other_half_does_not_come_costs_no_text() {
        let texts = join(&[r"a\ud83d", "b", r"\ude00c", r"\ud83d", r"\ud83d", r"\ude00"]);
        assert!(texts[1].starts_with('\u{fffd}') && texts[1].ends_with('b'), "{texts:?}");
        assert!(texts[2].starts_with('\u{fffd}') && texts[2].ends_with('c'), "{texts:?}");
        assert_eq!(texts[3..], ["", "\u{fffd}", "\u{1f600}"]);
    }
}
