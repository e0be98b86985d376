//! Anthropic's Messages.

mod check;

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, pieces, thought_signature};
use super::sse;
use super::wire::{Refusal, Wire, each};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "toolu_",
    streams: false,
    content_type: "text/event-stream; charset=utf-8",
    offered: |body| each(&body["tools"], "name").map(str::to_owned).collect(),
    check: check::check,
    whole,
    stream,
    unreadable: None,
    failure,
};

fn whole(answer: &Answer) -> Value {
    let blocks: Vec<Value> = answer.parts.iter().map(block).collect();
    let mut message = begun(answer);
    message["content"] = json!(blocks);
    for (key, value) in stopped(answer) {
        message[key] = value;
    }
    message["usage"] = usage(answer, answer.usage.completion);
    message
}

fn block(part: &Part) -> Value {
    match part {
        Part::Thought(text) => json!({
            "type": "thinking", "thinking": text, "signature": thought_signature(text),
        }),
        Part::Text(text) => json!({"type": "text", "text": text}),
        Part::Call(call) => tool_use(call, &call.slot()),
    }
}

fn tool_use(call: &Call, input: &Value) -> Value {
    json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
}

fn stream(answer: &Answer) -> Vec<String> {
    let mut message = begun(answer);
    message["usage"] = usage(answer, 1);
    let mut events = vec![json!({"type": "message_start", "message": message})];
    for (index, part) in answer.parts.iter().enumerate() {
        let start = match part {
            Part::Thought(_) => json!({"type": "thinking", "thinking": "", "signature": ""}),
            Part::Text(_) => json!({"type": "text", "text": ""}),
            Part::Call(call) => tool_use(call, &json!({})),
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
        if !ends_inside(answer, index) {
            events.push(json!({"type": "content_block_stop", "index": index}));
        }
    }
    match &answer.error {
        Some(message) => {
            let error = json!({"type": "overloaded_error", "message": message});
            events.push(json!({"type": "error", "error": error}));
        }
        None => {
            let delta: serde_json::Map<String, Value> =
                stopped(answer).into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
            let usage = usage(answer, answer.usage.completion);
            events.push(json!({"type": "message_delta", "delta": delta, "usage": usage}));
            events.push(json!({"type": "message_stop"}));
        }
    }
    events.iter().map(|event| sse::typed(event, &event.to_string())).collect()
}

/// A call in which the answer is cut, or fails, never stops.
fn ends_inside(answer: &Answer, index: usize) -> bool {
    let is_last = index + 1 == answer.parts.len();
    let open = matches!(&answer.parts[index], Part::Call(call) if !call.is_object());
    is_last && open && (answer.finish == Finish::Length || answer.error.is_some())
}

fn deltas(part: &Part) -> Vec<Value> {
    match part {
        Part::Thought(text) => {
            let pieces = pieces(text).into_iter();
            let thinking = pieces.map(|piece| json!({"type": "thinking_delta", "thinking": piece}));
            let signature = thought_signature(text);
            thinking.chain([json!({"type": "signature_delta", "signature": signature})]).collect()
        }
        Part::Text(text) => {
            let pieces = pieces(text).into_iter();
            pieces.map(|piece| json!({"type": "text_delta", "text": piece})).collect()
        }
        // The first piece of a call is always empty.
        Part::Call(call) => {
            let pieces = [String::new()].into_iter().chain(pieces(&call.arguments));
            pieces.map(|piece| json!({"type": "input_json_delta", "partial_json": piece})).collect()
        }
    }
}

fn begun(answer: &Answer) -> Value {
    json!({
        "id": format!("msg_{:04}", answer.number), "type": "message", "role": "assistant",
        "model": answer.model, "content": [], "stop_reason": null, "stop_sequence": null,
        "usage": null,
    })
}

fn stopped(answer: &Answer) -> Vec<(&'static str, Value)> {
    let reason = match answer.finish {
        Finish::Stop => "end_turn",
        Finish::Calls => "tool_use",
        Finish::Length => "max_tokens",
        Finish::Refused => "refusal",
    };
    let details = match answer.finish {
        Finish::Refused => json!({"type": "refusal", "category": "cyber", "explanation": null}),
        Finish::Stop | Finish::Calls | Finish::Length => Value::Null,
    };
    let reason = ("stop_reason", json!(reason));
    vec![reason, ("stop_sequence", Value::Null), ("stop_details", details)]
}

/// What came from a cache is not among the input tokens.
fn usage(answer: &Answer, written: u64) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.prompt.saturating_sub(usage.cached),
        "cache_creation_input_tokens": 0, "cache_read_input_tokens": usage.cached,
        "output_tokens": written,
        "output_tokens_details": {"thinking_tokens": usage.reasoning.min(written)},
    })
}

fn failure(status: u16, code: Option<&str>, refusal: &Refusal) -> Value {
    let own = match status {
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
    let error = json!({"type": code.unwrap_or(own), "message": refusal.message});
    json!({"type": "error", "error": error, "request_id": "req_scripted"})
}
