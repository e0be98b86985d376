//! Encodes a request for generateContent.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::content::{Content, Media, Segment};
use crate::conversation::{AssistantMessage, Message, PartContent, ToolResult};
use crate::provider::ProviderApi;
use crate::provider::codec::{EncodeRequest, ObjectView, arguments_object};
use crate::provider::gemini::{PLACEHOLDER_SIGNATURE, calling_mode};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct RequestBody<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<RequestContent<'r>>,
    contents: Vec<RequestContent<'r>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<[FunctionDeclarations<'r>; 1]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_config: Option<ToolConfig>,
    generation_config: GenerationConfig<'r>,
}

#[derive(Serialize)]
struct RequestContent<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<RequestPart<'r>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum RequestPart<'r> {
    /// The part as the model sent it.
    Verbatim(&'r RawValue),
    Text {
        text: Cow<'r, str>,
    },
    InlineData(InlineData<'r>),
    #[serde(rename_all = "camelCase")]
    FunctionCall {
        function_call: FunctionCall,
        #[serde(skip_serializing_if = "Option::is_none")]
        thought_signature: Option<&'static str>,
    },
    #[serde(rename_all = "camelCase")]
    FunctionResponse {
        function_response: FunctionResponse<'r>,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct InlineData<'r> {
    inline_data: Blob<'r>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Blob<'r> {
    mime_type: &'r str,
    data: &'r str,
}

#[derive(Serialize)]
struct FunctionCall {
    name: String,
    args: Box<RawValue>,
}

#[derive(Serialize)]
struct FunctionResponse<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    name: String,
    response: FunctionResponseBody<'r>,
    /// The media; the response contains a line of text for each.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    parts: Vec<InlineData<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
enum FunctionResponseBody<'r> {
    Result(Cow<'r, str>),
    Error(Cow<'r, str>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclarations<'r> {
    function_declarations: Vec<FunctionDeclaration<'r>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FunctionDeclaration<'r> {
    name: &'r str,
    description: &'r str,
    parameters_json_schema: &'r Value,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ToolConfig {
    function_calling_config: FunctionCallingConfig,
}

#[derive(Serialize)]
struct FunctionCallingConfig {
    mode: String,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig<'r> {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    stop_sequences: &'r [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    response_mime_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    response_json_schema: Option<&'r Value>,
}

pub(super) fn request_body(encode_request: EncodeRequest<'_>) -> RequestBody<'_> {
    let EncodeRequest { request, encoded_tools, capabilities, .. } = encode_request;
    let system = &request.system;
    let system_instruction = (!system.is_empty()).then(|| RequestContent {
        role: None,
        parts: vec![RequestPart::Text { text: system.into() }],
    });
    let with_tools = capabilities.tools.native && !encoded_tools.is_empty();
    let declarations = encoded_tools.as_slice().iter().map(|tool| FunctionDeclaration {
        name: &tool.alias,
        description: &tool.description,
        parameters_json_schema: tool.schema(),
    });
    RequestBody {
        system_instruction,
        contents: contents(encode_request),
        tools: with_tools
            .then(|| [FunctionDeclarations { function_declarations: declarations.collect() }]),
        tool_config: with_tools.then(|| {
            let mode = calling_mode(encode_request).to_ascii_uppercase();
            ToolConfig { function_calling_config: FunctionCallingConfig { mode } }
        }),
        generation_config: generation_config(encode_request),
    }
}

fn generation_config(encode_request: EncodeRequest<'_>) -> GenerationConfig<'_> {
    let EncodeRequest { request, capabilities, .. } = encode_request;
    let schema = encode_request.response_schema();
    GenerationConfig {
        temperature: encode_request.temperature(),
        max_output_tokens: request.max_tokens.or(capabilities.tokens.default_output),
        stop_sequences: if capabilities.stop_sequences { &request.stop_sequences } else { &[] },
        response_mime_type: schema.map(|_| "application/json"),
        response_json_schema: schema,
    }
}

/// A call of the previous assistant message, for the encoding of its result.
struct CallReference<'r> {
    /// The id of the call in the conversation.
    local_id: &'r str,
    name: String,
    provider_id: Option<String>,
}

/// Merges consecutive assistant messages, for example of a model that continues a message: the API
/// accepts a call only after user content.
fn contents(encode_request: EncodeRequest<'_>) -> Vec<RequestContent<'_>> {
    let mut contents: Vec<RequestContent<'_>> =
        Vec::with_capacity(encode_request.request.messages.len());
    let mut calls = Vec::new();
    for message in &encode_request.request.messages {
        let (role, parts) = match message {
            Message::User(content) => ("user", user_parts(content)),
            Message::Assistant(assistant) => {
                ("model", assistant_parts(encode_request, assistant, &mut calls))
            }
            Message::ToolResults(results) => {
                let parts =
                    results.iter().map(|result| function_response(encode_request, result, &calls));
                ("user", parts.collect())
            }
        };
        match contents.last_mut() {
            Some(last) if role == "model" && last.role == Some(role) => last.parts.extend(parts),
            Some(_) | None if parts.is_empty() => {}
            Some(_) | None => contents.push(RequestContent { role: Some(role), parts }),
        }
    }
    contents
}

/// Encodes an assistant message. `calls` receives the references for its results.
fn assistant_parts<'r>(
    encode_request: EncodeRequest<'r>,
    assistant: &'r AssistantMessage,
    calls: &mut Vec<CallReference<'r>>,
) -> Vec<RequestPart<'r>> {
    calls.clear();
    let mut parts = Vec::with_capacity(assistant.parts.len());
    for part in &assistant.parts {
        let native = part.provider_block.as_ref();
        let native = native
            .and_then(|block| block.for_model(ProviderApi::GeminiGenerate, encode_request.model));
        if let PartContent::ToolCall(call) = &part.content {
            let native_call = native
                .and_then(ObjectView::from_raw)
                .map(|object| object.object("functionCall").unwrap_or_default());
            let name = native_call.as_ref().and_then(|call_object| call_object.text("name"));
            let name = name.unwrap_or_else(|| encode_request.encoded_tools.alias(&call.name));
            let provider_id = native_call.and_then(|call_object| call_object.text("id"));
            let first = calls.is_empty();
            calls.push(CallReference { local_id: &call.id, name: name.clone(), provider_id });
            parts.push(match native {
                Some(native) => RequestPart::Verbatim(native),
                None => RequestPart::FunctionCall {
                    function_call: FunctionCall { name, args: arguments_object(&call.arguments) },
                    // Only the first call of a message has a signature.
                    thought_signature: (first
                        && encode_request.capabilities.quirks.gemini.placeholder_signatures)
                        .then_some(PLACEHOLDER_SIGNATURE),
                },
            });
        } else if let Some(native) = native {
            parts.push(RequestPart::Verbatim(native));
        } else if let PartContent::Text(text) = &part.content
            && !text.is_empty()
        {
            parts.push(RequestPart::Text { text: text.into() });
        }
    }
    parts
}

fn function_response<'r>(
    encode_request: EncodeRequest<'r>,
    result: &'r ToolResult,
    calls: &[CallReference<'r>],
) -> RequestPart<'r> {
    let call = calls.iter().find(|call| call.local_id == result.id);
    let name = call
        .map_or_else(|| encode_request.encoded_tools.alias(&result.name), |call| call.name.clone());
    let id = call.and_then(|call| call.provider_id.clone());
    let text = result.content.to_text();
    let response = if result.is_error {
        FunctionResponseBody::Error(text)
    } else {
        FunctionResponseBody::Result(text)
    };
    let parts = result.content.media().map(inline_data).collect();
    RequestPart::FunctionResponse {
        function_response: FunctionResponse { id, name, response, parts },
    }
}

fn user_parts(content: &Content) -> Vec<RequestPart<'_>> {
    if !content.has_media() {
        return vec![RequestPart::Text { text: content.to_text() }];
    }
    let parts = content.segments().into_iter().map(|segment| match segment {
        Segment::Text(text) => RequestPart::Text { text },
        Segment::Media(media) => RequestPart::InlineData(inline_data(media)),
    });
    parts.collect()
}

fn inline_data(media: Media<'_>) -> InlineData<'_> {
    let mime_type = media.mime_type.unwrap_or_default();
    InlineData { inline_data: Blob { mime_type, data: media.data } }
}
