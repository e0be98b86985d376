//! Encodes a request for the Interactions API.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::{Content, MediaKind, Segment};
use crate::conversation::{AssistantMessage, Message, PartContent, ToolResult};
use crate::provider::ProviderApi;
use crate::provider::codec::{EncodeRequest, ObjectView, arguments_object};
use crate::provider::gemini::{PLACEHOLDER_SIGNATURE, calling_mode, model_name};

#[derive(Serialize)]
pub(super) struct RequestBody<'r> {
    model: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    system_instruction: &'r str,
    input: Vec<InputStep<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<FunctionTool<'r>>,
    generation_config: GenerationConfig<'r>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_format: Option<ResponseFormat<'r>>,
    store: bool,
    stream: bool,
}

#[derive(Serialize)]
#[serde(untagged)]
enum InputStep<'r> {
    /// The step as the model sent it.
    Verbatim(&'r RawValue),
    Encoded(EncodedStep<'r>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum EncodedStep<'r> {
    UserInput { content: Vec<InputContent<'r>> },
    ModelOutput { content: [InputContent<'r>; 1] },
    Thought { signature: &'static str },
    FunctionCall(FunctionCall<'r>),
    FunctionResult(FunctionResult<'r>),
}

#[derive(Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum InputContent<'r> {
    Text { text: Cow<'r, str> },
    Image { mime_type: &'r str, data: &'r str },
    Audio { mime_type: &'r str, data: &'r str },
    Document { mime_type: &'r str, data: &'r str },
}

#[derive(Serialize)]
struct FunctionCall<'r> {
    id: &'r str,
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResult<'r> {
    call_id: &'r str,
    name: String,
    result: ResultContent<'r>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
}

/// The result as one string, unless there are media: some models take a list for images and reject
/// it.
#[derive(Serialize)]
#[serde(untagged)]
enum ResultContent<'r> {
    Text(Cow<'r, str>),
    List(Vec<InputContent<'r>>),
}

#[derive(Serialize)]
struct FunctionTool<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    name: &'r str,
    description: &'r str,
    parameters: &'r Value,
}

#[derive(Serialize)]
struct GenerationConfig<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_choice: Option<&'static str>,
}

#[derive(Serialize)]
struct ResponseFormat<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    mime_type: &'static str,
    schema: &'r Value,
}

pub(super) fn request_body(encode_request: EncodeRequest<'_>) -> RequestBody<'_> {
    let EncodeRequest { request, encoded_tools, capabilities, .. } = encode_request;
    let available = if capabilities.tools.native { encoded_tools.as_slice() } else { &[] };
    let tools = available.iter().map(|tool| FunctionTool {
        kind: "function",
        name: &tool.alias,
        description: &tool.description,
        parameters: tool.schema(),
    });
    let schema = encode_request.response_schema();
    RequestBody {
        model: model_name(encode_request.model),
        system_instruction: &request.system,
        input: steps(encode_request),
        tools: tools.collect(),
        generation_config: GenerationConfig {
            temperature: encode_request.temperature(),
            max_output_tokens: request.max_tokens.or(capabilities.tokens.default_output),
            stop_sequences: if capabilities.stop_sequences { &request.stop_sequences } else { &[] },
            tool_choice: (!available.is_empty()).then(|| calling_mode(encode_request)),
        },
        response_format: schema.map(|schema| ResponseFormat {
            kind: "text",
            mime_type: "application/json",
            schema,
        }),
        store: false,
        stream: encode_request.streaming,
    }
}

/// A call of the previous assistant message: its id and its name in the API.
type CallReference<'r> = (&'r str, String);

fn steps(encode_request: EncodeRequest<'_>) -> Vec<InputStep<'_>> {
    let mut steps = Vec::with_capacity(encode_request.request.messages.len());
    let mut calls = Vec::new();
    for message in &encode_request.request.messages {
        match message {
            Message::User(content) => {
                steps.push(InputStep::Encoded(EncodedStep::UserInput {
                    content: input_contents(content),
                }));
            }
            Message::Assistant(assistant) => {
                push_assistant_steps(encode_request, assistant, &mut steps, &mut calls);
            }
            Message::ToolResults(results) => {
                steps.extend(
                    results.iter().map(|result| function_result(encode_request, result, &calls)),
                );
            }
        }
    }
    steps
}

/// Encodes an assistant message. `calls` receives the references for its results.
fn push_assistant_steps<'r>(
    encode_request: EncodeRequest<'r>,
    assistant: &'r AssistantMessage,
    steps: &mut Vec<InputStep<'r>>,
    calls: &mut Vec<CallReference<'r>>,
) {
    calls.clear();
    for part in &assistant.parts {
        let native = part.provider_block.as_ref();
        let native = native.and_then(|block| {
            block.for_model(ProviderApi::GeminiInteractions, encode_request.model)
        });
        match (&part.content, native) {
            (PartContent::ToolCall(call), Some(native)) => {
                let native_call = ObjectView::from_raw(native).unwrap_or_default();
                let name = native_call
                    .text("name")
                    .unwrap_or_else(|| encode_request.encoded_tools.alias(&call.name));
                calls.push((&call.id, name));
                steps.push(InputStep::Verbatim(native));
            }
            (PartContent::ToolCall(call), None) => {
                // The thought before the first call holds the signature of all calls.
                if calls.is_empty()
                    && encode_request.capabilities.quirks.gemini.placeholder_signatures
                {
                    steps.push(InputStep::Encoded(EncodedStep::Thought {
                        signature: PLACEHOLDER_SIGNATURE,
                    }));
                }
                let name = encode_request.encoded_tools.alias(&call.name);
                let id = call.id.as_str();
                let arguments = arguments_object(&call.arguments);
                calls.push((id, name.clone()));
                steps.push(InputStep::Encoded(EncodedStep::FunctionCall(FunctionCall {
                    id,
                    name,
                    arguments,
                })));
            }
            (_, Some(native)) => steps.push(InputStep::Verbatim(native)),
            (PartContent::Text(text), None) if !text.is_empty() => {
                steps.push(InputStep::Encoded(EncodedStep::ModelOutput {
                    content: [text_content(text)],
                }));
            }
            (PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other, None) => {}
        }
    }
}

fn function_result<'r>(
    encode_request: EncodeRequest<'r>,
    result: &'r ToolResult,
    calls: &[CallReference<'r>],
) -> InputStep<'r> {
    let call_id = result.id.as_str();
    let name = calls.iter().find(|(id, _)| *id == call_id).map(|(_, name)| name.clone());
    let name = name.unwrap_or_else(|| encode_request.encoded_tools.alias(&result.name));
    let is_error = result.is_error;
    let result = if result.content.has_media() {
        ResultContent::List(input_contents(&result.content))
    } else {
        ResultContent::Text(result.content.to_text())
    };
    InputStep::Encoded(EncodedStep::FunctionResult(FunctionResult {
        call_id,
        name,
        result,
        is_error,
    }))
}

fn text_content(text: &str) -> InputContent<'_> {
    InputContent::Text { text: text.into() }
}

fn input_contents(content: &Content) -> Vec<InputContent<'_>> {
    if !content.has_media() {
        return vec![InputContent::Text { text: content.to_text() }];
    }
    let contents = content.segments().into_iter().map(|segment| match segment {
        Segment::Text(text) => InputContent::Text { text },
        Segment::Media(media) => {
            let mime_type = media.mime_type.unwrap_or_default();
            let data = media.data;
            match media.kind {
                MediaKind::Image => InputContent::Image { mime_type, data },
                MediaKind::Audio => InputContent::Audio { mime_type, data },
                MediaKind::Document => InputContent::Document { mime_type, data },
            }
        }
    });
    contents.collect()
}
