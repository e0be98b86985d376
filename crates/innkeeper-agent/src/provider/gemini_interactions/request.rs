//! Encodes a request for the Interactions API.

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{AssistantMessage, Message, PartContent, ToolResult};
use crate::provider::codec::{EncodeRequest, ObjectView, arguments_object};
use crate::provider::gemini::{PLACEHOLDER_SIGNATURE, model_name};
use crate::provider::{OutputConstraint, ProviderApi, ToolChoice};

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
    UserInput { content: [TextContent<'r>; 1] },
    ModelOutput { content: [TextContent<'r>; 1] },
    Thought { signature: &'static str },
    FunctionCall(FunctionCall<'r>),
    FunctionResult(FunctionResult<'r>),
}

#[derive(Serialize)]
struct TextContent<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    text: &'r str,
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
    /// The result as one string: some models take a list for images and reject it.
    result: &'r str,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    is_error: bool,
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
    let available = if capabilities.native_tools { encoded_tools.as_slice() } else { &[] };
    let tools = available.iter().map(|tool| FunctionTool {
        kind: "function",
        name: &tool.alias,
        description: &tool.description,
        parameters: tool.schema(),
    });
    let choice = match request.tool_choice {
        ToolChoice::None => "none",
        ToolChoice::Required if capabilities.forced_choice => "any",
        ToolChoice::Auto | ToolChoice::Required if capabilities.quirks.validated_mode => {
            "validated"
        }
        ToolChoice::Auto | ToolChoice::Required => "auto",
    };
    let schema = match &request.output_constraint {
        Some(OutputConstraint::JsonSchema(schema)) if capabilities.constraints.json_schema => {
            Some(schema)
        }
        Some(
            OutputConstraint::JsonSchema(_)
            | OutputConstraint::Gbnf(_)
            | OutputConstraint::StructuralTag(_),
        )
        | None => None,
    };
    RequestBody {
        model: model_name(encode_request.model),
        system_instruction: &request.system,
        input: steps(encode_request),
        tools: tools.collect(),
        generation_config: GenerationConfig {
            temperature: request.temperature.filter(|_| capabilities.temperature),
            max_output_tokens: request.max_tokens.or(capabilities.default_max_tokens),
            stop_sequences: if capabilities.stop_sequences { &request.stop_sequences } else { &[] },
            tool_choice: (!available.is_empty()).then_some(choice),
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
            Message::User(text) => {
                steps.push(InputStep::Encoded(EncodedStep::UserInput {
                    content: [text_content(text)],
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
                if calls.is_empty() && encode_request.capabilities.quirks.placeholder_signatures {
                    steps.push(InputStep::Encoded(EncodedStep::Thought {
                        signature: PLACEHOLDER_SIGNATURE,
                    }));
                }
                let name = encode_request.encoded_tools.alias(&call.name);
                let (id, arguments) = (call.id.as_str(), arguments_object(&call.arguments));
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
    let (result, is_error) = (result.text.as_str(), result.is_error);
    InputStep::Encoded(EncodedStep::FunctionResult(FunctionResult {
        call_id,
        name,
        result,
        is_error,
    }))
}

fn text_content(text: &str) -> TextContent<'_> {
    TextContent { kind: "text", text }
}
