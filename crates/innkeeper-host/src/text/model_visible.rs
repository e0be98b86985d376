//! Selects the text of a definition that a model sees, and detects hidden text.

use std::ops::ControlFlow;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;

use super::is_deceptive_char;
use super::json_walk::{JsonNode, JsonType, PathSegment, segment_names, walk_json};

/// Members with an address or a pattern, which a model does not see.
const NOT_MODEL_VISIBLE: [&str; 4] = ["$schema", "$id", "$ref", "pattern"];

/// Returns whether a model sees a member of a definition; `parent` is the name of the object. A
/// member with an unexpected type, and a property of such a name, count as visible.
fn is_model_visible(parent: Option<&str>, name: &str, value_type: JsonType) -> bool {
    let by_nature = match value_type {
        JsonType::String => NOT_MODEL_VISIBLE.contains(&name),
        // Only a tool has icons, not its parts.
        JsonType::Array => parent.is_none() && name == "icons",
        JsonType::Other => false,
    };
    !by_nature || parent == Some("properties")
}

/// Follows a walk through a definition and distinguishes the parts that a model sees.
#[derive(Debug, Default)]
pub(crate) struct VisibleMembers {
    /// The length of the path of the object whose current member a model does not see.
    hidden_below: Option<usize>,
}

impl VisibleMembers {
    /// Returns whether a model sees the next part of the walk.
    pub(crate) fn is_visible(&mut self, path: &[PathSegment<'_>], node: JsonNode<'_, '_>) -> bool {
        if self.hidden_below.is_some_and(|length| path.len() > length) {
            return false;
        }
        self.hidden_below = match node {
            JsonNode::Member { name, value_type } => {
                let parent = segment_names(path).next_back();
                (!is_model_visible(parent, name, value_type)).then_some(path.len())
            }
            JsonNode::ObjectStart | JsonNode::String(_) | JsonNode::ObjectEnd { .. } => None,
        };
        self.hidden_below.is_none()
    }
}

/// Returns all text of a definition that a model may see, including member names. If several
/// members have the same name, the text contains all of them.
pub(crate) fn model_visible_text(definition: &str) -> String {
    let mut text = String::new();
    let mut visible = VisibleMembers::default();
    let _end = walk_json(definition, |path, node| {
        if visible.is_visible(path, node) {
            match node {
                JsonNode::Member { name, .. } => text.extend([name, "\n"]),
                JsonNode::String(raw) => {
                    // Text that cannot be decoded counts as written.
                    text.extend([&*skim::decode_string(raw).unwrap_or(raw.into()), "\n"]);
                }
                JsonNode::ObjectStart | JsonNode::ObjectEnd { .. } => {}
            }
        }
        ControlFlow::Continue(())
    });
    text
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
    // JSON text has no control characters but line breaks, which are no text. Most definitions are ASCII.
    let is_plain = spelled.is_ascii() && !spelled.contains('\u{7f}');
    if !spelled.contains("\\u") && (is_plain || !spelled.contains(is_deceptive_char)) {
        return false;
    }
    !hidden_characters(&model_visible_text(spelled)).is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hides_characters(definition: &str) -> bool {
        has_hidden_characters(&RawValue::from_string(definition.to_owned()).unwrap())
    }

    /// Attack: data | a definition contains invisible characters, also as JSON escapes and in names
    /// | the characters are found | Complete checks
    #[test]
    fn tags_bidi_controls_zero_width_and_escape_codes_are_found_however_they_are_spelled() {
        for text in [
            "a\u{e0041}b",
            "a\u{202e}b",
            "pay\u{200b}pal",
            "pay\u{200d}pal",
            r"a\u000db",
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

    /// Attack: data | invisible characters in the first of two members with one name | the
    /// characters are found | Complete checks
    #[test]
    fn each_of_two_members_with_the_same_name_is_checked() {
        for definition in [
            r#"{"description":"a\u200bb","description":"ab"}"#,
            r#"{"inputSchema":{"title":"a\u200bb"},"inputSchema":{}}"#,
            r#"{"pattern":"a","icons":[],"pattern":["\u200b"]}"#,
        ] {
            assert!(hides_characters(definition), "{definition}");
        }
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
            r"\u00fc\r\ntwo",
        ] {
            assert!(!hides_characters(&format!(r#"{{"description":"{text}"}}"#)), "{text}");
        }
    }
}
