//! Ollama's `/api/chat`.

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, pieces};
use super::memory::Memory;
use super::wire::{Refusal, Wire, items};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "call_",
    streams: true,
    content_type: "application/x-ndjson",
    offered,
    check,
    whole,
    stream,
    unreadable: Some(unreadable),
    failure,
};

/// Nanoseconds that everything takes.
const TOOK: u64 = 1_000_000;

fn offered(body: &Value) -> Vec<String> {
    let functions =
        items(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    functions.map(str::to_owned).collect()
}

/// Stricter than Ollama, which takes any conversation: behind the calls of a message stand as many
/// results.
fn check(body: &Value, _: &Memory) -> Result<(), Refusal> {
    let mut open = 0_usize;
    for message in items(&body["messages"]) {
        if message["role"] == "tool" {
            let Some(left) = open.checked_sub(1) else {
                return Err(Refusal::new("a message of a tool answers no call"));
            };
            open = left;
        } else if open != 0 {
            break;
        } else {
            open = items(&message["tool_calls"]).len();
        }
    }
    match open {
        0 => Ok(()),
        _ => Err(Refusal::new(format!("{open} calls have no message of a tool behind them"))),
    }
}

fn unreadable(call: &Call) -> String {
    let raw = &call.arguments;
    format!("error parsing tool call: raw='{raw}', err=invalid character in literal")
}

fn whole(answer: &Answer) -> Value {
    let mut message = json!({"role": "assistant", "content": answer.text()});
    let thoughts = answer.thoughts();
    if !thoughts.is_empty() {
        message["thinking"] = json!(thoughts);
    }
    let calls: Vec<Value> = answer.calls().filter(|call| call.is_object()).map(tool_call).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    done(answer, &message)
}

fn stream(answer: &Answer) -> Vec<String> {
    let mut lines = Vec::new();
    let mut say = |message: Value| lines.push(line(answer, &message, false));
    for part in &answer.parts {
        match part {
            Part::Thought(text) => {
                for piece in pieces(text) {
                    say(json!({"role": "assistant", "content": "", "thinking": piece}));
                }
            }
            Part::Text(text) => {
                for piece in pieces(text) {
                    say(json!({"role": "assistant", "content": piece}));
                }
            }
            Part::Call(call) if call.is_object() => {
                let calls = [tool_call(call)];
                say(json!({"role": "assistant", "content": "", "tool_calls": calls}));
            }
            Part::Call(_) => {}
        }
    }
    lines.push(match &answer.error {
        Some(message) => json!({"error": message}),
        None => done(answer, &json!({"role": "assistant", "content": ""})),
    });
    lines.iter().map(|line| format!("{}\n", answer.written(line))).collect()
}

fn tool_call(call: &Call) -> Value {
    let function = json!({"index": call.index, "name": call.name, "arguments": call.slot()});
    json!({"id": call.id, "function": function})
}

fn line(answer: &Answer, message: &Value, is_done: bool) -> Value {
    json!({
        "model": answer.model, "created_at": "2026-11-18T12:00:00.000000Z", "message": message,
        "done": is_done,
    })
}

fn done(answer: &Answer, message: &Value) -> Value {
    let usage = answer.usage;
    let mut line = line(answer, message, true);
    let reason = match answer.finish {
        Finish::Stop | Finish::Calls | Finish::Refused => "stop",
        Finish::Length => "length",
    };
    let numbers = [
        ("total_duration", TOOK * 3),
        ("load_duration", TOOK),
        ("prompt_eval_count", usage.prompt),
        ("prompt_eval_cached_count", usage.cached),
        ("prompt_eval_duration", TOOK),
        ("eval_count", usage.completion),
        ("eval_duration", TOOK),
    ];
    line["done_reason"] = json!(reason);
    for (key, number) in numbers {
        line[key] = json!(number);
    }
    line
}

fn failure(_: u16, _: Option<&str>, refusal: &Refusal) -> Value {
    json!({"error": refusal.message})
}
