//! Text from servers and files made harmless for a terminal.

use std::borrow::Cow;

/// Escapes all that deceives, but keeps newlines and tabs: for text shown as a block.
pub(crate) use innkeeper_host::display_safe as block;

/// Escapes everything a terminal or a reader could be fooled by, newlines and tabs included.
pub(crate) fn inline(text: &str) -> Cow<'_, str> {
    let safe = block(text);
    if safe.contains(['\n', '\t']) {
        return Cow::Owned(safe.replace('\n', "\\n").replace('\t', "\\t"));
    }
    safe
}

/// Whether a character does not belong into a line.
pub(crate) fn deceives(c: char) -> bool {
    matches!(c, '\n' | '\t') || innkeeper_host::deceives(c)
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
        assert_eq!(inline("one\r\ntwo\tthree"), "one\\u{d}\\ntwo\\tthree");
    }

    #[test]
    fn a_block_keeps_its_lines_but_not_carriage_returns() {
        assert_eq!(block("a\n\tb\rc\u{7}"), "a\n\tb\\u{d}c\\u{7}");
    }
}
