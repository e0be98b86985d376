//! Untrusted text: escaping for display and detection of deceptive text.

mod confusable_names;
mod json_walk;
mod model_visible;
mod plain;

use std::borrow::Cow;
use std::fmt::Write;

pub(crate) use confusable_names::ConfusableNames;
pub(crate) use json_walk::{JsonNode, PathSegment, segment_names, walk_json};
pub(crate) use model_visible::{
    VisibleMembers, has_hidden_characters, hidden_characters, model_visible_text,
};
pub(crate) use plain::{is_variation_selector, look_alike_letter, plain_text, visible_text};

/// Escapes every character for which [`is_deceptive_char`] returns true.
pub fn display_safe(text: &str) -> Cow<'_, str> {
    let Some(first) = text.find(is_deceptive_char) else { return Cow::Borrowed(text) };
    let mut safe = String::with_capacity(text.len() + 8);
    safe.push_str(&text[..first]);
    for character in text[first..].chars() {
        if is_deceptive_char(character) {
            // Writing to a string cannot fail.
            let _ = write!(safe, "\\u{{{:x}}}", u32::from(character));
        } else {
            safe.push(character);
        }
    }
    Cow::Owned(safe)
}

/// Returns the first `characters` characters of a text, escaped for display.
pub(crate) fn display_prefix(text: &str, characters: usize) -> Cow<'_, str> {
    let end = text.char_indices().nth(characters).map_or(text.len(), |(at, _)| at);
    display_safe(&text[..end])
}

/// Returns whether a character could control a terminal, reorder the text around it or be
/// invisible: control characters except newline and tab, bidirectional controls, zero-width and
/// other invisible characters, tags and variation selectors.
pub fn is_deceptive_char(character: char) -> bool {
    match character {
        '\n' | '\t' => false,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{180e}' | '\u{3164}' => {
            true
        }
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        '\u{fe00}'..='\u{fe0e}' | '\u{feff}' | '\u{ffa0}' | '\u{fff9}'..='\u{fffb}' => true,
        '\u{e0000}'..='\u{e0fff}' => true,
        other => other.is_control(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_text_is_returned_as_it_is() {
        let text = "Grüße, 世界 👋🏽 ❤\u{fe0f}\n\tone\t– two";
        assert!(matches!(display_safe(text), Cow::Borrowed(same) if same == text));
    }

    /// Attack: terminal | text with escape codes, direction marks and invisible characters | each
    /// character is escaped | Foreign text stays text
    #[test]
    fn what_steers_a_terminal_or_hides_is_escaped_and_the_rest_kept() {
        for (text, safe) in [
            ("a\u{1b}[2Jb", r"a\u{1b}[2Jb"),
            ("a\rb\u{7}", r"a\u{d}b\u{7}"),
            ("\u{9b}31m\u{7f}", r"\u{9b}31m\u{7f}"),
            ("user\u{202e}txt.exe\u{2069}", r"user\u{202e}txt.exe\u{2069}"),
            ("pay\u{200b}pal\u{feff}", r"pay\u{200b}pal\u{feff}"),
            ("x\u{e0041}\u{e007f}", r"x\u{e0041}\u{e007f}"),
            ("line\u{2028}line", r"line\u{2028}line"),
        ] {
            assert_eq!(display_safe(text), safe);
        }
    }
}
