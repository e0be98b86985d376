//! Collects the reasoning of a message, which each kind of server sends in another form.

use serde_json::json;
use serde_json::value::RawValue;

use super::reasoning_details::ReasoningDetails;
use crate::conversation::{ContentPart, PartContent, ProviderBlock};
use crate::provider::codec::{ApiError, ObjectView, texts_of_field};
use crate::provider::openai::{ObjectBuilder, to_raw};
use crate::provider::{ProviderApi, StreamChunk};

/// The reasoning received so far.
#[derive(Default)]
pub(super) struct Reasoning {
    text: String,
    /// The field in which the first reasoning came.
    field: Option<ReasoningField>,
    details: ReasoningDetails,
}

/// The field in which a server sends reasoning.
#[derive(Clone, Copy)]
enum ReasoningField {
    ReasoningContent,
    Reasoning,
    /// Parts of the content, as Mistral sends them.
    ThinkingParts,
}

impl Reasoning {
    /// Feeds the reasoning of a message or a delta, except for parts of its content.
    pub(super) fn feed_message(
        &mut self,
        message: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        // Some servers send the same reasoning in both fields.
        if let Some(reasoning) = message.non_empty_text("reasoning_content") {
            self.append(ReasoningField::ReasoningContent, &reasoning, chunks);
        } else if let Some(reasoning) = message.non_empty_text("reasoning") {
            self.append(ReasoningField::Reasoning, &reasoning, chunks);
        }
        for detail in message.bounded_list("reasoning_details")? {
            self.details.feed(detail)?;
        }
        Ok(())
    }

    /// Feeds a part of the content that is reasoning.
    pub(super) fn feed_thinking(
        &mut self,
        part: &ObjectView<'_>,
        chunks: &mut Vec<StreamChunk>,
    ) -> Result<(), ApiError> {
        let thinking = match part.text("thinking") {
            Some(thinking) => thinking,
            None => texts_of_field(&part.bounded_list("thinking")?, "text").concat(),
        };
        self.append(ReasoningField::ThinkingParts, &thinking, chunks);
        Ok(())
    }

    fn append(&mut self, field: ReasoningField, text: &str, chunks: &mut Vec<StreamChunk>) {
        if !text.is_empty() {
            self.field.get_or_insert(field);
            self.text.push_str(text);
            chunks.push(StreamChunk::Reasoning(text.to_owned()));
        }
    }

    /// Returns the part of the message, for a conversation with this model.
    pub(super) fn into_part(self, model: &str) -> Option<ContentPart> {
        let json = if self.details.is_empty() {
            self.field?.to_raw_block(&self.text)
        } else {
            let mut members = ObjectBuilder::default();
            members.set_if_absent("reasoning_details", &self.details.finish());
            to_raw(&members)
        };
        let model = model.to_owned();
        Some(ContentPart {
            content: PartContent::Reasoning(self.text),
            provider_block: Some(ProviderBlock { api: ProviderApi::OpenAiChat, model, json }),
        })
    }
}

impl ReasoningField {
    /// Returns the raw block for later requests: a member of the message, or a part of its content.
    fn to_raw_block(self, reasoning: &str) -> Box<RawValue> {
        to_raw(&match self {
            Self::ReasoningContent => json!({"reasoning_content": reasoning}),
            Self::Reasoning => json!({"reasoning": reasoning}),
            Self::ThinkingParts => {
                json!({"type": "thinking", "thinking": [{"type": "text", "text": reasoning}]})
            }
        })
    }
}
