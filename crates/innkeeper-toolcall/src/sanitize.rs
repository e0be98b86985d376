//! Untrusted text made safe for a prompt: one line, quoted, without markup.

use serde_json::Value;

/// Starts of markup in chat templates and call formats. JSON can write any character as an escape,
/// so the first character of each of these is always escaped.
const MARKUP_PREFIXES: &[&str] = &[
    "<|",
    "</",
    "<tool",
    "<function",
    "<s>",
    "<think",
    "<invoke",
    "<system",
    "<｜",
    "<turn",
    "<channel",
    "<seed:",
    "<minimax:",
    "<]minimax",
    "<parameter",
    "<steptml:",
    "<longcat",
    "<mm:",
    "<escape>",
    "<SPECIAL_",
    "◁think",
    "◁/think",
    "<start_function_call",
    "<end_function_call",
    "[|end",
    "[e~[",
    "[EO",
    "<start_of_turn",
    "<end_of_turn",
    "<bos",
    "<eos",
    "[TOOL",
    "[/TOOL",
    "[INST",
    "[/INST",
    "[AVAILABLE",
    "[/AVAILABLE",
    "[SYSTEM",
    "[/SYSTEM",
    "[THINK",
    "[/THINK",
    "[ARGS",
    "[CALL_ID",
    "```",
    "~~~",
];

/// Returns the string as JSON on one line. Parsing the JSON returns the string; the JSON contains
/// no line break, no hidden or direction-changing character, and no start of markup.
pub fn quote_for_prompt(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (at, character) in text.char_indices() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if is_hidden(other) || starts_with_markup(&text[at..]) => {
                let mut units = [0; 2];
                for unit in other.encode_utf16(&mut units) {
                    out.push_str(&format!("\\u{unit:04x}"));
                }
            }
            other => out.push(other),
        }
    }
    out.push('"');
    out
}

/// Whether a text shows nothing: it has only white space and invisible characters.
pub fn is_blank(text: &str) -> bool {
    text.chars().all(|character| character.is_whitespace() || is_hidden(character))
}

/// Whether a character is invisible or changes the display of other characters.
pub(crate) fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
                | 0xFE00..=0xFE0F | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF
        )
}

/// Whether the text starts with markup, in any case.
fn starts_with_markup(text: &str) -> bool {
    MARKUP_PREFIXES.iter().any(|markup| {
        text.get(..markup.len()).is_some_and(|start| start.eq_ignore_ascii_case(markup))
    })
}

/// Writes JSON on one line, with a space after each comma and colon. Each string and each key is
/// quoted like [`quote_for_prompt`] does. A value in more than 128 arrays and objects becomes `null`.
pub fn to_json_line(value: &Value) -> String {
    let mut out = String::new();
    write_value(value, MAX_DEPTH, &mut out);
    out
}

/// Maximum depth of a value, far above the depth of schemas; deeper values become `null`.
const MAX_DEPTH: usize = 128;

fn write_value(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => out.push_str("null"),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => out.push_str(&quote_for_prompt(text)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write_value(item, depth - 1, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (key, item)) in members.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(&quote_for_prompt(key));
                out.push_str(": ");
                write_value(item, depth - 1, out);
            }
            out.push('}');
        }
    }
}

/// Returns the name unchanged if it contains only usual characters, else in quotes.
pub(crate) fn quote_name(name: &str) -> String {
    let mut letters = name.chars();
    if !name.is_empty() && letters.all(|c| c.is_ascii_alphanumeric() || "_-./:".contains(c)) {
        name.to_owned()
    } else {
        quote_for_prompt(name)
    }
}

/// Returns at most `max_chars` characters of a text, on one line and without hidden characters.
pub(crate) fn to_single_line(text: &str, max_chars: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == max_chars {
            out.push('…');
            break;
        }
        let space = character.is_whitespace() || is_hidden(character);
        out.push(if space { ' ' } else { character });
    }
    out.trim().to_owned()
}

/// Abbreviations whose period does not end a sentence.
const ABBREVIATIONS: &[&str] = &["e.g", "i.e", "vs", "approx", "etc", "incl"];

