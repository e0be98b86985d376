//! Gemini's generateContent.

mod check;

use serde_json::{Value, json};

use super::answer::{Answer, Call, Finish, Part, call_signature, pieces, signature};
use super::wire::{Refusal, Wire, each, items};

pub(super) const WIRE: Wire = Wire {
    id_prefix: "fc",
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
    let declared = items(&body["tools"]).iter().map(|tool| &tool["functionDeclarations"]);
    declared.flat_map(|list| each(list, "name")).map(str::to_owned).collect()
}

fn whole(answer: &Answer) -> Value {
    let parts: Vec<Value> = said(answer, |text| vec![text.to_owned()]);
    chunk(answer, &parts, true)
}

fn stream(answer: &Answer) -> Vec<String> {
    let parts = said(answer, pieces);
    let mut chunks: Vec<Value> =
        parts.iter().map(|part| chunk(answer, std::slice::from_ref(part), false)).collect();
    chunks.push(match &answer.error {
        Some(message) => failure(503, None, &Refusal::new(message)),
        None => chunk(answer, &[json!({"text": ""})], true),
    });
    chunks.iter().map(|chunk| format!("data: {}\r\n\r\n", answer.written(chunk))).collect()
}

/// The parts, with texts in pieces. Of several calls the first is signed; without any, the last piece
/// of the text where there was a thought.
fn said(answer: &Answer, cut: impl Fn(&str) -> Vec<String>) -> Vec<Value> {
    let mut parts = Vec::new();
    for part in &answer.parts {
        match part {
            Part::Thought(text) => {
                parts.extend(cut(text).iter().map(|it| json!({"text": it, "thought": true})));
            }
            Part::Text(text) => parts.extend(cut(text).iter().map(|it| json!({"text": it}))),
            Part::Call(call) if call.is_object() => parts.push(function_call(call)),
            Part::Call(_) => {}
        }
    }
    let thoughts = answer.thoughts();
    if answer.calls().next().is_none()
        && !thoughts.is_empty()
        && let Some(last) = parts.iter_mut().rfind(|part| part.get("thought").is_none())
    {
        last["thoughtSignature"] = json!(text_signature(&thoughts));
    }
    parts
}

fn function_call(call: &Call) -> Value {
    let said = json!({"id": call.id, "name": call.name, "args": call.slot()});
    match call.index {
        0 => json!({"functionCall": said, "thoughtSignature": call.signature()}),
        _ => json!({"functionCall": said}),
    }
}

/// What vouches for a text: that of the thoughts before it, which do not come back.
fn text_signature(thoughts: &str) -> String {
    let inner = signature(&format!("text {thoughts}"));
    format!("{TEXT}{}", inner.get(TEXT.len()..).unwrap_or_default())
}

/// Begins the signature of every text.
const TEXT: &str = "7e47";

fn is_signed(part: &Value, said: &str) -> bool {
    match &part["functionCall"] {
        Value::Null => said.starts_with(TEXT),
        call => {
            let name = call["name"].as_str().unwrap_or_default();
            said == call_signature(name, &call["args"])
        }
    }
}

fn chunk(answer: &Answer, parts: &[Value], is_last: bool) -> Value {
    let malformed = answer.malformed().filter(|_| answer.finish != Finish::Length);
    let mut candidate = json!({"content": {"parts": parts, "role": "model"}, "index": 0});
    if is_last {
        candidate["finishReason"] = json!(match (answer.finish, malformed) {
            (Finish::Refused, _) => "SAFETY",
            (Finish::Length, _) => "MAX_TOKENS",
            (Finish::Stop | Finish::Calls, Some(_)) => "MALFORMED_FUNCTION_CALL",
            (Finish::Stop | Finish::Calls, None) => "STOP",
        });
        if let Some(call) = malformed {
            let said = format!("Malformed function call: {}({})", call.name, call.arguments);
            candidate["finishMessage"] = json!(said);
        }
    }
    json!({
        "candidates": [candidate], "usageMetadata": usage(answer),
        "modelVersion": answer.model, "responseId": format!("resp-{:04}", answer.number),
    })
}

/// Thoughts are not among the candidates' tokens.
fn usage(answer: &Answer) -> Value {
    let usage = answer.usage;
    json!({
        "promptTokenCount": usage.prompt,
        "candidatesTokenCount": usage.completion.saturating_sub(usage.reasoning),
        "totalTokenCount": usage.prompt + usage.completion,
        "cachedContentTokenCount": usage.cached,
        "thoughtsTokenCount": usage.reasoning,
    })
}

fn failure(status: u16, code: Option<&str>, refusal: &Refusal) -> Value {
    let own = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    };
    let (message, word) = (&refusal.message, code.unwrap_or(own));
    json!({"error": {"code": status, "message": message, "status": word}})
}
