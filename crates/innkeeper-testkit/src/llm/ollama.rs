//! The Ollama `/api/chat` API.

use serde_json::{Value, json};

use super::api_spec::{ApiSpec, BadRequest, StreamSpec, array_items};
use super::issued_calls::IssuedCalls;
use super::response::{ContentPart, FinishReason, ModelResponse, ToolCall, text_chunks};

pub(super) const API: ApiSpec = ApiSpec {
    id_prefix: "call_",
    stream: StreamSpec {
        is_default: true,
        content_type: "application/x-ndjson",
        chunks: stream_chunks,
    },
    tool_names,
    validate,
    response_body,
    parse_failure: Some(parse_failure),
    error_body,
};

/// Every duration in nanoseconds.
const DURATION_NANOS: u64 = 1_000_000;

fn tool_names(body: &Value) -> Vec<String> {
    let functions =
        array_items(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    functions.map(str::to_owned).collect()
}

/// Checks that each call of a message has a result. Ollama itself accepts any conversation.
fn validate(body: &Value, _: &IssuedCalls) -> Result<(), BadRequest> {
    let mut open = 0_usize;
    for message in array_items(&body["messages"]) {
        if message["role"] == "tool" {
            let Some(remaining_calls) = open.checked_sub(1) else {
                return Err(BadRequest::new("a tool message belongs to no call"));
            };
            open = remaining_calls;
        } else if open != 0 {
            break;
        } else {
            open = array_items(&message["tool_calls"]).len();
        }
    }
    match open {
        0 => Ok(()),
        _ => Err(BadRequest::new(format!("{open} calls have no tool message"))),
    }
}

fn parse_failure(call: &ToolCall) -> String {
    let raw = &call.arguments;
    format!("error parsing tool call: raw='{raw}', err=invalid character in literal")
}

fn response_body(response: &ModelResponse) -> Value {
    let mut message = json!({"role": "assistant", "content": response.text()});
    let reasoning = response.reasoning();
    if !reasoning.is_empty() {
        message["thinking"] = json!(reasoning);
    }
    let calls: Vec<Value> =
        response.tool_calls().filter(|call| call.is_object()).map(tool_call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    final_line(response, &message)
}

fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |message: Value| lines.push(response_line(response, &message, false));
    for part in &response.content_parts {
        match part {
            ContentPart::Reasoning(text) => {
                for chunk in text_chunks(text) {
                    say(json!({"role": "assistant", "content": "", "thinking": chunk}));
                }
            }
            ContentPart::Text(text) => {
                for chunk in text_chunks(text) {
                    say(json!({"role": "assistant", "content": chunk}));
                }
            }
            ContentPart::ToolCall(call) if call.is_object() => {
                let calls = [tool_call(call)];
                say(json!({"role": "assistant", "content": "", "tool_calls": calls}));
            }
            ContentPart::ToolCall(_) => {}
        }
    }
    lines.push(match &response.error {
        Some(message) => json!({"error": message}),
        None => final_line(response, &json!({"role": "assistant", "content": ""})),
    });
    lines.iter().map(|line| format!("{}\n", response.to_json_text(line))).collect()
}

fn tool_call(call: &ToolCall) -> Value {
    let function =
        json!({"index": call.index, "name": call.name, "arguments": call.arguments_placeholder()});
    json!({"id": call.id, "function": function})
}

fn response_line(response: &ModelResponse, message: &Value, is_done: bool) -> Value {
    json!({
        "model": response.model, "created_at": "2026-11-18T12:00:00.000000Z", "message": message,
        "done": is_done,
    })
}

fn final_line(response: &ModelResponse, message: &Value) -> Value {
    let mut line = response_line(response, message, true);
    let reason = match response.finish_reason {
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Refusal => "stop",
        FinishReason::Length => "length",
    };
    let counts = response.usage.map(|usage| {
        [
            ("prompt_eval_count", usage.prompt),
            ("prompt_eval_cached_count", usage.cached),
            ("eval_count", usage.completion),
        ]
    });
    let durations = [
        ("total_duration", DURATION_NANOS * 3),
        ("load_duration", DURATION_NANOS),
        ("prompt_eval_duration", DURATION_NANOS),
        ("eval_duration", DURATION_NANOS),
    ];
    line["done_reason"] = json!(reason);
    for (key, number) in counts.into_iter().flatten().chain(durations) {
        line[key] = json!(number);
    }
    line
}

fn error_body(_: u16, _: Option<&str>, bad_request: &BadRequest) -> Value {
    json!({"error": bad_request.message})
}
