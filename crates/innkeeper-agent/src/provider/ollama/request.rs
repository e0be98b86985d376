//! Encodes a request for Ollama.

use std::collections::HashMap;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ProviderBlock, ToolCall,
};
use crate::provider::codec::{ApiError, EncodeRequest, HttpRequest, ObjectView, arguments_object};
use crate::provider::{ProviderApi, ToolChoice};

/// Default context window in tokens. Ollama's own default is smaller on most machines, and Ollama
/// silently drops what does not fit, tools first. This window takes about two gigabytes for a model
/// of eight billion parameters.
pub(in crate::provider) const DEFAULT_CONTEXT_TOKENS: u32 = 16_384;

#[derive(Serialize)]
struct RequestBody<'r> {
    model: &'r str,
    messages: Vec<ChatMessage<'r>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tool<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<&'r Value>,
    options: ModelOptions<'r>,
    /// Always sent, because Ollama's default is `true`.
    stream: bool,
}

#[derive(Serialize)]
struct ModelOptions<'r> {
    num_ctx: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    num_predict: Option<u32>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stop: Vec<&'r str>,
}

#[derive(Serialize)]
struct ChatMessage<'r> {
    role: &'static str,
    content: String,
    /// Images in Base64.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'r str>,
    #[serde(skip_serializing_if = "String::is_empty")]
    thinking: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ChatToolCall<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<&'r str>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum ChatToolCall<'r> {
    /// The call as the model sent it.
    Verbatim(&'r RawValue),
    Encoded {
        id: &'r str,
        function: FunctionCall,
    },
}

#[derive(Serialize)]
struct FunctionCall {
    name: String,
    arguments: Box<RawValue>,
}

#[derive(Serialize)]
struct Tool<'r> {
    r#type: &'static str,
    function: FunctionDefinition<'r>,
}

#[derive(Serialize)]
struct FunctionDefinition<'r> {
    name: &'r str,
    #[serde(skip_serializing_if = "str::is_empty")]
    description: &'r str,
    parameters: &'r Value,
}

impl ChatMessage<'_> {
    fn new(role: &'static str, content: String) -> Self {
        Self {
            role,
            content,
            images: Vec::new(),
            thinking: String::new(),
            tool_calls: Vec::new(),
            tool_name: None,
            tool_call_id: None,
        }
    }
}

pub(super) fn encode(encode_request: EncodeRequest<'_>) -> Result<HttpRequest, ApiError> {
    let EncodeRequest { request, model, capabilities, streaming, .. } = encode_request;
    let tools = tools(encode_request);
    let stop = request.stop_sequences.iter().map(String::as_str);
    let body = RequestBody {
        model,
        messages: messages(encode_request),
        // With tools and a format, the model calls no tool.
        format: encode_request.response_schema().filter(|_| tools.is_empty()),
        tools,
        options: ModelOptions {
            num_ctx: request
                .context_tokens
                .or(capabilities.tokens.context)
                .unwrap_or(DEFAULT_CONTEXT_TOKENS),
            temperature: encode_request.temperature(),
            num_predict: request.max_tokens.or(capabilities.tokens.default_output),
            stop: stop
                .filter(|sequence| capabilities.stop_sequences && !sequence.is_empty())
                .collect(),
        },
        stream: streaming,
    };
    HttpRequest::new("/api/chat", &body)
}

/// Returns the tools. The API has no tool choice: the only way to forbid calls is to send no tools,
/// and a call cannot be required.
fn tools(encode_request: EncodeRequest<'_>) -> Vec<Tool<'_>> {
    let offers = match encode_request.request.tool_choice {
        ToolChoice::None => false,
        ToolChoice::Auto | ToolChoice::Required => encode_request.capabilities.tools.native,
    };
    let available =
        encode_request.encoded_tools.as_slice().iter().filter(|_| offers).map(|tool| Tool {
            r#type: "function",
            function: FunctionDefinition {
                name: &tool.alias,
                description: &tool.description,
                parameters: tool.schema(),
            },
        });
    available.collect()
}

fn messages(encode_request: EncodeRequest<'_>) -> Vec<ChatMessage<'_>> {
    let mut messages = Vec::new();
    if !encode_request.request.system.is_empty() {
        messages.push(ChatMessage::new("system", encode_request.request.system.clone()));
    }
    let mut names = HashMap::new();
    for message in &encode_request.request.messages {
        match message {
            Message::User(content) => messages.push(ChatMessage {
                // The lowered content has no other media.
                images: content.media().map(|media| media.data).collect(),
                ..ChatMessage::new("user", content.text_without_media().into_owned())
            }),
            Message::Assistant(assistant) => {
                names = provider_call_names(encode_request, assistant);
                messages.extend(assistant_message(encode_request, assistant));
            }
            Message::ToolResults(results) => {
                messages.extend(results.iter().map(|result| ChatMessage {
                    tool_name: Some(match names.get(result.id.as_str()) {
                        Some(name) => name.clone(),
                        None => encode_request.encoded_tools.alias(&result.name),
                    }),
                    tool_call_id: Some(&result.id),
                    ..ChatMessage::new("tool", result.content.to_text().into_owned())
                }));
            }
        }
    }
    messages
}

/// Returns the names of calls that are sent verbatim, by call id. Names depend on the tools of a
/// request, and a result has to name its call.
fn provider_call_names<'r>(
    encode_request: EncodeRequest<'r>,
    assistant: &'r AssistantMessage,
) -> HashMap<&'r str, String> {
    let names = assistant.parts.iter().filter_map(|part| {
        let PartContent::ToolCall(call) = &part.content else { return None };
        let function =
            ObjectView::from_raw(provider_block(encode_request, part)?)?.object("function")?;
        Some((call.id.as_str(), function.text("name")?))
    });
    names.collect()
}

/// Encodes an assistant message; `None` if the message is empty.
fn assistant_message<'r>(
    encode_request: EncodeRequest<'r>,
    assistant: &'r AssistantMessage,
) -> Option<ChatMessage<'r>> {
    let mut message = ChatMessage::new("assistant", assistant.visible_text());
    for part in &assistant.parts {
        let native = provider_block(encode_request, part);
        match (&part.content, native) {
            (PartContent::ToolCall(_), Some(raw)) => {
                message.tool_calls.push(ChatToolCall::Verbatim(raw));
            }
            (PartContent::ToolCall(call), None) => {
                message.tool_calls.push(encode_call(encode_request, call));
            }
            // Reasoning goes back only to the model that wrote it.
            (PartContent::Reasoning(text), Some(_)) => message.thinking.push_str(text),
            (PartContent::Reasoning(_), None) | (PartContent::Text(_) | PartContent::Other, _) => {}
        }
    }
    let empty = message.content.is_empty() && message.tool_calls.is_empty();
    (!empty).then_some(message)
}

fn provider_block<'r>(
    encode_request: EncodeRequest<'r>,
    part: &'r ContentPart,
) -> Option<&'r RawValue> {
    part.provider_block.as_ref().and_then(|block: &ProviderBlock| {
        block.for_model(ProviderApi::Ollama, encode_request.model)
    })
}

fn encode_call<'r>(encode_request: EncodeRequest<'r>, call: &'r ToolCall) -> ChatToolCall<'r> {
    let name = encode_request.encoded_tools.alias(&call.name);
    let arguments = arguments_object(&call.arguments);
    ChatToolCall::Encoded { id: &call.id, function: FunctionCall { name, arguments } }
}
