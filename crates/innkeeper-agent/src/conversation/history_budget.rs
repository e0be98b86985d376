//! Estimates the tokens of messages, and the budget for the messages of a request.

use serde::{Deserialize, Serialize};

use super::message::{Message, PartContent};
use crate::content::{Content, ContentSupport, MediaKind};

/// Average number of bytes per token in English and JSON. The estimate serves limits only and is
/// never reported as a count.
const BYTES_PER_TOKEN: usize = 4;

/// Maximum number of tokens of one image: providers scale larger images down.
const MAX_IMAGE_TOKENS: usize = 1600;

/// Number of bytes of audio per token: speech of 32 kbit/s, at 32 tokens per second.
const BYTES_PER_AUDIO_TOKEN: usize = 125;

/// Estimated number of tokens for the role and the delimiters of a message.
const MESSAGE_OVERHEAD_TOKENS: usize = 4;

/// The token budget of a request. The oldest messages are left out of a request that exceeds the
/// budget; see [`RequestSettings::summarize_history`](crate::agent::RequestSettings::summarize_history).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HistoryBudget {
    /// Maximum number of estimated tokens of the system prompt, the tools and all messages, without
    /// the response.
    pub max_tokens: usize,
}

/// The size of the smallest context windows in use.
impl Default for HistoryBudget {
    fn default() -> Self {
        Self { max_tokens: 8192 }
    }
}

/// Estimates the number of tokens in a text.
pub fn estimate_tokens(text: &str) -> usize {
    text.len().div_ceil(BYTES_PER_TOKEN)
}

/// Estimates the number of tokens in a message. Media that the model does not take count as the line
/// of text that replaces them.
pub(crate) fn estimate_message_tokens(message: &Message, support: ContentSupport) -> usize {
    let content_tokens: usize = match message {
        Message::User(content) => estimate_content_tokens(content, support),
        Message::Assistant(assistant) => assistant
            .parts
            .iter()
            .map(|part| match (&part.provider_block, &part.content) {
                (Some(native), _) => estimate_tokens(native.json.get()),
                (None, PartContent::Text(text) | PartContent::Reasoning(text)) => {
                    estimate_tokens(text)
                }
                (None, PartContent::ToolCall(call)) => {
                    estimate_tokens(&call.name) + estimate_tokens(&call.arguments)
                }
                (None, PartContent::Other) => 0,
            })
            .sum(),
        Message::ToolResults(results) => results
            .iter()
            .map(|result| {
                estimate_content_tokens(&result.content, support) + MESSAGE_OVERHEAD_TOKENS
            })
            .sum(),
    };
    content_tokens + MESSAGE_OVERHEAD_TOKENS
}

/// Estimates the number of tokens in a content: its text, with the line of each medium, and the
/// data that the model takes.
pub(crate) fn estimate_content_tokens(content: &Content, support: ContentSupport) -> usize {
    let media = content.media().filter(|media| support.accepts(media.kind));
    let media_tokens = media.map(|media| match media.kind {
        MediaKind::Image => estimate_tokens(media.data).min(MAX_IMAGE_TOKENS),
        MediaKind::Audio => media.data.len().div_ceil(BYTES_PER_AUDIO_TOKEN),
        MediaKind::Document => estimate_tokens(media.data),
    });
    estimate_tokens(&content.to_text()) + media_tokens.sum::<usize>()
}

#[cfg(test)]
mod tests;
