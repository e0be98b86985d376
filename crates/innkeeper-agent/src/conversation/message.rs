//! Messages of a conversation and their content parts.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::ProviderApi;
use crate::content::{Content, ContentBlock};

/// A message of a conversation. Clones share the content, because each request contains all
/// messages.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// A user message.
    User(Content),
    /// A response of the model.
    Assistant(Arc<AssistantMessage>),
    /// The results of all calls of the preceding response, in the order of the calls.
    ToolResults(Arc<[ToolResult]>),
}

/// A response of a model, as content parts in their order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AssistantMessage {
    /// The content parts.
    pub parts: Vec<ContentPart>,
}

/// A content part of a response.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentPart {
    /// The content, independent of the provider.
    pub content: PartContent,
    /// The same content as the provider sent it. Later requests to the same model return the block
    /// unchanged, because its signatures would become invalid otherwise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider_block: Option<ProviderBlock>,
}

/// The content of a part.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PartContent {
    /// Text for the user.
    Text(String),
    /// Reasoning, as far as the provider exposes it, else empty.
    Reasoning(String),
    /// A tool call.
    ToolCall(ToolCall),
    /// Content that only its provider understands.
    Other,
}

/// A tool call as the model wrote it, neither parsed nor validated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolCall {
    /// The id of the call in the conversation; empty if the provider sent none.
    pub id: String,
    /// The public name of the tool, or the model's spelling if no available tool has that name.
    pub name: String,
    /// The arguments: the text of a JSON object, if the model wrote valid JSON.
    pub arguments: String,
    /// Whether the provider did not say where the call ends, or did not say which tool it calls. A
    /// cut call never runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_cut: bool,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The public name of the tool.
    pub name: String,
    /// The content of the result.
    pub content: Content,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A content part as its provider sent it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProviderBlock {
    /// The API of the provider.
    pub api: ProviderApi,
    /// The model, by the name in the request.
    pub model: String,
    /// The block, item or part: a JSON object.
    pub json: Box<RawValue>,
}

impl ProviderBlock {
    /// Returns the block if it comes from this model and API.
    pub fn for_model(&self, api: ProviderApi, model: &str) -> Option<&RawValue> {
        (self.api == api && self.model == model).then_some(&*self.json)
    }
}

impl PartialEq for ProviderBlock {
    fn eq(&self, other: &Self) -> bool {
        (self.api, &self.model, self.json.get()) == (other.api, &other.model, other.json.get())
    }
}

impl ToolResult {
    /// Returns the media of the result that `selected` selects, behind a line
    /// with the call, for a user message after the results. Empty without such media.
    pub(crate) fn media_blocks(
        &self,
        selected: impl Fn(&ContentBlock) -> bool,
    ) -> Vec<ContentBlock> {
        let mut blocks: Vec<_> =
            self.content.blocks().iter().filter(|block| selected(block)).cloned().collect();
        if !blocks.is_empty() {
            let line = format!("From the result of `{}` (call `{}`):", self.name, self.id);
            blocks.insert(0, line.into());
        }
        blocks
    }
}

/// Returns whether an iteration starts at a message: at a response, unless the response continues
/// the preceding one.
pub(super) fn starts_iteration(before: Option<&Message>, message: &Message) -> bool {
    matches!(message, Message::Assistant(_)) && !matches!(before, Some(Message::Assistant(_)))
}

impl Message {
    /// Returns the approximate size in bytes of the message, its provider blocks and its parts.
    pub(super) fn byte_size(&self) -> usize {
        match self {
            Self::User(content) => content.byte_size(),
            Self::Assistant(assistant) => assistant.parts.iter().map(ContentPart::byte_size).sum(),
            Self::ToolResults(results) => results
                .iter()
                .map(|result| result.id.len() + result.name.len() + result.content.byte_size())
                .sum(),
        }
    }
}

impl ContentPart {
    /// Includes the size of the struct: a response may have many empty parts.
    fn byte_size(&self) -> usize {
        let content_bytes = match &self.content {
            PartContent::Text(text) | PartContent::Reasoning(text) => text.len(),
            PartContent::ToolCall(call) => call.id.len() + call.name.len() + call.arguments.len(),
            PartContent::Other => 0,
        };
        size_of::<Self>()
            + content_bytes
            + self
                .provider_block
                .as_ref()
                .map_or(0, |native| native.model.len() + native.json.get().len())
    }

    /// Creates a part without a provider block.
    pub fn new(content: PartContent) -> Self {
        Self { content, provider_block: None }
    }
}

impl AssistantMessage {
    /// Creates a response with one text, or without parts if the text is empty.
    pub fn from_text(text: impl Into<String>) -> Self {
        let text = text.into();
        let parts = if text.is_empty() {
            Vec::new()
        } else {
            vec![ContentPart::new(PartContent::Text(text))]
        };
        Self { parts }
    }

    /// Returns all text for the user, concatenated.
    pub fn visible_text(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.content {
            PartContent::Text(text) => text.as_str(),
            PartContent::Reasoning(_) | PartContent::ToolCall(_) | PartContent::Other => "",
        });
        texts.collect()
    }

    /// Returns all exposed reasoning, concatenated.
    pub fn reasoning(&self) -> String {
        let texts = self.parts.iter().map(|part| match &part.content {
            PartContent::Reasoning(text) => text.as_str(),
            PartContent::Text(_) | PartContent::ToolCall(_) | PartContent::Other => "",
        });
        texts.collect()
    }

    /// Returns the tool calls in their order.
    pub fn calls(&self) -> impl Iterator<Item = &ToolCall> {
        self.parts.iter().filter_map(|part| match &part.content {
            PartContent::ToolCall(call) => Some(call),
            PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => None,
        })
    }
}
