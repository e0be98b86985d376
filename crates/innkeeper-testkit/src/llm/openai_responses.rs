//! OpenAI's Responses.

mod check;
mod events;

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, WHEN, signature};
use super::openai_chat;
use super::wire::{Wire, items};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "call_",
    streams: false,
    content_type: "text/event-stream; charset=utf-8",
    offered,
    check: check::check,
    whole,
    stream: events::stream,
    unreadable: None,
    failure: openai_chat::failure,
};

fn offered(body: &Value) -> Vec<String> {
    let functions = items(&body["tools"]).iter().filter(|tool| tool["type"] == "function");
    functions.filter_map(|tool| tool["name"].as_str()).map(str::to_owned).collect()
}

fn whole(answer: &Answer) -> Value {
    let output: Vec<Value> =
        answer.parts.iter().enumerate().map(|(at, part)| item(answer, at, part)).collect();
    response(answer, &output)
}

/// The whole answer as it is at its end.
fn response(answer: &Answer, output: &[Value]) -> Value {
    let (status, incomplete) = match (answer.finish, &answer.error) {
        (_, Some(_)) => ("failed", Value::Null),
        (Finish::Stop | Finish::Calls, None) => ("completed", Value::Null),
        (Finish::Length, None) => ("incomplete", json!({"reason": "max_output_tokens"})),
        (Finish::Refused, None) => ("incomplete", json!({"reason": "content_filter"})),
    };
    let mut response = begun(answer, status);
    response["error"] = match &answer.error {
        Some(message) => json!({"code": "server_error", "message": message}),
        None => Value::Null,
    };
    response["incomplete_details"] = incomplete;
    response["output"] = json!(output);
    response["usage"] = usage(answer);
    response
}

/// The answer before it says anything.
fn begun(answer: &Answer, status: &str) -> Value {
    json!({
        "id": format!("resp_{:04}", answer.number), "object": "response", "created_at": WHEN,
        "status": status, "background": false, "error": null, "incomplete_details": null,
        "instructions": null, "max_output_tokens": null, "model": answer.model, "output": [],
        "parallel_tool_calls": true, "previous_response_id": null,
        "reasoning": {"effort": "medium", "summary": null}, "service_tier": "default",
        "store": false, "temperature": 1.0, "text": {"format": {"type": "text"}},
        "tool_choice": "auto", "tools": [], "top_p": 1.0, "truncation": "disabled",
        "usage": null, "metadata": {},
    })
}

/// A part as it is in the whole answer.
fn item(answer: &Answer, at: usize, part: &Part) -> Value {
    let id = item_id(answer, at, part);
    match part {
        Part::Thought(text) => json!({
            "id": id, "type": "reasoning", "summary": [summary(text)],
            "encrypted_content": encrypted(&id, text),
        }),
        Part::Text(text) => json!({
            "id": id, "type": "message", "status": status(answer, at), "role": "assistant",
            "content": [output_text(text)],
        }),
        Part::Call(call) => function_call(&id, call, &call.arguments, status(answer, at)),
    }
}

fn item_id(answer: &Answer, at: usize, part: &Part) -> String {
    let prefix = match part {
        Part::Thought(_) => "rs",
        Part::Text(_) => "msg",
        Part::Call(_) => "fc",
    };
    format!("{prefix}_{:04}{at:02}", answer.number)
}

/// What is cut is the last part.
fn status(answer: &Answer, at: usize) -> &'static str {
    match answer.finish == Finish::Length && at + 1 == answer.parts.len() {
        true => "incomplete",
        false => "completed",
    }
}

fn function_call(id: &str, call: &Call, arguments: &str, status: &str) -> Value {
    json!({
        "id": id, "type": "function_call", "status": status, "arguments": arguments,
        "call_id": call.id, "name": call.name,
    })
}

fn output_text(text: &str) -> Value {
    json!({"type": "output_text", "annotations": [], "logprobs": [], "text": text})
}

fn summary(text: &str) -> Value {
    json!({"type": "summary_text", "text": text})
}

/// A thought as it is to come back.
fn encrypted(id: &str, text: &str) -> String {
    format!("gAAAAA{}", signature(&format!("{id} {text}")))
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "input_tokens": usage.prompt,
        "input_tokens_details": {"cached_tokens": usage.cached, "cache_write_tokens": 0},
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    })
}
