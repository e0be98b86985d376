//! Structured content that the texts of a result repeat.

use innkeeper_protocol::skim;
use serde_json::value::RawValue;

use super::json_hash::ValueHasher;
use crate::content::ContentBlock;

/// The only member of the structured content of a tool whose own result is no object, as the Python
/// SDK of MCP writes the content.
const WRAPPED_RESULT: &str = "result";

/// The hashes that the text of one block can have as a value.
struct TextHashes {
    as_string: u64,
    /// `None` if the text is no JSON.
    as_json: Option<u64>,
}

impl TextHashes {
    fn is_value(&self, value: u64) -> bool {
        self.as_string == value || self.as_json == Some(value)
    }
}

fn is_in_a_text(hasher: &ValueHasher, json: &str, texts: &[TextHashes]) -> bool {
    hasher.hash_json(json).is_some_and(|value| texts.iter().any(|text| text.is_value(value)))
}

/// Whether a text block is the structured content as JSON, in any order of members, or the texts are
/// the result that the structured content wraps.
pub(super) fn is_in_texts(structured: &RawValue, blocks: &[ContentBlock]) -> bool {
    let hasher = ValueHasher::default();
    let texts: Vec<TextHashes> = blocks
        .iter()
        .filter_map(|block| match block {
            ContentBlock::Text(text) => Some(TextHashes {
                as_string: hasher.hash_string(text),
                as_json: hasher.hash_json(text),
            }),
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
    if is_in_a_text(&hasher, structured.get(), &texts) {
        return true;
    }
    let mut members = skim::members(structured.get());
    let (Some((name, result)), None) = (members.next(), members.next()) else { return false };
    if skim::decode_key(name) != WRAPPED_RESULT {
        return false;
    }
    if is_in_a_text(&hasher, result, &texts) {
        return true;
    }
    let mut items = skim::elements(result);
    let are_items = texts.iter().all(|text| {
        let hash = items.next().and_then(|item| hasher.hash_json(item));
        hash.is_some_and(|value| text.is_value(value))
    });
    are_items && items.next().is_none()
}
