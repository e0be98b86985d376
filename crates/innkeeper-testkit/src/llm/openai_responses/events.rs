//! The event stream of a Responses response.

use serde_json::{Value, json};

use super::super::response::{ContentPart, ModelResponse, ToolCall, text_chunks};
use super::super::sse;
use super::{
    encrypted_content, function_call, item_id, item_status, new_response, output_item, output_text,
    response_object, summary_text,
};

#[derive(Default)]
struct EventSequence(Vec<Value>);

impl EventSequence {
    fn push(&mut self, kind: &str, mut event: Value) {
        let number = self.0.len();
        if let Some(fields) = event.as_object_mut() {
            fields.insert("type".to_owned(), json!(kind));
            fields.insert("sequence_number".to_owned(), json!(number));
        }
        self.0.push(event);
    }
}

pub(super) fn stream_chunks(response: &ModelResponse) -> Vec<String> {
    let mut events = EventSequence::default();
    let start = new_response(response, "in_progress");
    events.push("response.created", json!({"response": start}));
    events.push("response.in_progress", json!({"response": start}));
    let mut output = Vec::new();
    for (at, part) in response.content_parts.iter().enumerate() {
        let id = item_id(response, at, part);
        match part {
            ContentPart::Reasoning(text) => push_reasoning(&mut events, &id, at, text),
            ContentPart::Text(text) => push_message(&mut events, &id, at, text),
            ContentPart::ToolCall(call) => {
                push_function_call(&mut events, &id, at, call, item_status(response, at));
            }
        }
        let item = output_item(response, at, part);
        let done = json!({"output_index": at, "item": item});
        events.push("response.output_item.done", done);
        output.push(item);
    }
    let last = response_object(response, &output);
    let kind = format!("response.{}", last["status"].as_str().unwrap_or_default());
    events.push(&kind, json!({"response": last}));
    events.0.iter().map(|event| sse::typed_event(event, &event.to_string())).collect()
}

fn push_reasoning(events: &mut EventSequence, id: &str, at: usize, text: &str) {
    // The encrypted content is complete only in the final event.
    let encrypted = encrypted_content(id, text);
    let partial = encrypted.get(..encrypted.len() / 2).unwrap_or_default();
    let item = json!({"id": id, "type": "reasoning", "summary": [], "encrypted_content": partial});
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    let positioned = |more: Value| with_position(id, at, "summary_index", more);
    let part = |text| positioned(json!({"part": summary_text(text)}));
    events.push("response.reasoning_summary_part.added", part(""));
    for chunk in text_chunks(text) {
        events.push("response.reasoning_summary_text.delta", positioned(json!({"delta": chunk})));
    }
    events.push("response.reasoning_summary_text.done", positioned(json!({"text": text})));
    events.push("response.reasoning_summary_part.done", part(text));
}

fn push_message(events: &mut EventSequence, id: &str, at: usize, text: &str) {
    let item = json!({
        "id": id, "type": "message", "status": "in_progress", "role": "assistant", "content": [],
    });
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    let positioned = |more: Value| with_position(id, at, "content_index", more);
    events.push("response.content_part.added", positioned(json!({"part": output_text("")})));
    for chunk in text_chunks(text) {
        let delta = json!({"delta": chunk, "logprobs": [], "obfuscation": "x7Gk2"});
        events.push("response.output_text.delta", positioned(delta));
    }
    events.push("response.output_text.done", positioned(json!({"text": text, "logprobs": []})));
    events.push("response.content_part.done", positioned(json!({"part": output_text(text)})));
}

fn push_function_call(
    events: &mut EventSequence,
    id: &str,
    at: usize,
    call: &ToolCall,
    status: &str,
) {
    let item = function_call(id, call, "", "in_progress");
    events.push("response.output_item.added", json!({"output_index": at, "item": item}));
    for chunk in text_chunks(&call.arguments) {
        let delta =
            json!({"item_id": id, "output_index": at, "delta": chunk, "obfuscation": "x7Gk2"});
        events.push("response.function_call_arguments.delta", delta);
    }
    // The arguments of a truncated call have no `done` event.
    if status == "completed" {
        let done = json!({"item_id": id, "output_index": at, "arguments": call.arguments});
        events.push("response.function_call_arguments.done", done);
    }
}

/// Adds the position of an item with one part.
fn with_position(id: &str, at: usize, part_index: &str, mut more: Value) -> Value {
    more["item_id"] = json!(id);
    more["output_index"] = json!(at);
    more[part_index] = json!(0);
    more
}
