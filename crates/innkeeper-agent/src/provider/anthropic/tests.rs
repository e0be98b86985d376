//! What is sent to Anthropic's Messages and how its answers are read.

mod answers;
mod bodies;
mod cut;
mod faults;
mod histories;

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use crate::conversation::{Answer, Message, Native, Part, Said, ToolCall, ToolResult};
use crate::provider::codec::{Asking, Outgoing};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Request, Wire};

const CLAUDE: &str = "claude-opus-4-8";

fn tools(names: &[&str]) -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    Arc::new(names.iter().map(|name| Tool::new(*name, "about it", schema.clone())).collect())
}

fn send(request: &Request, model: &str, can: &Capabilities, streaming: bool) -> Outgoing {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::Anthropic, can.strict_tools);
    super::encode(Asking { request, offer: &offer, model, can, streaming }).unwrap()
}

/// The body as text: what stands in it word for word can be looked for.
fn text(request: &Request, model: &str) -> String {
    let can = Capabilities::of(Wire::Anthropic, model);
    String::from_utf8(send(request, model, &can, false).body).unwrap()
}

fn body(request: &Request, model: &str) -> Value {
    serde_json::from_str(&text(request, model)).unwrap()
}

fn asking(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

fn call(id: &str, name: &str, arguments: &str) -> Said {
    let (id, name) = (id.to_owned(), name.to_owned());
    Said::Call(ToolCall { id, name, arguments: arguments.to_owned() })
}

fn result(id: &str, name: &str, text: &str) -> ToolResult {
    let (id, name) = (id.to_owned(), name.to_owned());
    ToolResult { id, name, text: text.to_owned(), is_error: false }
}

fn native(said: Said, wire: Wire, model: &str, block: &str) -> Part {
    let block = serde_json::value::RawValue::from_string(block.to_owned()).unwrap();
    Part { said, native: Some(Native { wire, model: model.to_owned(), block }) }
}

fn answer(parts: Vec<Part>) -> Message {
    Message::Answer(Answer { parts }.into())
}

/// Events as they are sent.
fn events(all: &[&str]) -> String {
    let mut text = String::new();
    for data in all {
        let event: Value = serde_json::from_str(data).unwrap();
        let name = event["type"].as_str().unwrap();
        text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }
    text
}
