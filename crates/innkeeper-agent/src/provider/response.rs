//! A response of a language model and its stream chunks.

use super::Cost;
use crate::conversation::{AssistantMessage, PartContent};
use serde::{Deserialize, Serialize};

/// A complete response.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Response {
    /// The assistant message.
    pub message: AssistantMessage,
    /// The reason for the end of the response.
    pub finish_reason: FinishReason,
    /// The token usage; `None` if the provider did not report it.
    pub usage: Option<Usage>,
    /// The model that sent the response, as the provider reports it.
    pub model: Option<String>,
}

/// The reason for the end of a response.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FinishReason {
    /// The model finished.
    #[default]
    Stop,
    /// The model waits for the results of its tool calls.
    ToolCalls,
    /// The response reached the token limit: a tool call may be incomplete.
    Length,
    /// The context window is full.
    ContextFull,
    /// The model or the provider's moderation refused.
    Refusal,
    /// The provider could not parse the model's tool call.
    MalformedToolCall,
    /// The provider paused the response; another request continues it.
    Paused,
    /// Another reason, in the provider's term. A run with such a last response fails.
    Other(String),
}

/// Token usage of a response, as the provider reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Input tokens, including cached tokens.
    pub prompt_tokens: u64,
    /// Output tokens, including reasoning.
    pub completion_tokens: u64,
    /// Input tokens from the provider's cache.
    pub cached_tokens: u64,
    /// Output tokens of reasoning.
    pub reasoning_tokens: u64,
    /// The cost, if the provider reports one. A sum has the cost of the responses that report one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Cost>,
}

/// A chunk of a streamed response, in order.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StreamChunk {
    /// Visible text.
    Text(String),
    /// Reasoning of the model.
    Reasoning(String),
    /// The start of a tool call.
    ToolCallStart {
        /// The index of the call in this response, from 0.
        index: usize,
        /// The public name of the tool, or the model's spelling if no available tool has the name.
        name: String,
    },
    /// A fragment of a call's arguments, as the model writes them; never repeated.
    ArgumentsDelta {
        /// The index of the call.
        index: usize,
        /// The fragment of the JSON text.
        fragment: String,
    },
    /// The complete response. Calls must not run before this chunk.
    Done(Box<Response>),
}

impl Usage {
    /// Returns the sum of input and output tokens.
    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }

    /// Includes the cached tokens in the input tokens if the server counted them apart, which more
    /// cached tokens than input tokens show.
    pub(super) fn with_cached_tokens_included(self) -> Self {
        let is_apart = self.cached_tokens > self.prompt_tokens;
        let apart = if is_apart { self.cached_tokens } else { 0 };
        Self { prompt_tokens: self.prompt_tokens.saturating_add(apart), ..self }
    }

    /// Adds the usage of another response.
    #[must_use]
    pub fn saturating_add(self, other: Self) -> Self {
        Self {
            prompt_tokens: self.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: self.completion_tokens.saturating_add(other.completion_tokens),
            cached_tokens: self.cached_tokens.saturating_add(other.cached_tokens),
            reasoning_tokens: self.reasoning_tokens.saturating_add(other.reasoning_tokens),
            cost: match (self.cost, other.cost) {
                (Some(ours), Some(theirs)) => Some(ours.saturating_add(theirs)),
                (ours, theirs) => ours.or(theirs),
            },
        }
    }
}

impl Response {
    /// Creates a response of one text, for providers of an application.
    pub fn from_text(text: impl Into<String>) -> Self {
        Self { message: AssistantMessage::from_text(text), ..Self::default() }
    }

    /// Converts the response to chunks, with [`StreamChunk::Done`] last.
    pub fn into_chunks(self) -> Vec<StreamChunk> {
        let mut chunks = Vec::new();
        let mut calls = 0;
        for part in &self.message.parts {
            match &part.content {
                PartContent::Text(text) => chunks.push(StreamChunk::Text(text.clone())),
                PartContent::Reasoning(text) if text.is_empty() => {}
                PartContent::Reasoning(text) => chunks.push(StreamChunk::Reasoning(text.clone())),
                PartContent::ToolCall(call) => {
                    let index = calls;
                    let name = call.name.clone();
                    chunks.push(StreamChunk::ToolCallStart { index, name });
                    let fragment = call.arguments.clone();
                    chunks.push(StreamChunk::ArgumentsDelta { index, fragment });
                    calls += 1;
                }
                PartContent::Other => {}
            }
        }
        chunks.push(StreamChunk::Done(Box::new(self)));
        chunks
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conversation::ContentPart;

    #[test]
    fn reasoning_without_text_is_no_chunk() {
        let reasoning = |text: &str| ContentPart::new(PartContent::Reasoning(text.to_owned()));
        let parts = vec![reasoning(""), reasoning("hm")];
        let message = AssistantMessage { parts };
        let chunks = Response { message, ..Response::default() }.into_chunks();
        let [StreamChunk::Reasoning(text), StreamChunk::Done(_)] = &chunks[..] else {
            panic!("{chunks:?}")
        };
        assert_eq!(text, "hm");
    }

    #[test]
    fn cached_tokens_that_a_server_counts_apart_are_input_tokens() {
        for (prompt_tokens, cached_tokens, expected) in [(12, 2900, 2912), (81, 64, 81), (5, 5, 5)]
        {
            let usage = Usage { prompt_tokens, cached_tokens, ..Usage::default() };
            assert_eq!(usage.with_cached_tokens_included().prompt_tokens, expected);
        }
    }
}
