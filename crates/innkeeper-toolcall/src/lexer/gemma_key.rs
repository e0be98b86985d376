//! Look-ahead of the lexer for Gemma's calls: keys, example calls and brackets.

use super::gemma::CALL_PREFIX;
use super::{
    MAX_NAME_BYTES, PrefixMatch, first_bytes, is_name, match_after_whitespace, match_prefix,
};

/// The key of a member at the start of a text.
pub(super) enum KeyMatch<'t> {
    Key(&'t str),
    No,
    NeedMore,
}

/// Reads a key up to its colon.
pub(super) fn match_key<'t>(text: &'t str, quote: &str) -> KeyMatch<'t> {
    let text = text.trim_start();
    let text = match match_prefix(text, quote) {
        PrefixMatch::Yes => &text[quote.len()..],
        PrefixMatch::Partial => return KeyMatch::NeedMore,
        PrefixMatch::No => text,
    };
    let bounded = first_bytes(text, MAX_NAME_BYTES + 1);
    let end = bounded.find(|letter: char| ":=,{}[]<>\n".contains(letter));
    match end {
        None if text.len() > MAX_NAME_BYTES => KeyMatch::No,
        None => KeyMatch::NeedMore,
        Some(end) if end == 0 || end > MAX_NAME_BYTES => KeyMatch::No,
        Some(end) => {
            let rest = &text[end..];
            match match_prefix(rest, quote) {
                PrefixMatch::Yes => {
                    match match_after_whitespace(&rest[quote.len()..], &[":"], None) {
                        PrefixMatch::Yes => KeyMatch::Key(&text[..end]),
                        PrefixMatch::Partial => KeyMatch::NeedMore,
                        PrefixMatch::No => KeyMatch::No,
                    }
                }
                PrefixMatch::Partial => KeyMatch::NeedMore,
                PrefixMatch::No if rest.starts_with([':', '=']) => {
                    KeyMatch::Key(text[..end].trim().trim_matches('"'))
                }
                PrefixMatch::No => KeyMatch::No,
            }
        }
    }
}

/// Whether the text after the start of a call is a name with a bracket, and whether more text
/// decides.
pub(super) fn is_example_head(text: &str) -> (bool, bool) {
    let end = first_bytes(text, MAX_NAME_BYTES + 1).find(['{', '(', '<', '\n']);
    match end {
        None => (false, text.len() <= MAX_NAME_BYTES),
        Some(end) => {
            let head = text[..end].trim();
            let name = head.strip_prefix(CALL_PREFIX).unwrap_or(head);
            (text[end..].starts_with(['{', '(']) && is_name(name.trim()), false)
        }
    }
}

pub(super) fn closing_bracket(open: u8) -> u8 {
    match open {
        b'(' => b')',
        b'[' => b']',
        _ => b'}',
    }
}
