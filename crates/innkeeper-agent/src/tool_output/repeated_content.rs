//! Structured content that the texts of a result repeat.

use innkeeper_toolcall::{Json, parse_strict};
use serde_json::value::RawValue;

use crate::content::ContentBlock;

/// The only member of the structured content of a tool whose own result is no object, as the Python
/// SDK of MCP writes the content.
const WRAPPED_RESULT: &str = "result";

/// Whether a text block is the structured content as JSON, in any order of members, or the texts are
/// the result that the structured content wraps.
pub(super) fn is_in_texts(structured: &RawValue, blocks: &[ContentBlock]) -> bool {
    let texts: Vec<&str> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(&**text),
            ContentBlock::Image(_)
            | ContentBlock::Audio(_)
            | ContentBlock::Resource(_)
            | ContentBlock::ResourceLink(_)
            | ContentBlock::Structured(_)
            | ContentBlock::Other(_) => None,
        })
        .collect();
    if texts.is_empty() {
        return false;
    }
    let Ok(structured) = parse_strict(structured.get()).map(sort_members) else { return false };
    let is_in_text = |value: &Json| texts.iter().any(|text| is_value(text, value));
    is_in_text(&structured)
        || match &structured {
            Json::Object(members) => match members.as_slice() {
                [(name, Json::Array(items))] if name == WRAPPED_RESULT => {
                    let values = || texts.iter().zip(items);
                    is_in_text(&members[0].1)
                        || texts.len() == items.len()
                            && values().all(|(text, item)| is_value(text, item))
                }
                [(name, result)] if name == WRAPPED_RESULT => is_in_text(result),
                _ => false,
            },
            Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) | Json::Array(_) => {
                false
            }
        }
}

/// Whether a text is a value with sorted members: a string as it is, or any value as JSON.
fn is_value(text: &str, value: &Json) -> bool {
    value.as_str() == Some(text)
        || parse_strict(text).is_ok_and(|parsed| sort_members(parsed) == *value)
}

fn sort_members(value: Json) -> Json {
    match value {
        Json::Array(items) => Json::Array(items.into_iter().map(sort_members).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> =
                members.into_iter().map(|(name, member)| (name, sort_members(member))).collect();
            members.sort_unstable_by(|one, other| one.0.cmp(&other.0));
            Json::Object(members)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => value,
    }
}
