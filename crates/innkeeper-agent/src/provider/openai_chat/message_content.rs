//! Collects the content of a message: its text, and parts of other kinds.

use serde_json::value::RawValue;

use crate::conversation::{ContentPart, PartContent, ProviderBlock};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS};
use crate::provider::{ProviderApi, StreamChunk};

/// The content received so far.
#[derive(Default)]
pub(super) struct MessageContent {
    pub(super) text: String,
    /// Whether a part of the text is a refusal.
    pub(super) is_refusal: bool,
    other_parts: Vec<Box<RawValue>>,
}

impl MessageContent {
    pub(super) fn append_text(&mut self, text: String, chunks: &mut Vec<StreamChunk>) {
        if !text.is_empty() {
            self.text.push_str(&text);
            chunks.push(StreamChunk::Text(text));
        }
    }

    pub(super) fn append_refusal(&mut self, text: String, chunks: &mut Vec<StreamChunk>) {
        self.is_refusal = true;
        self.append_text(text, chunks);
    }

    /// Adds a part that is neither text nor reasoning, for later requests.
    pub(super) fn add_other(&mut self, part: &RawValue) -> Result<(), ApiError> {
        if self.other_parts.len() == MAX_CONTENT_PARTS {
            return Err(ApiError::too_many("parts"));
        }
        self.other_parts.push(part.to_owned());
        Ok(())
    }

    /// Returns the parts of the message, for a conversation with this model.
    pub(super) fn into_parts(self, model: &str) -> impl Iterator<Item = ContentPart> {
        let text = (!self.text.is_empty()).then(|| ContentPart::new(PartContent::Text(self.text)));
        let others = self.other_parts.into_iter().map(|json| ContentPart {
            content: PartContent::Other,
            provider_block: Some(ProviderBlock {
                api: ProviderApi::OpenAiChat,
                model: model.to_owned(),
                json,
            }),
        });
        text.into_iter().chain(others)
    }
}
