//! Requests.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call;
use crate::conversation::{Answer, Message, Native, Part, Said, ToolResult};
use crate::provider::codec::Asking;
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Choice, Constraint, Request, Wire};

fn text(request: &Request, can: &Capabilities, streaming: bool) -> String {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::Ollama, false);
    let asking = Asking { request, offer: &offer, model: "llama3.1:8b", can, streaming };
    let outgoing = super::super::encode(asking).unwrap();
    assert_eq!((outgoing.path.as_str(), outgoing.headers.len()), ("/api/chat", 0));
    String::from_utf8(outgoing.body).unwrap()
}

fn body(request: &Request) -> Value {
    let can = Capabilities::of(Wire::Ollama, "llama3.1:8b");
    serde_json::from_str(&text(request, &can, false)).unwrap()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tools: Tools = [Tool::new("a.b", "about it", schema)].into_iter().collect();
    Arc::new(tools)
}

fn asking(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

/// Proves: P4
#[test]
fn what_is_asked_of_the_sampling_stands_under_options() {
    let request = Request {
        system: "be kind".to_owned(),
        temperature: Some(0.7),
        max_tokens: Some(500),
        stop_sequences: vec!["END".to_owned(), String::new()],
        ..asking(vec![user("hi")])
    };
    let expected = json!({
        "model": "llama3.1:8b",
        "messages": [
            {"role": "system", "content": "be kind"},
            {"role": "user", "content": "hi"},
        ],
        "options": {"num_ctx": 16384, "temperature": 0.7, "num_predict": 500, "stop": ["END"]},
        "stream": false,
    });
    assert_eq!(body(&request), expected);
}

#[test]
fn the_context_window_is_always_said_and_what_is_not_taken_never() {
    let request = Request {
        temperature: Some(0.7),
        stop_sequences: vec!["END".to_owned()],
        tools: tools(),
        constraint: Some(Constraint::JsonSchema(json!({}))),
        ..asking(vec![user("hi")])
    };
    let can = Capabilities { context_tokens: Some(32_768), ..Capabilities::default() };
    let sent: Value = serde_json::from_str(&text(&request, &can, true)).unwrap();
    assert_eq!(sent["options"], json!({"num_ctx": 32_768}));
    assert_eq!(sent["stream"], true);
    for name in ["tools", "format", "think"] {
        assert_eq!(sent.get(name), None, "{name}");
    }
    assert_eq!(body(&asking(vec![user("hi")]))["options"], json!({"num_ctx": 16384}));
}

#[test]
fn tools_are_offered_in_openais_shape_unless_none_may_be_called() {
    let request = Request { tools: tools(), ..asking(vec![user("hi")]) };
    let expected = json!([{"type": "function", "function": {
        "name": "a_b",
        "description": "about it",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }}]);
    assert_eq!(body(&request)["tools"], expected);
    let required = Request { choice: Choice::Required, ..request.clone() };
    assert_eq!(body(&required)["tools"], expected);
    assert_eq!(body(&Request { choice: Choice::None, ..request }).get("tools"), None);
}

#[test]
fn a_form_is_asked_for_only_without_tools() {
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}});
    let constraint = Some(Constraint::JsonSchema(schema.clone()));
    let request = Request { constraint, ..asking(vec![user("hi")]) };
    assert_eq!(body(&request)["format"], schema);
    let with = Request { tools: tools(), ..request.clone() };
    assert_eq!(body(&with).get("format"), None);
    let grammar =
        Request { constraint: Some(Constraint::Gbnf("root ::= \"a\"".to_owned())), ..request };
    assert_eq!(body(&grammar).get("format"), None);
}

fn native(said: Said, model: &str, block: &str) -> Part {
    let block = RawValue::from_string(block.to_owned()).unwrap();
    Part { said, native: Some(Native { wire: Wire::Ollama, model: model.to_owned(), block }) }
}

#[test]
fn calls_go_back_word_for_word_and_results_name_their_tool() {
    let own = r#"{"id":"c1","function":{"index":0,"name":"a_b","arguments":{"n": 12345678901234567890123}}}"#;
    let parts = vec![
        native(Said::Reasoning("hm".to_owned()), "llama3.1:8b", r#"{"thinking":"hm"}"#),
        Part::new(Said::Text("so".to_owned())),
        native(call("c1", "a.b", "{}"), "llama3.1:8b", own),
        Part::new(call("c2", "a.b", r#"{"n": 1.0}"#)),
    ];
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "a.b".to_owned(),
        text: format!("of {id}"),
        is_error: false,
    };
    let history = vec![
        user("go"),
        Message::Answer(Answer { parts }.into()),
        Message::Results(vec![result("c1"), result("c2")].into()),
    ];
    let can = Capabilities::of(Wire::Ollama, "llama3.1:8b");
    let sent = text(&Request { tools: tools(), ..asking(history) }, &can, true);
    let ours = r#"{"id":"c2","function":{"name":"a_b","arguments":{"n": 1.0}}}"#;
    let answer = format!(
        r#"{{"role":"assistant","content":"so","thinking":"hm","tool_calls":[{own},{ours}]}}"#
    );
    assert!(sent.contains(&answer), "{sent}");
    let result = r#"{"role":"tool","content":"of c2","tool_name":"a_b","tool_call_id":"c2"}"#;
    assert!(sent.contains(result), "{sent}");
}

#[test]
fn what_another_model_thought_and_answers_of_nothing_are_left_out() {
    let parts = vec![
        native(Said::Reasoning("secret".to_owned()), "other", r#"{"thinking":"secret"}"#),
        Part::new(Said::Text("so".to_owned())),
    ];
    let history = vec![
        user("go"),
        Message::Answer(Answer { parts }.into()),
        user("on"),
        Message::Answer(Answer::default().into()),
        user("?"),
    ];
    let expected = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "on"},
        {"role": "user", "content": "?"},
    ]);
    assert_eq!(body(&asking(history))["messages"], expected);
}
