//! Escapes untrusted text for a terminal.

use std::borrow::Cow;

/// Escapes deceptive characters but keeps newlines and tabs, for multi-line text.
pub(crate) use innkeeper_host::display_safe as block;

/// Escapes deceptive characters, including newlines and tabs, for text on one line.
pub(crate) fn escape_inline(text: &str) -> Cow<'_, str> {
    let safe = block(text);
    if safe.contains(['\n', '\t']) {
        return Cow::Owned(safe.replace('\n', "\\n").replace('\t', "\\t"));
    }
    safe
}

/// Whether a character is deceptive in a single line.
pub(crate) fn is_deceptive(c: char) -> bool {
    matches!(c, '\n' | '\t') || innkeeper_host::is_deceptive_char(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        for text in ["", "plain", "Grüße, 世界 🦀", "{\"a\": 1}"] {
            assert!(matches!(escape_inline(text), Cow::Borrowed(same) if same == text));
        }
    }

    #[test]
    fn controls_bidi_and_invisible_characters_are_spelled_out() {
        assert_eq!(escape_inline("a\u{1b}[31mb"), "a\\u{1b}[31mb");
        assert_eq!(escape_inline("a\u{9b}b"), "a\\u{9b}b");
        assert_eq!(escape_inline("user\u{202e}txt.exe"), "user\\u{202e}txt.exe");
        assert_eq!(escape_inline("hid\u{e0041}den\u{200b}"), "hid\\u{e0041}den\\u{200b}");
        assert_eq!(escape_inline("one\r\ntwo\tthree"), "one\\u{d}\\ntwo\\tthree");
    }

    #[test]
    fn a_block_keeps_its_lines_but_not_carriage_returns() {
        assert_eq!(block("a\n\tb\rc\u{7}"), "a\n\tb\\u{d}c\\u{7}");
    }
}
