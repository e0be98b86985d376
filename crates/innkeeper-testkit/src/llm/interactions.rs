//! Gemini's Interactions.

mod check;

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, pieces, thought_signature};
use super::wire::{Refusal, Wire, items};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "call_",
    streams: false,
    content_type: "text/event-stream",
    offered,
    check: check::check,
    whole,
    stream,
    unreadable: None,
    failure,
};

fn offered(body: &Value) -> Vec<String> {
    let functions = items(&body["tools"]).iter().filter(|tool| tool["type"] == "function");
    functions.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn whole(answer: &Answer) -> Value {
    let steps: Vec<Value> = answer.parts.iter().map(step).collect();
    let mut interaction = begun(answer, status(answer));
    interaction["steps"] = json!(steps);
    interaction["usage"] = usage(answer);
    interaction
}

fn step(part: &Part) -> Value {
    match part {
        Part::Thought(text) => json!({
            "type": "thought", "summary": [{"type": "text", "text": text}],
            "signature": thought_signature(text),
        }),
        Part::Text(text) => {
            json!({"type": "model_output", "content": [{"type": "text", "text": text}]})
        }
        Part::Call(call) => function_call(call, &call.slot()),
    }
}

fn function_call(call: &Call, arguments: &Value) -> Value {
    json!({"type": "function_call", "id": call.id, "name": call.name, "arguments": arguments})
}

fn stream(answer: &Answer) -> Vec<String> {
    let created = begun(answer, "in_progress");
    let id = created["id"].clone();
    let mut events = vec![
        json!({"event_type": "interaction.created", "interaction": created}),
        json!({
            "event_type": "interaction.status_update", "interaction_id": id,
            "status": "in_progress",
        }),
    ];
    for (index, part) in answer.parts.iter().enumerate() {
        let start = match part {
            Part::Thought(_) => json!({"type": "thought"}),
            Part::Text(_) => json!({"type": "model_output"}),
            Part::Call(call) => function_call(call, &json!({})),
        };
        events.push(json!({"event_type": "step.start", "index": index, "step": start}));
        let deltas = deltas(part).into_iter();
        events.extend(
            deltas.map(|it| json!({"event_type": "step.delta", "index": index, "delta": it})),
        );
        events.push(json!({"event_type": "step.stop", "index": index}));
    }
    match &answer.error {
        Some(message) => {
            let error = json!({"code": "internal_error", "message": message});
            events.push(json!({"event_type": "error", "error": error}));
        }
        None => {
            let mut last = begun(answer, status(answer));
            last["usage"] = usage(answer);
            events.push(json!({"event_type": "interaction.completed", "interaction": last}));
        }
    }
    let written = events.iter().map(|event| {
        let name = event["event_type"].as_str().unwrap_or_default();
        format!("event: {name}\ndata: {event}\n\n")
    });
    let done = "event: done\ndata: [DONE]\n\n".to_owned();
    written.chain(answer.error.is_none().then_some(done)).collect()
}

fn deltas(part: &Part) -> Vec<Value> {
    match part {
        Part::Thought(text) => {
            let pieces = pieces(text).into_iter();
            let summary = pieces.map(|piece| {
                json!({"type": "thought_summary", "content": {"type": "text", "text": piece}})
            });
            let signature = thought_signature(text);
            summary.chain([json!({"type": "thought_signature", "signature": signature})]).collect()
        }
        Part::Text(text) => {
            pieces(text).into_iter().map(|piece| json!({"type": "text", "text": piece})).collect()
        }
        Part::Call(call) => {
            let pieces = pieces(&call.arguments).into_iter();
            pieces.map(|piece| json!({"type": "arguments_delta", "arguments": piece})).collect()
        }
    }
}

fn begun(answer: &Answer, status: &str) -> Value {
    json!({
        "id": format!("v1_{:04}", answer.number), "object": "interaction", "model": answer.model,
        "status": status, "created": "2026-11-18T12:00:00Z", "updated": "2026-11-18T12:00:01Z",
    })
}

fn status(answer: &Answer) -> &'static str {
    match answer.finish {
        Finish::Stop => "completed",
        Finish::Calls => "requires_action",
        Finish::Length => "incomplete",
        Finish::Refused => "failed",
    }
}

/// Thoughts are not among the output tokens.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "total_input_tokens": usage.prompt, "total_cached_tokens": usage.cached,
        "total_output_tokens": usage.completion.saturating_sub(usage.reasoning),
        "total_thought_tokens": usage.reasoning, "total_tool_use_tokens": 0,
        "total_tokens": usage.prompt + usage.completion,
    })
}

fn failure(status: u16, code: Option<&str>, refusal: &Refusal) -> Value {
    let own = match status {
        401 => "unauthenticated",
        403 => "permission_denied",
        404 => "not_found",
        429 => "too_many_requests",
        503 => "service_unavailable",
        500.. => "internal_error",
        _ => "invalid_request",
    };
    json!({"error": {"code": code.unwrap_or(own), "message": refusal.message}})
}
