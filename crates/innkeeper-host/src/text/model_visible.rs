//! Selects the text of a definition that a model sees, and detects hidden text.

use serde_json::Value;
use serde_json::value::RawValue;

use super::is_deceptive_char;

/// Members with an address or a pattern, which a model does not see.
const NOT_MODEL_VISIBLE: [&str; 4] = ["$schema", "$id", "$ref", "pattern"];

/// Returns whether a model sees a member of a definition; `parent` is the name of the object. A
/// member with an unexpected type, and a property of such a name, count as visible.
pub(crate) fn is_model_visible(parent: Option<&str>, name: &str, value: &Value) -> bool {
    let by_nature = match value {
        Value::String(_) => NOT_MODEL_VISIBLE.contains(&name),
        // Only a tool has icons, not its parts.
        Value::Array(_) => parent.is_none() && name == "icons",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    !by_nature || parent == Some("properties")
}

/// Returns all text of a definition that a model may see, including member names.
pub(crate) fn model_visible_text(value: &Value) -> String {
    let mut visible = String::new();
    collect_text(None, value, &mut visible);
    visible
}

fn collect_text(parent: Option<&str>, value: &Value, visible: &mut String) {
    match value {
        Value::String(text) => {
            visible.push_str(text);
            visible.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect_text(parent, item, visible)),
        Value::Object(members) => {
            for (name, value) in
                members.iter().filter(|(name, value)| is_model_visible(parent, name, value))
            {
                visible.push_str(name);
                visible.push('\n');
                collect_text(Some(name), value, visible);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// Returns the deceptive characters of a text ([`is_deceptive_char`]), except those that ordinary
/// text needs: line endings of other systems, and joiners between non-Latin letters or in an emoji.
pub(crate) fn hidden_characters(text: &str) -> String {
    let mut escaped = String::new();
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let after = rest.peek().copied();
        let escape = match character {
            '\r' => after == Some('\n'),
            '\u{200c}' | '\u{200d}' => [before, after].into_iter().all(|neighbour| {
                neighbour
                    .is_some_and(|neighbour| !neighbour.is_ascii() && !is_deceptive_char(neighbour))
            }),
            _ => false,
        };
        if is_deceptive_char(character) && !escape {
            escaped.push(character);
        }
        before = Some(character);
    }
    escaped
}

/// Returns whether a definition contains hidden text; parses it only if its spelling allows that.
pub(crate) fn has_hidden_characters(definition: &RawValue) -> bool {
    let spelled = definition.get();
    if !spelled.contains("\\u") && !spelled.contains(is_deceptive_char) {
        return false;
    }
    let read = serde_json::from_str::<Value>(spelled);
    // Unparsable JSON is checked as text.
    let visible = read.map_or_else(|_| spelled.to_owned(), |value| model_visible_text(&value));
    !hidden_characters(&visible).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides_characters(definition: &str) -> bool {
        has_hidden_characters(&RawValue::from_string(definition.to_owned()).unwrap())
    }

    #[test]
    fn tags_bidi_controls_zero_width_and_escape_codes_are_found_however_they_are_spelled() {
        for text in [
            "a\u{e0041}b",
            "a\u{202e}b",
            "pay\u{200b}pal",
            "pay\u{200d}pal",
            r"a\u001b[8mb",
            r"a\u200bb",
            r"\udb40\udc41",
        ] {
            assert!(hides_characters(&format!(r#"{{"description":"{text}"}}"#)), "{text}");
        }
        assert!(
            hides_characters(r#"{"inputSchema":{"properties":{"a\u200bb":{}}}}"#),
            "names are said too"
        );
        assert!(
            !hides_characters(r#"{"inputSchema":{"pattern":"\u200b"}}"#),
            "a pattern is not said"
        );
    }

    #[test]
    fn a_property_named_like_an_invisible_keyword_is_model_visible() {
        for definition in [
            r#"{"inputSchema":{"properties":{"pattern":{"description":"\u200b"}}}}"#,
            r#"{"inputSchema":{"properties":{"icons":["\u200b"]}}}"#,
            r#"{"inputSchema":{"properties":{"$ref":"\u200b"}}}"#,
            r#"{"inputSchema":{"icons":["\u200b"]}}"#,
            r#"{"icons":"\u200b"}"#,
            r#"{"pattern":["\u200b"]}"#,
        ] {
            assert!(hides_characters(definition), "{definition}");
        }
        assert!(!hides_characters(r#"{"icons":[{"src":"\u200b"}]}"#));
    }

    #[test]
    fn line_ends_emoji_and_scripts_that_join_their_letters_hide_nothing() {
        for text in [
            r"one\r\ntwo\tthree",
            "👩\u{200d}💻 ❤\u{fe0f}",
            "می\u{200c}خواهم",
            "क्\u{200d}ष",
            r"\u00fc \u2013 \u201c",
        ] {
            assert!(!hides_characters(&format!(r#"{{"description":"{text}"}}"#)), "{text}");
        }
    }
}
