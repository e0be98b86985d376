//! Untrusted text in messages: quoted, escaped, shortened.

/// Maximum number of characters of a name or value in a message.
const MAX_QUOTED_CHARS: usize = 60;

/// Returns `text` in back-ticks, at most 60 characters, with control characters and invisible
/// characters escaped. Quotation marks and backslashes stay, so that a pattern is readable.
pub fn quote(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len().min(MAX_QUOTED_CHARS) + 2);
    quoted.push('`');
    for character in text.chars().take(MAX_QUOTED_CHARS) {
        match character {
            '"' | '\'' | '\\' => quoted.push(character),
            _ => quoted.extend(character.escape_debug()),
        }
    }
    if text.chars().nth(MAX_QUOTED_CHARS).is_some() {
        quoted.push('…');
    }
    quoted.push('`');
    quoted
}

/// Returns `text` as a string in double quotes, escaped and shortened. The double quotes distinguish
/// the string `"2"` from the number `2`.
pub(crate) fn quote_string(text: &str) -> String {
    match text.char_indices().nth(MAX_QUOTED_CHARS) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}

pub(crate) fn describe_location(pointer: &str) -> String {
    if pointer.is_empty() { "the root".to_owned() } else { quote(pointer) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_and_strange_texts_are_shortened_and_escaped() {
        let long = "ä".repeat(100);
        assert_eq!(quote(&long), format!("`{}…`", "ä".repeat(60)));
        assert_eq!(quote_string(&long), format!("\"{}\"…", "ä".repeat(60)));
        assert_eq!(quote("\u{1b}[31m\u{202e}\n\"\\d"), r#"`\u{1b}[31m\u{202e}\n"\d`"#);
        assert_eq!(quote_string("\u{1b}[31m\u{202e}\n\""), r#""\u{1b}[31m\u{202e}\n\"""#);
        assert_eq!(quote(&"x".repeat(60)), format!("`{}`", "x".repeat(60)));
    }
}
