//! The OpenAI Responses API.

mod events;
mod validation;

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, StreamSpec, array_items};
use super::openai_chat;
use super::response::{CREATED_AT, ContentPart, FinishReason, ModelResponse, ToolCall, signature};

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "call_",
    stream: StreamSpec {
        is_default: false,
        content_type: "text/event-stream; charset=utf-8",
        chunks: events::stream_chunks,
    },
    tool_names,
    validate: validation::validate,
    response_body,
    parse_failure: None,
    error_body: openai_chat::error_body,
};

fn tool_names(body: &Value) -> Vec<String> {
    let functions = array_items(&body["tools"]).iter().filter(|tool| tool["type"] == "function");
    functions.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn response_body(response: &ModelResponse) -> Value {
    let output: Vec<Value> = response
        .content_parts
        .iter()
        .enumerate()
        .map(|(at, part)| output_item(response, at, part))
        .collect();
    response_object(response, &output)
}

fn response_object(model_response: &ModelResponse, output: &[Value]) -> Value {
    let (status, incomplete) = match (model_response.finish_reason, &model_response.error) {
        (_, Some(_)) => ("failed", Value::Null),
        (FinishReason::Stop | FinishReason::ToolCalls, None) => ("completed", Value::Null),
        (FinishReason::Length, None) => ("incomplete", json!({"reason": "max_output_tokens"})),
        (FinishReason::Refusal, None) => ("incomplete", json!({"reason": "content_filter"})),
    };
    let mut response = new_response(model_response, status);
    response["error"] = match &model_response.error {
        Some(message) => json!({"code": "server_error", "message": message}),
        None => Value::Null,
    };
    response["incomplete_details"] = incomplete;
    response["output"] = json!(output);
    response["usage"] = usage(model_response);
    response
}

/// The response object before any output.
fn new_response(response: &ModelResponse, status: &str) -> Value {
    json!({
        "id": format!("resp_{:04}", response.number), "object": "response", "created_at": CREATED_AT,
        "status": status, "background": false, "error": null, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "model": response.model, "output": [],
        "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": "medium", "summary": null}, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": null, "metadata": {},
    })
}

fn output_item(response: &ModelResponse, at: usize, part: &ContentPart) -> Value {
    let id = item_id(response, at, part);
    match part {
        ContentPart::Reasoning(text) => json!({
            "id": id, "type": "reasoning", "summary": [summary_text(text)],
            "encrypted_content": encrypted_content(&id, text),
        }),
        ContentPart::Text(text) => json!({
            "id": id, "type": "message", "status": item_status(response, at), "role": "assistant",
            "content": [output_text(text)],
        }),
        ContentPart::ToolCall(call) => {
            function_call(&id, call, &call.arguments, item_status(response, at))
        }
    }
}

fn item_id(response: &ModelResponse, at: usize, part: &ContentPart) -> String {
    let prefix = match part {
        ContentPart::Reasoning(_) => "rs",
        ContentPart::Text(_) => "msg",
        ContentPart::ToolCall(_) => "fc",
    };
    format!("{prefix}_{:04}{at:02}", response.number)
}

/// The status of an item; truncation affects the last part.
fn item_status(response: &ModelResponse, at: usize) -> &'static str {
    match response.finish_reason == FinishReason::Length && at + 1 == response.content_parts.len() {
        true => "incomplete",
        false => "completed",
    }
}

fn function_call(id: &str, call: &ToolCall, arguments: &str, status: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "arguments": arguments,
        "call_id": call.id, "name": call.name,
    })
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn summary_text(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// The encrypted reasoning that must come back unchanged.
fn encrypted_content(id: &str, text: &str) -> String {
    format!("gAAAAA{}", signature(&format!("{id} {text}")))
}

fn usage(response: &ModelResponse) -> Value {
    let Some(usage) = response.usage else { return Value::Null };
    let mut counts = json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    });
    if let Some(cost) = usage.cost {
        counts["cost"] = json!(cost);
    }
    counts
}
