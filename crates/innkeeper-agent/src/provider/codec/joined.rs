//! A text that comes as JSON strings, one behind the other.

use serde_json::value::RawValue;

use super::{Fields, string};

/// How long half a surrogate pair is as it is written: `\ud83d`.
const ESCAPE: usize = 6;

/// Keeps the first half of a surrogate pair that ends a string for the next one: servers that cut a
/// text by UTF-16 send the other half there. One whose other half never comes is left out.
#[derive(Debug, Default)]
pub(crate) struct Joined(Option<String>);

impl Joined {
    /// The text of the next string; `None` of what is none.
    pub(crate) fn string(&mut self, raw: &RawValue) -> Option<String> {
        let inner = raw.get().strip_prefix('"')?.strip_suffix('"')?;
        let (now, half) = inner.split_at(inner.len() - half(inner));
        if self.0.is_none() && half.is_empty() {
            return string(raw);
        }
        let text = if now.is_empty() && !half.is_empty() {
            // Two first halves in a row: the one before is alone.
            self.0.take().map(|_| char::REPLACEMENT_CHARACTER.into()).unwrap_or_default()
        } else {
            let before = if now.is_empty() { None } else { self.0.take() };
            let whole = format!("\"{}{now}\"", before.unwrap_or_default());
            string(&RawValue::from_string(whole).ok()?)?
        };
        if !half.is_empty() {
            self.0 = Some(half.to_owned());
        }
        Some(text)
    }

    /// The text of the next string, which is a field.
    pub(crate) fn text(&mut self, fields: &Fields<'_>, name: &str) -> Option<String> {
        self.string(fields.get(name)?)
    }
}

/// How many bytes at the end of a string are the first half of a surrogate pair.
fn half(inner: &str) -> usize {
    let Some(at) = inner.len().checked_sub(ESCAPE) else { return 0 };
    let (before, last) = inner.as_bytes().split_at(at);
    let is_half = matches!(
        last,
        [b'\\', b'u', b'd' | b'D', b'8' | b'9' | b'a' | b'b' | b'A' | b'B', one, two]
            if one.is_ascii_hexdigit() && two.is_ascii_hexdigit()
    );
    // Behind a backslash, the next one begins nothing.
    let escapes = before.iter().rev().take_while(|byte| **byte == b'\\').count();
    if is_half && escapes % 2 == 0 { ESCAPE } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(strings: &[&str]) -> Vec<String> {
        let mut joined = Joined::default();
        let raw = |text: &&str| RawValue::from_string(format!("\"{text}\"")).unwrap();
        strings.iter().map(|text| joined.string(&raw(text)).unwrap()).collect()
    }

    #[test]
    fn half_a_surrogate_pair_waits_for_the_other_half() {
        for (strings, texts) in [
            (&["a", "b"][..], &["a", "b"][..]),
            (&[r"a\ud83d", r"\ude00b"], &["a", "\u{1f600}b"]),
            (&[r"a\uD83D", "", r"\uDE00"], &["a", "", "\u{1f600}"]),
            (&[r"\ud83d", r"\ude00\ud83d", r"\ude01"], &["", "\u{1f600}", "\u{1f601}"]),
            (&[r"a\ud83d\ude00", "b"], &["a\u{1f600}", "b"]),
            // A backslash and letters are no half.
            (&[r"a\\ud83d", r"\ud83d\ude00"], &[r"a\ud83d", "\u{1f600}"]),
            (&[r"a\\\ud83d", r"\ude00"], &[r"a\", "\u{1f600}"]),
            (&["ü", "ud83d"], &["ü", "ud83d"]),
        ] {
            assert_eq!(joined(strings), texts, "{strings:?}");
        }
    }

    #[test]
    fn half_a_surrogate_pair_whose_other_half_does_not_come_costs_no_text() {
        let texts = joined(&[r"a\ud83d", "b", r"\ude00c", r"\ud83d", r"\ud83d", r"\ude00"]);
        assert!(texts[1].starts_with('\u{fffd}') && texts[1].ends_with('b'), "{texts:?}");
        assert!(texts[2].starts_with('\u{fffd}') && texts[2].ends_with('c'), "{texts:?}");
        assert_eq!(texts[3..], ["", "\u{fffd}", "\u{1f600}"]);
    }
}
