//! OpenAI's Chat Completions. Thoughts are in `reasoning_content`, as other servers have them.

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, WHEN, pieces};
use super::memory::Memory;
use super::sse;
use super::wire::{Refusal, Wire, each, items};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "call_",
    streams: false,
    content_type: "text/event-stream; charset=utf-8",
    offered,
    check,
    whole,
    stream,
    unreadable: None,
    failure,
};

fn offered(body: &Value) -> Vec<String> {
    let functions =
        items(&body["tools"]).iter().filter_map(|tool| tool["function"]["name"].as_str());
    functions.map(str::to_owned).collect()
}

/// Behind the calls of an answer stand their results, one for each.
fn check(body: &Value, _: &Memory) -> Result<(), Refusal> {
    let mut open: Vec<&str> = Vec::new();
    for (at, message) in items(&body["messages"]).iter().enumerate() {
        if message["role"] == "tool" {
            let id = message["tool_call_id"].as_str();
            let Some(place) = open.iter().position(|one| Some(*one) == id) else {
                let text = "Invalid parameter: messages with role 'tool' must be a response to a \
                            preceding message with 'tool_calls'.";
                return Err(Refusal::new(text).at(format!("messages.[{at}].role")));
            };
            open.remove(place);
            continue;
        }
        answered(&open, at)?;
        open = each(&message["tool_calls"], "id").collect();
    }
    answered(&open, items(&body["messages"]).len())
}

fn answered(open: &[&str], at: usize) -> Result<(), Refusal> {
    if open.is_empty() {
        return Ok(());
    }
    let text = format!(
        "An assistant message with 'tool_calls' must be followed by tool messages responding to \
         each 'tool_call_id'. The following tool_call_ids did not have response messages: {}",
        open.join(", ")
    );
    Err(Refusal::new(text).at(format!("messages.[{at}].role")))
}

fn whole(answer: &Answer) -> Value {
    let text = answer.text();
    let content = if text.is_empty() { Value::Null } else { json!(text) };
    let mut message =
        json!({"role": "assistant", "content": content, "refusal": null, "annotations": []});
    let thoughts = answer.thoughts();
    if !thoughts.is_empty() {
        message["reasoning_content"] = json!(thoughts);
    }
    let calls: Vec<Value> = answer.calls().map(|call| function(call, &call.arguments)).collect();
    if !calls.is_empty() {
        message["tool_calls"] = json!(calls);
    }
    let finish = finish(answer);
    json!({
        "id": id(answer), "object": "chat.completion", "created": WHEN, "model": answer.model,
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": finish}],
        "usage": usage(answer), "service_tier": "default", "system_fingerprint": null,
    })
}

fn stream(answer: &Answer) -> Vec<String> {
    let mut deltas = vec![json!({"role": "assistant", "content": "", "refusal": null})];
    for part in &answer.parts {
        match part {
            Part::Thought(text) => {
                deltas.extend(pieces(text).iter().map(|it| json!({"reasoning_content": it})));
            }
            Part::Text(text) => {
                deltas.extend(pieces(text).iter().map(|it| json!({"content": it})));
            }
            Part::Call(call) => {
                let mut first = function(call, "");
                first["index"] = json!(call.index);
                deltas.push(json!({"tool_calls": [first]}));
                deltas.extend(pieces(&call.arguments).iter().map(|it| {
                    json!({"tool_calls": [{"index": call.index, "function": {"arguments": it}}]})
                }));
            }
        }
    }
    let mut chunks: Vec<Value> =
        deltas.iter().map(|delta| chunk(answer, delta, &Value::Null)).collect();
    if let Some(message) = &answer.error {
        chunks.push(failure(500, None, &Refusal::new(message)));
        return chunks.iter().map(|it| sse::data(&it.to_string())).collect();
    }
    chunks.push(chunk(answer, &json!({}), &json!(finish(answer))));
    if answer.tells_usage {
        let mut last = chunk(answer, &Value::Null, &Value::Null);
        last["choices"] = json!([]);
        last["usage"] = usage(answer);
        chunks.push(last);
    }
    let events = chunks.iter().map(|it| sse::data(&it.to_string()));
    events.chain([sse::data("[DONE]")]).collect()
}

fn chunk(answer: &Answer, delta: &Value, finish: &Value) -> Value {
    let mut chunk = json!({
        "id": id(answer), "object": "chat.completion.chunk", "created": WHEN,
        "model": answer.model, "service_tier": "default", "system_fingerprint": null,
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish}],
        "obfuscation": "x7Gk2",
    });
    if answer.tells_usage {
        chunk["usage"] = Value::Null;
    }
    chunk
}

fn function(call: &Call, arguments: &str) -> Value {
    let function = json!({"name": call.name, "arguments": arguments});
    json!({"id": call.id, "type": "function", "function": function})
}

fn id(answer: &Answer) -> String {
    format!("chatcmpl-{:04}", answer.number)
}

fn finish(answer: &Answer) -> &'static str {
    match answer.finish {
        Finish::Stop => "stop",
        Finish::Calls => "tool_calls",
        Finish::Length => "length",
        Finish::Refused => "content_filter",
    }
}

fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "prompt_tokens": usage.prompt, "completion_tokens": usage.completion,
        "total_tokens": usage.prompt + usage.completion,
        "prompt_tokens_details": {"cached_tokens": usage.cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning, "audio_tokens": 0},
    })
}

/// The form of both of OpenAI's interfaces.
pub(super) fn failure(status: u16, code: Option<&str>, refusal: &Refusal) -> Value {
    let (kind, own) = match status {
        401 => ("invalid_request_error", Some("invalid_api_key")),
        403 => ("permission_error", None),
        404 => ("invalid_request_error", Some("model_not_found")),
        429 => ("requests", Some("rate_limit_exceeded")),
        500.. => ("server_error", None),
        _ => ("invalid_request_error", None),
    };
    let (message, param) = (&refusal.message, &refusal.param);
    let code = code.or(own);
    json!({"error": {"message": message, "type": kind, "param": param, "code": code}})
}
