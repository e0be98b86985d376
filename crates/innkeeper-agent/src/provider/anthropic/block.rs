//! Decodes one content block into a content part.

use serde_json::value::RawValue;

use crate::conversation::{ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::ProviderApi;
use crate::provider::codec::{ObjectView, arguments_text, is_sendable_object};

/// The type of a content block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BlockKind {
    Text,
    Thinking,
    /// Encrypted reasoning without text.
    RedactedThinking,
    ToolUse,
    /// A block that only the provider interprets, such as calls and results of its server tools.
    Other,
}

impl BlockKind {
    pub(super) fn from_block(block: &ObjectView<'_>) -> Self {
        match block.text("type").as_deref() {
            Some("text") => Self::Text,
            Some("thinking") => Self::Thinking,
            Some("redacted_thinking") => Self::RedactedThinking,
            Some("tool_use") => Self::ToolUse,
            Some(_) | None => Self::Other,
        }
    }
}

pub(super) fn decode_block(raw: &RawValue, model: &str) -> ContentPart {
    let Some(block) = ObjectView::from_raw(raw) else {
        return ContentPart::new(PartContent::Other);
    };
    let content = match BlockKind::from_block(&block) {
        BlockKind::Text => PartContent::Text(block.text("text").unwrap_or_default()),
        BlockKind::Thinking => PartContent::Reasoning(block.text("thinking").unwrap_or_default()),
        BlockKind::RedactedThinking => PartContent::Reasoning(String::new()),
        BlockKind::ToolUse => {
            PartContent::ToolCall(tool_call(&block, arguments_text(block.get("input"))))
        }
        BlockKind::Other => PartContent::Other,
    };
    content_part(content, Some(raw.to_owned()), model)
}

pub(super) fn tool_call(block: &ObjectView<'_>, arguments: String) -> ToolCall {
    let id = block.text("id").unwrap_or_default();
    ToolCall { id, name: block.text("name").unwrap_or_default(), arguments, is_cut: false }
}

/// Returns a content part. The part keeps the raw block only if the API accepts the block in a
/// later request and the block holds more than the part.
pub(super) fn content_part(
    content: PartContent,
    raw: Option<Box<RawValue>>,
    model: &str,
) -> ContentPart {
    let reusable = raw.filter(|raw| {
        let Some(block) = ObjectView::from_raw(raw) else { return false };
        match &content {
            PartContent::Text(_) => block
                .iter()
                .any(|(name, value)| !matches!(name, "type" | "text") && value.get() != "null"),
            // The tool result has to name the id, and the API accepts only an object as input.
            PartContent::ToolCall(call) => {
                let input = block.get("input").map(RawValue::get);
                !call.id.is_empty() && input.is_some_and(is_sendable_object)
            }
            PartContent::Reasoning(_) | PartContent::Other => true,
        }
    });
    let provider_block = reusable.map(|json| ProviderBlock {
        api: ProviderApi::Anthropic,
        model: model.to_owned(),
        json,
    });
    ContentPart { content, provider_block }
}
