//! An answer of Responses event by event.

use serde_json::{Value, json};

use super::super::answer::{Answer, Call, Part, pieces};
use super::super::sse;
use super::{
    begun, encrypted, function_call, item, item_id, output_text, response, status, summary,
};

/// Numbers the events as they come.
#[derive(Default)]
struct Events(Vec<Value>);

impl Events {
    fn push(&mut self, kind: &str, mut event: Value) {
        let number = self.0.len();
        if let Some(fields) = event.as_object_mut() {
            fields.insert("type".to_owned(), json!(kind));
            fields.insert("sequence_number".to_owned(), json!(number));
        }
        self.0.push(event);
    }
}

pub(super) fn stream(answer: &Answer) -> Vec<String> {
    let mut events = Events::default();
    let start = begun(answer, "in_progress");
    events.push("response.created", json!({"response": start}));
    events.push("response.in_progress", json!({"response": start}));
    let mut output = Vec::new();
    for (at, part) in answer.parts.iter().enumerate() {
        let id = item_id(answer, at, part);
        match part {
            Part::Thought(text) => thought(&mut events, &id, at, text),
            Part::Text(text) => message(&mut events, &id, at, text),
            Part::Call(call) => function(&mut events, &id, at, call, status(answer, at)),
        }
        let item = item(answer, at, part);
        let done = json!({"output_index": at, "item": item});
        events.push("response.output_item.done", done);
        output.push(item);
    }
    let last = response(answer, &output);
    let kind = format!("response.{}", last["status"].as_str().unwrap_or_default());
    events.push(&kind, json!({"response": last}));
    events.0.iter().map(|event| sse::typed(event, &event.to_string())).collect()
}

fn thought(events: &mut Events, id: &str, at: usize, text: &str) {
    // What is encrypted is whole only in the event at the end.
    let whole = encrypted(id, text);
    let begun = whole.get(..whole.len() / 2).unwrap_or_default();
    let item = json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": begun});
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    let place = |more: Value| placed(id, at, ("summary_index", 0), more);
    let part = |text| place(json!({"part": summary(text)}));
    events.push("response.reasoning_summary_part.added", part(""));
    for piece in pieces(text) {
        events.push("response.reasoning_summary_text.delta", place(json!({"delta": piece})));
    }
    events.push("response.reasoning_summary_text.done", place(json!({"text": text})));
    events.push("response.reasoning_summary_part.done", part(text));
}

fn message(events: &mut Events, id: &str, at: usize, text: &str) {
    let item = json!({
        "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [],
    });
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    let place = |more: Value| placed(id, at, ("content_index", 0), more);
    events.push("response.content_part.added", place(json!({"part": output_text("")})));
    for piece in pieces(text) {
        let delta = json!({"delta": piece, "logprobs": [], "obfuscation": "x7Gk2"});
        events.push("response.output_text.delta", place(delta));
    }
    events.push("response.output_text.done", place(json!({"text": text, "logprobs": []})));
    events.push("response.content_part.done", place(json!({"part": output_text(text)})));
}

fn function(events: &mut Events, id: &str, at: usize, call: &Call, status: &str) {
    let item = function_call(id, call, "", "in_progress");
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    for piece in pieces(&call.arguments) {
        let delta =
            json!({"item_id": id, "output_index": at, "delta": piece, "obfuscation": "x7Gk2"});
        events.push("response.function_call_arguments.delta", delta);
    }
    // Where the answer is cut inside a call, its arguments are never done.
    if status == "completed" {
        let done = json!({"item_id": id, "output_index": at, "arguments": call.arguments});
        events.push("response.function_call_arguments.done", done);
    }
}

fn placed(id: &str, at: usize, (index, of): (&str, usize), mut more: Value) -> Value {
    more["item_id"] = json!(id);
    more["output_index"] = json!(at);
    more[index] = json!(of);
    more
}