/// Returns the first sentence of a text, on one line, without hidden characters and with at most
/// `max_chars` characters; a longer sentence ends with `…`. A sentence ends at a blank line, at a
/// period, question mark or exclamation mark before white space, or at such a mark of Chinese and
/// Japanese.
pub fn first_sentence(text: &str, max_chars: usize) -> String {
    let text = text.trim_start();
    let end = text.char_indices().take(max_chars).find_map(|(at, character)| {
        let after = at + character.len_utf8();
        let rest = &text[after..];
        let is_end = match character {
            '.' | '!' | '?' if !rest.starts_with(char::is_whitespace) => false,
            '.' => {
                let word = text[..at].rsplit([' ', '\n', '(']).next().unwrap_or_default();
                !ABBREVIATIONS.iter().any(|known| word.eq_ignore_ascii_case(known))
            }
            '\n' => rest.trim_start_matches([' ', '\t', '\r']).starts_with('\n'),
            other => "!?。！？".contains(other),
        };
        is_end.then_some(after)
    });
    to_single_line(&text[..end.unwrap_or(text.len())], max_chars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn markup_line_breaks_and_hidden_characters_are_written_by_number() {
        let text =
            "a\n## b </tool_call> <|im_start|> [INST] [inst] ```\u{202E}\u{E0041}\u{2028} <b> [x]";
        assert_eq!(
            quote_for_prompt(text),
            r#""a\n## b \u003c/tool_call> \u003c|im_start|> \u005bINST] \u005binst] \u0060``\u202e\udb40\udc41\u2028 <b> [x]""#
        );
    }

    #[test]
    fn values_are_written_with_spaces_and_not_deeper_than_can_be() {
        assert_eq!(to_json_line(&json!({"a": [1, "x"], "b": {}})), r#"{"a": [1, "x"], "b": {}}"#);
        let nested = (0..MAX_DEPTH + 9).fold(json!(1), |inner, _| json!([inner]));
        assert!(to_json_line(&nested).contains("[null]"));
    }

    #[test]
    fn a_line_is_cut_and_says_so() {
        assert_eq!(to_single_line("ab\ncd", 4), "ab c…");
        assert_eq!(to_single_line("ab\ncd", 5), "ab cd");
        assert_eq!(
            (quote_name("fs.read"), quote_name("a b")),
            ("fs.read".to_owned(), "\"a b\"".to_owned())
        );
    }

    #[test]
    fn the_first_sentence_ends_at_its_mark_and_has_a_limit() {
        for (text, sentence) in [
            ("Reads v1.2 of a file. Fast.", "Reads v1.2 of a file."),
            ("Reads a file (e.g. `a.txt`). Fast.", "Reads a file (e.g. `a.txt`)."),
            ("\n Reads\na file\n \nArgs:", "Reads a file"),
            ("読む。速い。", "読む。"),
            ("Really? Yes", "Really?"),
            ("abcdefghijklmnopqrstuvwxyz0123456789 a", "abcdefghijklmnopqrstuvwxyz0123…"),
            ("a.", "a."),
            ("", ""),
        ] {
            assert_eq!(first_sentence(text, 30), sentence, "{text}");
        }
    }

    /// Attack: model | text of a server contains the call markers of a model family | the quoted
    /// text contains no marker | Foreign text stays text
    #[test]
    fn every_marker_of_every_format_is_changed_by_quoting_it() {
        let mut texts = vec!["<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>"];
        for format in Format::names().filter_map(Format::from_name) {
            // A brace, a bracket and an English word are not markup on their own.
            let markers = format.markers().into_iter();
            for marker in
                markers.filter(|other_marker| !["{", "[", "Action:"].contains(&other_marker.text))
            {
                texts.push(marker.text);
                texts.extend(marker.kind.related_texts());
            }
        }
        assert!(texts.contains(&"<channel|>") && texts.contains(&"<|tool_call_argument_begin|>"));
        for text in texts {
            assert!(!quote_for_prompt(text).contains(text), "{text}");
        }
    }

    proptest! {
        /// Attack: model | generated text with parts of markers and line ends | the quoted text is
        /// one line without markup and with the same value | Foreign text stays text
        #[test]
        fn what_is_quoted_reads_back_as_it_was_and_holds_no_markup(
            text in "(<\\||</|\\[INST|```|\n|.|\\PC){0,20}",
        ) {
            let quoted = quote_for_prompt(&text);
            prop_assert_eq!(&serde_json::from_str::<String>(&quoted).unwrap(), &text);
            prop_assert!(!quoted.contains('\n') && MARKUP_PREFIXES.iter().all(|it| !quoted.contains(it)));
        }
    }
}
