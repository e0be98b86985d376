//! Text from servers and files made harmless for a terminal.

use std::borrow::Cow;
use std::fmt::Write;

/// Escapes everything a terminal or a reader could be fooled by, newlines and tabs included.
pub(crate) fn inline(text: &str) -> Cow<'_, str> {
    escape(text, deceives)
}

/// Like [`inline`], but keeps newlines and tabs: for text shown as a block.
pub(crate) fn block(text: &str) -> Cow<'_, str> {
    escape(text, |c| deceives(c) && !matches!(c, '\n' | '\t'))
}

/// Whether a character acts on a terminal, reorders text, or cannot be seen.
pub(crate) fn deceives(c: char) -> bool {
    if c.is_ascii() {
        return c.is_ascii_control();
    }
    matches!(c,
        '\u{80}'..='\u{9f}'                          // C1 controls
        | '\u{ad}' | '\u{61c}' | '\u{180e}'          // soft hyphen, Arabic and Mongolian marks
        | '\u{200b}'..='\u{200f}'                    // zero width, direction marks
        | '\u{2028}'..='\u{202e}'                    // separators, embeddings, overrides
        | '\u{2060}'..='\u{206f}'                    // joiners, isolates
        | '\u{feff}' | '\u{fff9}'..='\u{fffb}'       // byte order mark, interlinear
        | '\u{e0000}'..='\u{e0fff}') // tags and variation selectors supplement
}

fn escape(text: &str, refused: impl Fn(char) -> bool) -> Cow<'_, str> {
    let Some(first) = text.find(&refused) else { return Cow::Borrowed(text) };
    let mut safe = String::with_capacity(text.len() + 16);
    safe.push_str(&text[..first]);
    for c in text[first..].chars() {
        match c {
            c if !refused(c) => safe.push(c),
            '\n' => safe.push_str("\\n"),
            '\r' => safe.push_str("\\r"),
            '\t' => safe.push_str("\\t"),
            c => {
                let written = write!(safe, "\\u{{{:x}}}", u32::from(c));
                debug_assert!(written.is_ok(), "a String takes every write");
            }
        }
    }
    Cow::Owned(safe)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        for text in ["", "plain", "Grüße, 世界 🦀", "{\"a\": 1}"] {
            assert!(matches!(inline(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn controls_bidi_and_invisible_characters_are_spelled_out() {
        assert_eq!(inline("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(inline("a\u{9b}b"), "a\\u{9b}b");
        assert_eq!(inline("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        assert_eq!(inline("hid\u{e0041}den\u{200b}"), "hid\\u{e0041}den\\u{200b}");
        assert_eq!(inline("one\r\ntwo\tthree"), "one\\r\\ntwo\\tthree");
    }

    #[test]
    fn a_block_keeps_its_lines_but_not_carriage_returns() {
        assert_eq!(block("a\n\tb\rc\u{7}"), "a\n\tb\\rc\\u{7}");
    }
}
