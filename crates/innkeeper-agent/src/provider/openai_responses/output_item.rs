//! Decodes an output item into a content part.

use serde_json::value::RawValue;

use crate::conversation::{ContentPart, PartContent, ProviderBlock, ToolCall};
use crate::provider::ProviderApi;
use crate::provider::codec::{
    ApiError, ObjectView, decode_string, is_sendable_object, texts_of_field,
};

pub(super) const PARAGRAPH_SEPARATOR: &str = "\n\n";

pub(super) struct OutputItem {
    pub(super) part: ContentPart,
    pub(super) is_refusal: bool,
}

impl OutputItem {
    /// Decodes a complete item; `None` if the value is not an object.
    ///
    /// # Errors
    ///
    /// The item has too many parts.
    pub(super) fn decode(block: &RawValue, model: &str) -> Result<Option<Self>, ApiError> {
        let Some(fields) = ObjectView::from_raw(block) else { return Ok(None) };
        let mut is_refusal = false;
        let mut in_own_words = true;
        let part_content = match fields.text("type").as_deref() {
            Some("message") => {
                let content = message_text(&fields)?;
                is_refusal = content.1;
                if content.0.is_empty() { PartContent::Other } else { PartContent::Text(content.0) }
            }
            Some("reasoning") => PartContent::Reasoning(reasoning_text(&fields)?),
            Some("function_call") => {
                let mut call = tool_call(&fields);
                // The result needs the same id, and some servers reject a conversation with
                // arguments that are not an object.
                in_own_words = fields.non_empty_text("call_id").is_some()
                    && is_sendable_object(&call.arguments);
                if call.arguments.trim().is_empty() && !call.is_cut {
                    "{}".clone_into(&mut call.arguments);
                }
                PartContent::ToolCall(call)
            }
            Some(_) | None => PartContent::Other,
        };
        let provider_block = in_own_words.then(|| ProviderBlock {
            api: ProviderApi::OpenAiResponses,
            model: model.to_owned(),
            json: block.to_owned(),
        });
        Ok(Some(Self { part: ContentPart { content: part_content, provider_block }, is_refusal }))
    }
}

/// Whether a part is reasoning with encrypted content, which the provider can decrypt.
pub(super) fn is_encrypted_reasoning(part: &ContentPart) -> bool {
    let block = part.provider_block.as_ref().and_then(|native| ObjectView::from_raw(&native.json));
    let content = block.is_some_and(|block| block.non_empty_text("encrypted_content").is_some());
    content && matches!(part.content, PartContent::Reasoning(_))
}

/// Returns the text, and whether it contains a refusal.
fn message_text(fields: &ObjectView<'_>) -> Result<(String, bool), ApiError> {
    if let Some(content) = fields.text("content") {
        return Ok((content, false));
    }
    let mut message = String::new();
    let mut has_refusal = false;
    for part in fields.bounded_list("content")? {
        let part = ObjectView::from_raw(part).unwrap_or_default();
        if let Some(text) = part.text("text") {
            message.push_str(&text);
        } else if let Some(refusal) = part.text("refusal") {
            message.push_str(&refusal);
            has_refusal = true;
        }
    }
    Ok((message, has_refusal))
}

/// Returns the summary, followed by the reasoning text, which only open models send.
fn reasoning_text(fields: &ObjectView<'_>) -> Result<String, ApiError> {
    let mut paragraphs = texts_of_field(&fields.bounded_list("summary")?, "text");
    paragraphs.extend(texts_of_field(&fields.bounded_list("content")?, "text"));
    Ok(paragraphs.join(PARAGRAPH_SEPARATOR))
}

fn tool_call(fields: &ObjectView<'_>) -> ToolCall {
    let arguments = fields.get("arguments");
    let arguments = arguments.map(|raw| decode_string(raw).unwrap_or_else(|| raw.get().to_owned()));
    ToolCall {
        id: fields
            .non_empty_text("call_id")
            .or_else(|| fields.non_empty_text("id"))
            .unwrap_or_default(),
        name: fields.non_empty_text("name").unwrap_or_default(),
        arguments: arguments.unwrap_or_default(),
        is_cut: fields.non_empty_text("status").is_some_and(|status| status != "completed"),
    }
}
