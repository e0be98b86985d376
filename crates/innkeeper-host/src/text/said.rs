//! What a definition says to a model, and whether some of it is hidden from people.

use serde_json::Value;
use serde_json::value::RawValue;

use super::deceives;

/// Members whose text is an address or a pattern by its nature and not said to a model.
const NOT_SAID: [&str; 4] = ["$schema", "$id", "$ref", "pattern"];

/// Whether a member of a definition is said to a model, by the name of what has the member. One that
/// has another value than its keyword has, and a property of that name, are.
pub(crate) fn is_said(of: Option<&str>, name: &str, value: &Value) -> bool {
    let by_nature = match value {
        Value::String(_) => NOT_SAID.contains(&name),
        // Only a tool has icons, no part of it.
        Value::Array(_) => of.is_none() && name == "icons",
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => false,
    };
    !by_nature || of == Some("properties")
}

/// Everything in a definition that a model may be told, member names included.
pub(crate) fn said(value: &Value) -> String {
    let mut said = String::new();
    collect(None, value, &mut said);
    said
}

fn collect(of: Option<&str>, value: &Value, said: &mut String) {
    match value {
        Value::String(text) => {
            said.push_str(text);
            said.push('\n');
        }
        Value::Array(items) => items.iter().for_each(|item| collect(of, item, said)),
        Value::Object(members) => {
            for (name, value) in members.iter().filter(|(name, value)| is_said(of, name, value)) {
                said.push_str(name);
                said.push('\n');
                collect(Some(name), value, said);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// The characters of a text that [`deceives`] tells, without those that writing needs: the end of a
/// line as other systems write it, and joiners between letters that are not Latin, or in an emoji.
pub(crate) fn hidden(text: &str) -> String {
    let mut hidden = String::new();
    let mut before = None;
    let mut rest = text.chars().peekable();
    while let Some(character) = rest.next() {
        let after = rest.peek().copied();
        let written = match character {
            '\r' => after == Some('\n'),
            '\u{200c}' | '\u{200d}' => [before, after]
                .into_iter()
                .all(|beside| beside.is_some_and(|beside| !beside.is_ascii() && !deceives(beside))),
            _ => false,
        };
        if deceives(character) && !written {
            hidden.push(character);
        }
        before = Some(character);
    }
    hidden
}

/// Whether a definition hides something, read only where its spelling does not exclude that.
pub(crate) fn hides(definition: &RawValue) -> bool {
    let spelled = definition.get();
    if !spelled.contains("\\u") && !spelled.contains(deceives) {
        return false;
    }
    let read = serde_json::from_str::<Value>(spelled);
    // What cannot be read as a value is judged by its spelling.
    let said = read.map_or_else(|_| spelled.to_owned(), |value| said(&value));
    !hidden(&said).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides_in(definition: &str) -> bool {
        hides(&RawValue::from_string(definition.to_owned()).unwrap())
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
            assert!(hides_in(&format!(r#"{{"description":"{text}"}}"#)), "{text}");
        }
        assert!(
            hides_in(r#"{"inputSchema":{"properties":{"a\u200bb":{}}}}"#),
            "names are said too"
        );
        assert!(!hides_in(r#"{"inputSchema":{"pattern":"\u200b"}}"#), "a pattern is not said");
    }

    #[test]
    fn what_is_only_called_like_a_keyword_that_nobody_says_is_said() {
        for definition in [
            r#"{"inputSchema":{"properties":{"pattern":{"description":"\u200b"}}}}"#,
            r#"{"inputSchema":{"properties":{"icons":["\u200b"]}}}"#,
            r#"{"inputSchema":{"properties":{"$ref":"\u200b"}}}"#,
            r#"{"inputSchema":{"icons":["\u200b"]}}"#,
            r#"{"icons":"\u200b"}"#,
            r#"{"pattern":["\u200b"]}"#,
        ] {
            assert!(hides_in(definition), "{definition}");
        }
        assert!(!hides_in(r#"{"icons":[{"src":"\u200b"}]}"#));
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
            assert!(!hides_in(&format!(r#"{{"description":"{text}"}}"#)), "{text}");
        }
    }
}
