//! The Anthropic Messages API.

mod validation;

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, StreamSpec, strings_at};
use super::response::{
    ContentPart, FinishReason, ModelResponse, ToolCall, reasoning_signature, text_chunks,
};
use super::sse;

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "toolu_",
    stream: StreamSpec {
        is_default: false,
        content_type: "text/event-stream; charset=utf-8",
        chunks: stream_chunks,
    },
    tool_names: |body| strings_at(&body["tools"], "name").map(str::to_owned).collect(),
    validate: validation::validate,
    response_body,
    parse_failure: None,
    error_body,
};

fn response_body(response: &ModelResponse) -> Value {
    let blocks: Vec<Value> = response.content_parts.iter().map(content_block).collect();
    let mut message = message_start(response);
    message["content"] = json!(blocks);
    for (key, value) in stop_fields(response) {
        message[key] = value;
    }
    message["usage"] = usage(response, None);
    message
}

fn content_block(part: &ContentPart) -> Value {
    match part {
        ContentPart::Reasoning(text) => json!({
            "type": "thinking", "thinking": text, "signature": reasoning_signature(text),
        }),
        ContentPart::Text(text) => json!({"type": "text", "text": text}),
        ContentPart::ToolCall(call) => tool_use(call, &call.arguments_placeholder()),
    }
}

fn tool_use(call: &ToolCall, input: &Value) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}

fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let mut message = message_start(response);
    message["usage"] = usage(response, Some(1));
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, part) in response.content_parts.iter().enumerate() {
        let start = match part {
            ContentPart::Reasoning(_) => {
                json!({"type": "thinking", "thinking": "", "signature": ""})
            }
            ContentPart::Text(_) => json!({"type": "text", "text": ""}),
            ContentPart::ToolCall(call) => tool_use(call, &json!({})),
        };
        let start = json!({"type": "content_block_start", "index": index, "content_block": start});
        events.push(start);
        if index == 0 {
            events.push(json!({"type": "ping"}));
        }
        let deltas = deltas(part).into_iter();
        events.extend(
            deltas.map(
                |delta| json!({"type": "content_block_delta", "index": index, "delta": delta}),
            ),
        );
        if !is_unterminated(response, index) {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    match &response.error {
        Some(message) => {
            let error = json!({"type": "overloaded_error", "message": message});
            events.push(json!({"type": "error", "error": error}));
        }
        None => {
            let delta: serde_json::Map<String, Value> = stop_fields(response)
                .into_iter()
                .map(|(key, value)| (key.to_owned(), value))
                .collect();
            let usage = usage(response, None);
            events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
            events.push(json!({"type": "message_stop"}));
        }
    }
    events.iter().map(|event| sse::typed_event(event, &event.to_string())).collect()
}

/// Whether a call has no stop event, because the response is truncated or fails.
fn is_unterminated(response: &ModelResponse, index: usize) -> bool {
    let is_last = index + 1 == response.content_parts.len();
    let open =
        matches!(&response.content_parts[index], ContentPart::ToolCall(call) if !call.is_object());
    is_last && open && (response.finish_reason == FinishReason::Length || response.error.is_some())
}

fn deltas(part: &ContentPart) -> Vec<Value> {
    match part {
        ContentPart::Reasoning(text) => {
            let chunks = text_chunks(text).into_iter();
            let thinking = chunks.map(|chunk| json!({"type": "thinking_delta", "thinking": chunk}));
            let signature = reasoning_signature(text);
            thinking.chain([json!({"type": "signature_delta", "signature": signature})]).collect()
        }
        ContentPart::Text(text) => {
            let chunks = text_chunks(text).into_iter();
            chunks.map(|chunk| json!({"type": "text_delta", "text": chunk})).collect()
        }
        // The first chunk of a call is always empty.
        ContentPart::ToolCall(call) => {
            let chunks = [String::new()].into_iter().chain(text_chunks(&call.arguments));
            chunks.map(|chunk| json!({"type": "input_json_delta", "partial_json": chunk})).collect()
        }
    }
}

fn message_start(response: &ModelResponse) -> Value {
    json!({
        "id": format!("msg_{:04}", response.number), "type": "message", "role": "assistant",
        "model": response.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": null,
    })
}

fn stop_fields(response: &ModelResponse) -> Vec<(&'static str, Value)> {
    let reason = match response.finish_reason {
        FinishReason::Stop => "end_turn",
        FinishReason::ToolCalls => "tool_use",
        FinishReason::Length => "max_tokens",
        FinishReason::Refusal => "refusal",
    };
    let details = match response.finish_reason {
        FinishReason::Refusal => {
            json!({"type": "refusal", "category": "cyber", "explanation": null})
        }
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Length => Value::Null,
    };
    let reason = ("stop_reason", json!(reason));
    vec![reason, ("stop_sequence", Value::Null), ("stop_details", details)]
}

/// Cached tokens are not part of the input tokens.
fn usage(response: &ModelResponse, output_tokens: Option<u64>) -> Value {
    let Some(usage) = response.usage else { return Value::Null };
    let output_tokens = output_tokens.unwrap_or(usage.completion);
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": usage.cached,
        "output_tokens": output_tokens,
        "output_tokens_details": {"thinking_tokens": usage.reasoning.min(output_tokens)},
    })
}

fn error_body(status: u16, code: Option<&str>, bad_request: &BadRequest) -> Value {
    let own_code = match status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        409 => "conflict_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        504 => "timeout_error",
        529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    let error = json!({"type": code.unwrap_or(own_code), "message": bad_request.message});
    json!({"type": "error", "error": error, "request_id": "req_scripted"})
}
