//! The OpenAI Chat Completions API, with `reasoning_content` as in other servers.

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, StreamSpec, array_items, strings_at};
use super::issued_calls::IssuedCalls;
use super::response::{
    CREATED_AT, ContentPart, FinishReason, ModelResponse, ToolCall, text_chunks,
};
use super::sse;

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "call_",
    stream: StreamSpec {
        is_default: false,
        content_type: "text/event-stream; charset=utf-8",
        chunks: stream_chunks,
    },
    tool_names,
    validate,
    response_body,
    parse_failure: None,
    error_body,
};

fn tool_names(body: &Value) -> Vec<String> {
    let functions =
        array_items(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    functions.map(str::to_owned).collect()
}

/// Checks that each call of a response has one result.
fn validate(body: &Value, _: &IssuedCalls) -> Result<(), BadRequest> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in array_items(&body["messages"]).iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str();
            let Some(position) = open.iter().position(|open_id| Some(*open_id) == id) else {
                let text = "Invalid parameter: messages with role 'tool' must be a response to a \
                            preceding message with 'tool_calls'.";
                return Err(BadRequest::new(text).with_param(format!("messages.[{at}].role")));
            };
            open.remove(position);
            continue;
        }
        check_calls_have_results(&open, at)?;
        open = strings_at(&message["tool_calls"], "id").collect();
    }
    check_calls_have_results(&open, array_items(&body["messages"]).len())
}

fn check_calls_have_results(open: &[&str], at: usize) -> Result<(), BadRequest> {
    if open.is_empty() {
        return Ok(());
    }
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(BadRequest::new(text).with_param(format!("messages.[{at}].role")))
}

fn response_body(response: &ModelResponse) -> Value {
    let text = response.text();
    let content = if text.is_empty() { Value::Null } else { json!(text) };
    let mut message =
        json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    let reasoning = response.reasoning();
    if !reasoning.is_empty() {
        message["reasoning_content"] = json!(reasoning);
    }
    let calls: Vec<Value> =
        response.tool_calls().map(|call| function_call(call, &call.arguments)).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let reason = finish_reason(response);
    json!({
        "id": completion_id(response), "object": "chat.completion", "created": CREATED_AT, "model": response.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": reason}],
        "usage": usage(response), "service_tier": "default", "system_fingerprint": null,
    })
}

fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    for part in &response.content_parts {
        match part {
            ContentPart::Reasoning(text) => {
                deltas.extend(
                    text_chunks(text)
                        .iter()
                        .map(|chunk_text| json!({"reasoning_content": chunk_text})),
                );
            }
            ContentPart::Text(text) => {
                deltas.extend(
                    text_chunks(text).iter().map(|chunk_text| json!({"content": chunk_text})),
                );
            }
            ContentPart::ToolCall(call) => {
                let mut first = function_call(call, "");
                first["index"] = json!(call.index);
                deltas.push(json!({"tool_calls": [first]}));
                deltas.extend(text_chunks(&call.arguments).iter().map(|arguments_chunk| {
                    json!({"tool_calls": [{"index": call.index, "function": {"arguments": arguments_chunk}}]})
                }));
            }
        }
    }
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| chunk(response, delta, &Value::Null)).collect();
    if let Some(message) = &response.error {
        chunks.push(error_body(500, None, &BadRequest::new(message)));
        return chunks.iter().map(|event| sse::data_event(&event.to_string())).collect();
    }
    chunks.push(chunk(response, &json!({}), &json!(finish_reason(response))));
    if response.includes_usage && response.usage.is_some() {
        let mut last = chunk(response, &Value::Null, &Value::Null);
        last["choices"] = json!([]);
        last["usage"] = usage(response);
        chunks.push(last);
    }
    let events = chunks.iter().map(|event| sse::data_event(&event.to_string()));
    events.chain([sse::data_event("[DONE]")]).collect()
}

fn chunk(response: &ModelResponse, delta: &Value, reason: &Value) -> Value {
    let mut chunk = json!({
        "id": completion_id(response), "object": "chat.completion.chunk", "created": CREATED_AT,
        "model": response.model, "service_tier": "default", "system_fingerprint": null,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}],
        "obfuscation": "x7Gk2",
    });
    if response.includes_usage {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn function_call(call: &ToolCall, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

fn completion_id(response: &ModelResponse) -> String {
    format!("chatcmpl-{:04}", response.number)
}

fn finish_reason(response: &ModelResponse) -> &'static str {
    match response.finish_reason {
        FinishReason::Stop => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::Length => "length",
        FinishReason::Refusal => "content_filter",
    }
}

fn usage(response: &ModelResponse) -> Value {
    let Some(usage) = response.usage else { return Value::Null };
    let mut counts = json!({
        "prompt_tokens": usage.prompt, "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    });
    if let Some(cost) = usage.cost {
        counts["cost"] = json!(cost);
    }
    counts
}

/// The error body of both OpenAI APIs.
pub(super) fn error_body(status: u16, code: Option<&str>, bad_request: &BadRequest) -> Value {
    let (kind, own_code) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("permission_error", None),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let message = &bad_request.message;
    let param = &bad_request.param;
    let code = code.or(own_code);
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
