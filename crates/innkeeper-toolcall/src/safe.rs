//! Foreign words made safe to stand in a prompt: on one line, in quotes, without anyone's markup.

use serde_json::Value;

/// Beginnings of what chat templates and call formats read as markup. JSON may write any character
/// by its number, so that the first one of each never stands there.
const MARKUP: &[&str] = &[
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

/// A string as JSON on one line. What is read from it is the string; what is seen holds no line
/// break, no hidden or direction-changing character, and no beginning of markup.
pub fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for (at, character) in text.char_indices() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            other if hidden(other) || opens_markup(&text[at..]) => {
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

/// Whether a character is not seen, or changes how others are.
fn hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            u32::from(character),
            0xAD | 0x61C | 0x180E | 0x200B..=0x200F | 0x2028..=0x202E | 0x2060..=0x206F
                | 0xFE00..=0xFE0F | 0xFEFF | 0xFFF9..=0xFFFB | 0xE0000..=0xE0FFF
        )
}

/// Whether the text begins with the beginning of markup, in any case.
fn opens_markup(text: &str) -> bool {
    MARKUP.iter().any(|markup| {
        text.get(..markup.len()).is_some_and(|start| start.eq_ignore_ascii_case(markup))
    })
}

/// A JSON value on one line, with a space after each comma and colon, its strings and keys safe.
pub(crate) fn spaced(value: &Value) -> String {
    let mut out = String::new();
    write(value, DEEPEST, &mut out);
    out
}

/// The deepest value that is written, far deeper than schemas are; what is deeper becomes `null`.
const DEEPEST: usize = 128;

fn write(value: &Value, depth: usize, out: &mut String) {
    match value {
        Value::Array(_) | Value::Object(_) if depth == 0 => out.push_str("null"),
        Value::Null | Value::Bool(_) | Value::Number(_) => out.push_str(&value.to_string()),
        Value::String(text) => out.push_str(&quoted(text)),
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                write(item, depth - 1, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            out.push('{');
            for (at, (key, item)) in members.iter().enumerate() {
                out.push_str(if at == 0 { "" } else { ", " });
                out.push_str(&quoted(key));
                out.push_str(": ");
                write(item, depth - 1, out);
            }
            out.push('}');
        }
    }
}

/// A name as it is where it is of the usual characters, else in quotes.
pub(crate) fn label(name: &str) -> String {
    let usual = |it: char| it.is_ascii_alphanumeric() || "_-./:".contains(it);
    if !name.is_empty() && name.chars().all(usual) { name.to_owned() } else { quoted(name) }
}

/// At most so many characters of a text on one line, with nothing hidden in it.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut out = String::new();
    for (count, character) in text.chars().enumerate() {
        if count == most {
            out.push('…');
            break;
        }
        let space = character.is_whitespace() || hidden(character);
        out.push(if space { ' ' } else { character });
    }
    out.trim().to_owned()
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
            quoted(text),
            r#""a\n## b \u003c/tool_call> \u003c|im_start|> \u005bINST] \u005binst] \u0060``\u202e\udb40\udc41\u2028 <b> [x]""#
        );
    }

    #[test]
    fn values_are_written_with_spaces_and_not_deeper_than_can_be() {
        assert_eq!(spaced(&json!({"a": [1, "x"], "b": {}})), r#"{"a": [1, "x"], "b": {}}"#);
        let deep = (0..DEEPEST + 9).fold(json!(1), |inner, _| json!([inner]));
        assert!(spaced(&deep).contains("[null]"));
    }

    #[test]
    fn a_line_is_cut_and_says_so() {
        assert_eq!(line("ab\ncd", 4), "ab c…");
        assert_eq!(line("ab\ncd", 5), "ab cd");
        assert_eq!((label("fs.read"), label("a b")), ("fs.read".to_owned(), "\"a b\"".to_owned()));
    }

    #[test]
    fn every_marker_of_every_format_is_changed_by_quoting_it() {
        let mut texts = vec!["<start_of_turn>", "<end_of_turn>", "<bos>", "<eos>", "<s>", "</s>"];
        for format in Format::names().filter_map(Format::named) {
            // A brace, a bracket and a word of prose are no markup by themselves.
            let markers = format.markers().into_iter();
            for marker in markers.filter(|it| !["{", "[", "Action:"].contains(&it.text)) {
                texts.push(marker.text);
                texts.extend(marker.mark.others());
            }
        }
        assert!(texts.contains(&"<channel|>") && texts.contains(&"<|tool_call_argument_begin|>"));
        for text in texts {
            assert!(!quoted(text).contains(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn what_is_quoted_reads_back_as_it_was_and_holds_no_markup(
            text in "(<\\||</|\\[INST|```|\n|.|\\PC){0,20}",
        ) {
            let quoted = quoted(&text);
            prop_assert_eq!(&serde_json::from_str::<String>(&quoted).unwrap(), &text);
            prop_assert!(!quoted.contains('\n') && MARKUP.iter().all(|it| !quoted.contains(it)));
        }
    }
}
