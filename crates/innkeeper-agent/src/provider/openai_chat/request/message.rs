//! Encodes a message for the Chat Completions API.

use std::borrow::Cow;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;
use serde_json::value::RawValue;

use super::short_id;
use crate::content::{Content, Media, MediaKind, Segment};
use crate::conversation::{AssistantMessage, PartContent, ToolCall, ToolResult};
use crate::provider::ProviderApi;
use crate::provider::codec::{EncodeRequest, ObjectView, arguments_object};
use crate::provider::openai::DOCUMENT_NAME;

/// The members of a message in order.
pub(super) struct ChatMessage<'r>(Vec<(String, MemberValue<'r>)>);

enum MemberValue<'r> {
    Text(&'r str),
    Shared(Cow<'r, str>),
    /// A value that this codec encodes.
    Encoded(serde_json::Value),
    /// A value as the provider sent it.
    Verbatim(&'r RawValue),
    List(Vec<Self>),
}

impl<'r> ChatMessage<'r> {
    pub(super) fn system(text: &'r str) -> Self {
        Self::new("system", MemberValue::Text(text))
    }

    /// Encodes a user message: as one text, unless there are media, because some servers take no
    /// list.
    pub(super) fn user(content: &'r Content) -> Self {
        if !content.has_media() {
            return Self::new("user", MemberValue::Shared(content.to_text()));
        }
        let parts = content.segments().into_iter().map(|segment| {
            MemberValue::Encoded(match segment {
                Segment::Text(text) => json!({"type": "text", "text": text}),
                Segment::Media(media) => encode_media(media),
            })
        });
        Self::new("user", MemberValue::List(parts.collect()))
    }

    /// Returns the message between tool results and a user message, which Mistral's models require.
    pub(super) fn separator() -> Self {
        Self::new("assistant", MemberValue::Text("I stopped here."))
    }

    pub(super) fn tool(result: &'r ToolResult, encode_request: EncodeRequest<'_>) -> Self {
        let mut message = Self::new("tool", MemberValue::Shared(result.content.to_text()));
        let id = MemberValue::Shared(call_id(&result.id, encode_request));
        message.0.push(("tool_call_id".to_owned(), id));
        message
    }

    /// Encodes an assistant message. Reasoning goes back verbatim, and only to the model that wrote
    /// it.
    pub(super) fn assistant(
        assistant_message: &'r AssistantMessage,
        encode_request: EncodeRequest<'r>,
    ) -> Self {
        let mut text = String::new();
        let mut contents = Vec::new();
        let mut calls = Vec::new();
        let mut members = Vec::new();
        for part in &assistant_message.parts {
            let native = part.provider_block.as_ref();
            let native = native.and_then(|native_block| {
                native_block.for_model(ProviderApi::OpenAiChat, encode_request.model)
            });
            match (&part.content, native) {
                (PartContent::Text(part_text), _) => text.push_str(part_text),
                (PartContent::ToolCall(call), native) => calls.push(match native {
                    // Some servers generate ids that they reject later.
                    Some(block) if call_id(&call.id, encode_request) == call.id => {
                        MemberValue::Verbatim(block)
                    }
                    Some(_) | None => MemberValue::Encoded(encode_call(call, encode_request)),
                }),
                (PartContent::Reasoning(_) | PartContent::Other, Some(block)) => {
                    insert_block(block, &mut members, &mut contents);
                }
                (PartContent::Reasoning(_) | PartContent::Other, None) => {}
            }
        }
        let content = if !contents.is_empty() {
            if !text.is_empty() {
                contents.push(MemberValue::Encoded(json!({"type": "text", "text": text})));
            }
            MemberValue::List(contents)
        } else if text.is_empty() && !calls.is_empty() {
            MemberValue::Encoded(serde_json::Value::Null)
        } else {
            MemberValue::Encoded(text.into())
        };
        let mut message = Self::new("assistant", content);
        message.0.append(&mut members);
        if !calls.is_empty() {
            message.0.push(("tool_calls".to_owned(), MemberValue::List(calls)));
        }
        message
    }

    fn new(role: &'static str, content: MemberValue<'r>) -> Self {
        Self(vec![("role".to_owned(), MemberValue::Text(role)), ("content".to_owned(), content)])
    }
}

/// Inserts a raw block: a block with a type is a content part, any other block holds members of the
/// message.
fn insert_block<'r>(
    block: &'r RawValue,
    members: &mut Vec<(String, MemberValue<'r>)>,
    contents: &mut Vec<MemberValue<'r>>,
) {
    let Some(fields) = ObjectView::from_raw(block) else { return };
    if fields.get("type").is_some() {
        contents.push(MemberValue::Verbatim(block));
        return;
    }
    members
        .extend(fields.iter().map(|(name, value)| (name.to_owned(), MemberValue::Verbatim(value))));
}

/// Encodes a call. Arguments that are not an object are wrapped in one: some servers reject every
/// later request of a conversation with other arguments.
fn encode_call(call: &ToolCall, encode_request: EncodeRequest<'_>) -> serde_json::Value {
    let name = encode_request.encoded_tools.alias(&call.name);
    let arguments = arguments_object(&call.arguments);
    json!({
        "id": call_id(&call.id, encode_request),
        "type": "function",
        "function": {"name": name, "arguments": arguments.get()},
    })
}

/// Returns the id of a call as the server takes it.
fn call_id<'r>(id: &'r str, encode_request: EncodeRequest<'_>) -> Cow<'r, str> {
    match encode_request.capabilities.quirks.short_call_ids {
        true => short_id::to_short(id),
        false => id.into(),
    }
}

fn encode_media(media: Media<'_>) -> serde_json::Value {
    match media.kind {
        MediaKind::Image => {
            json!({"type": "image_url", "image_url": {"url": media.to_data_url()}})
        }
        MediaKind::Audio => {
            let mime_type = media.mime_type.unwrap_or_default();
            let format = mime_type.strip_prefix("audio/").unwrap_or(mime_type);
            json!({"type": "input_audio", "input_audio": {"data": media.data, "format": format}})
        }
        MediaKind::Document => {
            let file = json!({"filename": DOCUMENT_NAME, "file_data": media.to_data_url()});
            json!({"type": "file", "file": file})
        }
    }
}

impl Serialize for ChatMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.0.len()))?;
        for (name, value) in &self.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Serialize for MemberValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Text(text) => text.serialize(serializer),
            Self::Shared(text) => text.serialize(serializer),
            Self::Encoded(value) => value.serialize(serializer),
            Self::Verbatim(value) => value.serialize(serializer),
            Self::List(list) => list.serialize(serializer),
        }
    }
}
