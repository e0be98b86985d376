//! Encodes a request for the Responses API.

use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::content::{Content, Media, MediaKind, Segment};
use crate::conversation::{AssistantMessage, Message, PartContent};
use crate::provider::codec::{ApiError, EncodeRequest, HttpRequest, arguments_object};
use crate::provider::openai::{DOCUMENT_NAME, ToolParams, is_strict};
use crate::provider::tool_encoding::EncodedTool;

use super::output_item::is_encrypted_reasoning;
use crate::provider::ProviderApi;

#[derive(Serialize)]
struct RequestBody<'r> {
    model: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    instructions: &'r str,
    input: Vec<InputItem<'r>>,
    #[serde(flatten)]
    tools: ToolParams<Tool<'r>>,
    #[serde(flatten)]
    generation: GenerationParams,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    include: Vec<&'static str>,
    store: bool,
    stream: bool,
}

/// How the model generates its response.
#[derive(Serialize)]
struct GenerationParams {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<Value>,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
    /// Always sent: without the parameter the provider tries strict mode.
    strict: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputItem<'r> {
    Verbatim(&'r RawValue),
    Encoded(Value),
}

pub(in crate::provider) fn encode(
    encode_request: EncodeRequest<'_>,
) -> Result<HttpRequest, ApiError> {
    let EncodeRequest { request, model, capabilities, streaming, .. } = encode_request;
    let body = RequestBody {
        model,
        instructions: &request.system,
        input: input(encode_request),
        tools: ToolParams::new(encode_request, tool),
        generation: GenerationParams {
            temperature: encode_request.temperature(),
            max_output_tokens: request.max_tokens.or(capabilities.tokens.default_output),
            text: text_format(encode_request),
        },
        include: if capabilities.quirks.encrypted_reasoning {
            vec!["reasoning.encrypted_content"]
        } else {
            Vec::new()
        },
        store: false,
        stream: streaming,
    };
    HttpRequest::new("/responses", &body)
}

fn tool(encoded_tool: &EncodedTool) -> Tool<'_> {
    Tool {
        r#type: "function",
        name: &encoded_tool.alias,
        description: &encoded_tool.description,
        parameters: encoded_tool.schema(),
        strict: encoded_tool.lowered_schema.strict,
    }
}

fn text_format(encode_request: EncodeRequest<'_>) -> Option<Value> {
    let schema = encode_request.response_schema()?;
    let format = json!({
        "type": "json_schema",
        "name": "answer",
        "schema": schema,
        "strict": is_strict(schema),
    });
    Some(json!({"format": format}))
}

fn input(encode_request: EncodeRequest<'_>) -> Vec<InputItem<'_>> {
    let mut items = Vec::new();
    for message in &encode_request.request.messages {
        match message {
            Message::User(content) => items.push(InputItem::Encoded(json!({
                "type": "message",
                "role": "user",
                "content": encode_content(content),
            }))),
            Message::Assistant(assistant) => {
                push_assistant_items(assistant, encode_request, &mut items);
            }
            Message::ToolResults(results) => items.extend(results.iter().map(|result| {
                InputItem::Encoded(json!({
                    "type": "function_call_output",
                    "call_id": result.id,
                    "output": encode_content(&result.content),
                }))
            })),
        }
    }
    items
}

/// Appends the items of an assistant message. Items go back verbatim with their ids. Exception:
/// with encrypted reasoning, a reasoning item without its content refers to an item that the
/// provider did not store. Later items are bound to that item by id, so all items of the message
/// are encoded anew.
fn push_assistant_items<'r>(
    assistant: &'r AssistantMessage,
    encode_request: EncodeRequest<'r>,
    items: &mut Vec<InputItem<'r>>,
) {
    let has_lost_reasoning = encode_request.capabilities.quirks.encrypted_reasoning
        && assistant.parts.iter().any(|part| {
            matches!(part.content, PartContent::Reasoning(_)) && !is_encrypted_reasoning(part)
        });
    // The API rejects reasoning that no other item follows.
    let last =
        assistant.parts.iter().rposition(|part| !matches!(part.content, PartContent::Reasoning(_)));
    for part in assistant.parts.iter().take(last.map_or(0, |last| last + 1)) {
        let native = part.provider_block.as_ref().filter(|_| !has_lost_reasoning);
        let native = native
            .and_then(|block| block.for_model(ProviderApi::OpenAiResponses, encode_request.model));
        match (&part.content, native) {
            (_, Some(block)) => items.push(InputItem::Verbatim(block)),
            (PartContent::Text(text), None) if text.is_empty() => {}
            (PartContent::Text(text), None) => items.push(assistant_item(text)),
            (PartContent::ToolCall(call), None) => items.push(InputItem::Encoded(json!({
                "type": "function_call",
                "call_id": call.id,
                "name": encode_request.encoded_tools.alias(&call.name),
                "arguments": arguments_object(&call.arguments).get(),
            }))),
            (PartContent::Reasoning(_) | PartContent::Other, None) => {}
        }
    }
}

fn assistant_item<'r>(text: &str) -> InputItem<'r> {
    InputItem::Encoded(json!({"type": "message", "role": "assistant", "content": text}))
}

/// Encodes a content: as one text, unless there are media.
fn encode_content(content: &Content) -> Value {
    if !content.has_media() {
        return content.to_text().into();
    }
    let parts = content.segments().into_iter().filter_map(|segment| match segment {
        Segment::Text(text) => Some(json!({"type": "input_text", "text": text})),
        Segment::Media(media) => encode_media(media),
    });
    parts.collect()
}

/// Returns `None` for audio, which this API does not take.
fn encode_media(media: Media<'_>) -> Option<Value> {
    let url = media.to_data_url();
    match media.kind {
        MediaKind::Image => {
            Some(json!({"type": "input_image", "detail": "auto", "image_url": url}))
        }
        MediaKind::Document => {
            Some(json!({"type": "input_file", "filename": DOCUMENT_NAME, "file_data": url}))
        }
        MediaKind::Audio => None,
    }
}
