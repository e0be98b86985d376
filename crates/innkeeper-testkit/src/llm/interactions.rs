//! The Gemini Interactions API.

mod validation;

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, StreamSpec, array_items};
use super::response::{
    ContentPart, FinishReason, ModelResponse, ToolCall, reasoning_signature, text_chunks,
};

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "call_",
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
    let functions = array_items(&body["tools"]).iter().filter(|tool| tool["type"] == "function");
    functions.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn response_body(response: &ModelResponse) -> Value {
    let steps: Vec<Value> = response.content_parts.iter().map(response_step).collect();
    let mut interaction = interaction_object(response, status(response));
    interaction["steps"] = json!(steps);
    interaction["usage"] = usage(response);
    interaction
}

fn response_step(part: &ContentPart) -> Value {
    match part {
        ContentPart::Reasoning(text) => json!({
            "type": "thought", "summary": [{"type": "text", "text": text}],
            "signature": reasoning_signature(text),
        }),
        ContentPart::Text(text) => {
            json!({"type": "model_output", "content": [{"type": "text", "text": text}]})
        }
        ContentPart::ToolCall(call) => function_call(call, &call.arguments_placeholder()),
    }
}

fn function_call(call: &ToolCall, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments})
}

fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let created = interaction_object(response, "in_progress");
    let id = created["id"].clone();
    let mut events = vec![
        json!({"event_type": "interaction.created", "interaction": created}),
        json!({
            "event_type": "interaction.status_update", "interaction_id": id,
            "status": "in_progress",
        }),
    ];
    for (index, part) in response.content_parts.iter().enumerate() {
        let start = match part {
            ContentPart::Reasoning(_) => json!({"type": "thought"}),
            ContentPart::Text(_) => json!({"type": "model_output"}),
            ContentPart::ToolCall(call) => function_call(call, &json!({})),
        };
        events.push(json!({"event_type": "step.start", "index": index, "step": start}));
        let deltas = deltas(part).into_iter();
        events.extend(deltas.map(
            |step_delta| json!({"event_type": "step.delta", "index": index, "delta": step_delta}),
        ));
        events.push(json!({"event_type": "step.stop", "index": index}));
    }
    match &response.error {
        Some(message) => {
            let error = json!({"code": "internal_error", "message": message});
            events.push(json!({"event_type": "error", "error": error}));
        }
        None => {
            let mut last = interaction_object(response, status(response));
            last["usage"] = usage(response);
            events.push(json!({"event_type": "interaction.completed", "interaction": last}));
        }
    }
    let lines = events.iter().map(|event| {
        let name = event["event_type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    let done = "event: done\ndata: [DONE]\n\n".to_owned();
    lines.chain(response.error.is_none().then_some(done)).collect()
}

fn deltas(part: &ContentPart) -> Vec<Value> {
    match part {
        ContentPart::Reasoning(text) => {
            let chunks = text_chunks(text).into_iter();
            let summary = chunks.map(|chunk| {
                json!({"type": "thought_summary", "content": {"type": "text", "text": chunk}})
            });
            let signature = reasoning_signature(text);
            summary.chain([json!({"type": "thought_signature", "signature": signature})]).collect()
        }
        ContentPart::Text(text) => text_chunks(text)
            .into_iter()
            .map(|chunk| json!({"type": "text", "text": chunk}))
            .collect(),
        ContentPart::ToolCall(call) => {
            let chunks = text_chunks(&call.arguments).into_iter();
            chunks.map(|chunk| json!({"type": "arguments_delta", "arguments": chunk})).collect()
        }
    }
}

fn interaction_object(response: &ModelResponse, status: &str) -> Value {
    json!({
        "id": format!("v1_{:04}", response.number), "object": "interaction", "model": response.model,
        "status": status, "created": "2026-11-18T12:00:00Z", "updated": "2026-11-18T12:00:01Z",
    })
}

fn status(response: &ModelResponse) -> &'static str {
    match response.finish_reason {
        FinishReason::Stop => "completed",
        FinishReason::ToolCalls => "requires_action",
        FinishReason::Length => "incomplete",
        FinishReason::Refusal => "failed",
    }
}

/// Reasoning tokens are not part of the output tokens.
fn usage(response: &ModelResponse) -> Value {
    let Some(usage) = response.usage else { return Value::Null };
    json!({
        "total_input_tokens": usage.prompt, "total_cached_tokens": usage.cached,
        "total_output_tokens": usage.completion.saturating_sub(usage.reasoning),
        "total_thought_tokens": usage.reasoning, "total_tool_use_tokens": 0,
        "total_tokens": usage.prompt + usage.completion,
    })
}

fn error_body(status: u16, code: Option<&str>, bad_request: &BadRequest) -> Value {
    let own_code = match status {
        401 => "unauthenticated",
        403 => "permission_denied",
        404 => "not_found",
        429 => "too_many_requests",
        503 => "service_unavailable",
        500.. => "internal_error",
        _ => "invalid_request",
    };
    json!({"error": {"code": code.unwrap_or(own_code), "message": bad_request.message}})
}
