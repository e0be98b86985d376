//! Messages of a conversation and their content parts.

use std::sync::Arc;

use serde_json::value::RawValue;

use super::ProviderApi;

/// A message of a conversation. Clones share the content, because each request contains all
/// messages.
#[derive(Clone, Debug, PartialEq)]
pub enum Message {
    /// A user message.
    User(Arc<str>),
    /// A response of the model.
    Assistant(Arc<AssistantMessage>),
    /// The results of all calls of the preceding response, in the order of the calls.
    ToolResults(Arc<[ToolResult]>),
}

/// A response of a model, as content parts in their order.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AssistantMessage {
    /// The content parts.
    pub parts: Vec<ContentPart>,
}

/// A content part of a response.
#[derive(Clone, Debug, PartialEq)]
pub struct ContentPart {
    /// The content, independent of the provider.
    pub content: PartContent,
    /// The same content as the provider sent it. Later requests to the same model return the block
    /// unchanged, because its signatures would become invalid otherwise.
    pub provider_block: Option<ProviderBlock>,
}

/// The content of a part.
#[derive(Clone, Debug, PartialEq, Eq)]
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolCall {
    /// The id of the call in the conversation; empty if the provider sent none.
    pub id: String,
    /// The public name of the tool, or the model's spelling if no available tool has that name.
    pub name: String,
    /// The arguments: the text of a JSON object, if the model wrote valid JSON.
    pub arguments: String,
}

/// The result of a tool call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolResult {
    /// The id of the call.
    pub id: String,
    /// The public name of the tool.
    pub name: String,
    /// The text that the model gets.
    pub text: String,
    /// Whether the call failed.
    pub is_error: bool,
}

/// A content part as its provider sent it.
#[derive(Clone, Debug)]
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

/// Returns whether an iteration starts at a message: at a response, unless the response continues
/// the preceding one.
pub(super) fn starts_iteration(before: Option<&Message>, message: &Message) -> bool {
    let is_answer = |message: &Message| matches!(message, Message::Assistant(_));
    is_answer(message) && !before.is_some_and(is_answer)
}

impl Message {
    /// Returns the approximate size in bytes of the message, its provider blocks and its parts.
    pub(super) fn byte_size(&self) -> usize {
        match self {
            Self::User(text) => text.len(),
            Self::Assistant(assistant) => assistant.parts.iter().map(ContentPart::byte_size).sum(),
            Self::ToolResults(results) => results
                .iter()
                .map(|result| result.id.len() + result.name.len() + result.text.len())
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
        let block_bytes = |native: &ProviderBlock| native.model.len() + native.json.get().len();
        size_of::<Self>() + content_bytes + self.provider_block.as_ref().map_or(0, block_bytes)
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
