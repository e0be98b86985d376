//! Tests of the codec of Anthropic's Messages API.

mod errors;
mod histories;
mod requests;
mod responses;
mod truncation;

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use crate::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ProviderBlock, ToolCall, ToolResult,
};
use crate::provider::codec::request_encoding::encode_body;
use crate::provider::{Capabilities, ProviderApi, Request};

const CLAUDE: &str = "claude-opus-4-8";

fn tools(names: &[&str]) -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    Arc::new(names.iter().map(|name| Tool::new(*name, "about it", schema.clone())).collect())
}

/// Returns the request body as text, for tests of verbatim content.
fn text(request: &Request, model: &str) -> String {
    let capabilities = Capabilities::for_model(ProviderApi::Anthropic, model);
    encode_body(ProviderApi::Anthropic, request, model, &capabilities)
}

fn body(request: &Request, model: &str) -> Value {
    serde_json::from_str(&text(request, model)).unwrap()
}

fn request_with(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

fn call(id: &str, name: &str, arguments: &str) -> PartContent {
    let (id, name) = (id.to_owned(), name.to_owned());
    PartContent::ToolCall(ToolCall { id, name, arguments: arguments.to_owned(), is_cut: false })
}

fn result(id: &str, name: &str, text: &str) -> ToolResult {
    let (id, name) = (id.to_owned(), name.to_owned());
    ToolResult { id, name, content: text.into(), is_error: false }
}

fn part_with_block(
    content: PartContent,
    api: ProviderApi,
    model: &str,
    block: &str,
) -> ContentPart {
    let json = serde_json::value::RawValue::from_string(block.to_owned()).unwrap();
    ContentPart {
        content,
        provider_block: Some(ProviderBlock { api, model: model.to_owned(), json }),
    }
}

fn assistant_message(parts: Vec<ContentPart>) -> Message {
    Message::Assistant(AssistantMessage { parts }.into())
}

/// Returns the events as a stream body.
fn events(all: &[&str]) -> String {
    let mut text = String::new();
    for data in all {
        let event: Value = serde_json::from_str(data).unwrap();
        let name = event["type"].as_str().unwrap();
        text.push_str(&format!("event: {name}\ndata: {data}\n\n"));
    }
    text
}
