//! The Gemini generateContent API.

mod validation;

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, StreamSpec, array_items, strings_at};
use super::response::{
    ContentPart, FinishReason, ModelResponse, ToolCall, call_signature, signature, text_chunks,
};

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "fc",
    stream: StreamSpec {
        is_default: false,
        content_type: "text/event-stream",
        chunks: stream_chunks,
    },
    tool_names,
    validate: validation::validate,
    response_body,
    parse_failure: None,
    error_body,
};

fn tool_names(body: &Value) -> Vec<String> {
    let declarations = array_items(&body["tools"]).iter().map(|tool| &tool["functionDeclarations"]);
    declarations.flat_map(|list| strings_at(list, "name")).map(str::to_owned).collect()
}

fn response_body(response: &ModelResponse) -> Value {
    let parts: Vec<Value> = response_parts(response, |text| vec![text.to_owned()]);
    chunk(response, &parts, true)
}

fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let parts = response_parts(response, text_chunks);
    let mut chunks: Vec<Value> =
        parts.iter().map(|part| chunk(response, std::slice::from_ref(part), false)).collect();
    chunks.push(match &response.error {
        Some(message) => error_body(503, None, &BadRequest::new(message)),
        None => chunk(response, &[json!({"text": ""})], true),
    });
    chunks.iter().map(|chunk| format!("data: {}\r\n\r\n", response.to_json_text(chunk))).collect()
}

/// The response parts, with texts in chunks. The first of several calls has a signature; without a
/// call, the last text chunk after reasoning has a signature.
fn response_parts(response: &ModelResponse, split: impl Fn(&str) -> Vec<String>) -> Vec<Value> {
    let mut parts = Vec::new();
    for part in &response.content_parts {
        match part {
            ContentPart::Reasoning(text) => {
                parts.extend(
                    split(text)
                        .iter()
                        .map(|chunk_text| json!({"text": chunk_text, "thought": true})),
                );
            }
            ContentPart::Text(text) => {
                parts.extend(split(text).iter().map(|chunk_text| json!({"text": chunk_text})));
            }
            ContentPart::ToolCall(call) if call.is_object() => parts.push(function_call(call)),
            ContentPart::ToolCall(_) => {}
        }
    }
    let reasoning = response.reasoning();
    if response.tool_calls().next().is_none()
        && !reasoning.is_empty()
        && let Some(last) = parts.iter_mut().rfind(|part| part.get("thought").is_none())
    {
        last["thoughtSignature"] = json!(text_signature(&reasoning));
    }
    parts
}

fn function_call(call: &ToolCall) -> Value {
    let signed_text =
        json!({"id": call.id, "name": call.name, "args": call.arguments_placeholder()});
    match call.index {
        0 => json!({"functionCall": signed_text, "thoughtSignature": call.signature()}),
        _ => json!({"functionCall": signed_text}),
    }
}

/// The signature of a text: the signature of the reasoning before it, which is not sent back.
fn text_signature(reasoning: &str) -> String {
    let inner = signature(&format!("text {reasoning}"));
    format!(
        "{TEXT_SIGNATURE_PREFIX}{}",
        inner.get(TEXT_SIGNATURE_PREFIX.len()..).unwrap_or_default()
    )
}

const TEXT_SIGNATURE_PREFIX: &str = "7e47";

fn is_signed(part: &Value, signature: &str) -> bool {
    match &part["functionCall"] {
        Value::Null => signature.starts_with(TEXT_SIGNATURE_PREFIX),
        call => {
            let name = call["name"].as_str().unwrap_or_default();
            signature == call_signature(name, &call["args"])
        }
    }
}

fn chunk(response: &ModelResponse, parts: &[Value], is_last: bool) -> Value {
    let malformed =
        response.malformed_call().filter(|_| response.finish_reason != FinishReason::Length);
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        candidate["finishReason"] = json!(match (response.finish_reason, malformed) {
            (FinishReason::Refusal, _) => "SAFETY",
            (FinishReason::Length, _) => "MAX_TOKENS",
            (FinishReason::Stop | FinishReason::ToolCalls, Some(_)) => "MALFORMED_FUNCTION_CALL",
            (FinishReason::Stop | FinishReason::ToolCalls, None) => "STOP",
        });
        if let Some(call) = malformed {
            let message = format!("Malformed function call: {}({})", call.name, call.arguments);
            candidate["finishMessage"] = json!(message);
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(response),
        "modelVersion": response.model, "responseId": format!("resp-{:04}", response.number),
    })
}

/// Reasoning tokens are not part of the candidate tokens.
fn usage(response: &ModelResponse) -> Value {
    let Some(usage) = response.usage else { return Value::Null };
    json!({
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.completion.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.prompt + usage.completion,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.reasoning,
    })
}

fn error_body(status: u16, code: Option<&str>, bad_request: &BadRequest) -> Value {
    let own_code = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let message = &bad_request.message;
    let status_name = code.unwrap_or(own_code);
    json!({"error": {"code": status, "message": message, "status": status_name}})
}
