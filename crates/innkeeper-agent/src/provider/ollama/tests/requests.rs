//! Tests of encoded requests.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::call;
use crate::conversation::{
    AssistantMessage, ContentPart, Message, PartContent, ProviderBlock, ToolResult,
};
use crate::provider::codec::request_encoding::encode_request;
use crate::provider::{
    Capabilities, OutputConstraint, ProviderApi, Request, TokenLimits, ToolChoice,
};

fn text(request: &Request, capabilities: &Capabilities, streaming: bool) -> String {
    let api = ProviderApi::Ollama;
    let outgoing = encode_request(api, request, "llama3.1:8b", capabilities, streaming);
    assert_eq!((outgoing.path.as_str(), outgoing.headers.len()), ("/api/chat", 0));
    String::from_utf8(outgoing.body).unwrap()
}

fn body(request: &Request) -> Value {
    let capabilities = Capabilities::for_model(ProviderApi::Ollama, "llama3.1:8b");
    serde_json::from_str(&text(request, &capabilities, false)).unwrap()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let tools: Tools = [Tool::new("a.b", "about it", schema)].into_iter().collect();
    Arc::new(tools)
}

fn request_with(messages: Vec<Message>) -> Request {
    Request { messages, ..Request::default() }
}

fn user(text: &str) -> Message {
    Message::User(text.into())
}

/// Proves: P4
#[test]
fn sampling_parameters_are_sent_under_options() {
    let request = Request {
        system: "be kind".to_owned(),
        temperature: Some(0.7),
        max_tokens: Some(500),
        stop_sequences: vec!["END".to_owned(), String::new()],
        ..request_with(vec![user("hi")])
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
fn the_context_window_is_always_sent_and_unsupported_parameters_never() {
    let request = Request {
        temperature: Some(0.7),
        stop_sequences: vec!["END".to_owned()],
        tools: tools(),
        output_constraint: Some(OutputConstraint::JsonSchema(json!({}))),
        ..request_with(vec![user("hi")])
    };
    let capabilities = Capabilities {
        tokens: TokenLimits { context: Some(32_768), ..TokenLimits::default() },
        ..Capabilities::default()
    };
    let sent: Value = serde_json::from_str(&text(&request, &capabilities, true)).unwrap();
    assert_eq!(sent["options"], json!({"num_ctx": 32_768}));
    assert_eq!(sent["stream"], true);
    for name in ["tools", "format", "think"] {
        assert_eq!(sent.get(name), None, "{name}");
    }
    assert_eq!(body(&request_with(vec![user("hi")]))["options"], json!({"num_ctx": 16384}));
}

#[test]
fn tools_are_offered_in_openais_shape_unless_none_may_be_called() {
    let request = Request { tools: tools(), ..request_with(vec![user("hi")]) };
    let expected = json!([{"type": "function", "function": {
        "name": "a_b",
        "description": "about it",
        "parameters": {"type": "object", "properties": {"n": {"type": "integer"}}},
    }}]);
    assert_eq!(body(&request)["tools"], expected);
    let required = Request { tool_choice: ToolChoice::Required, ..request.clone() };
    assert_eq!(body(&required)["tools"], expected);
    assert_eq!(body(&Request { tool_choice: ToolChoice::None, ..request }).get("tools"), None);
}

#[test]
fn an_output_format_is_sent_only_without_tools() {
    let schema = json!({"type": "object", "properties": {"a": {"const": 1}}});
    let output_constraint = Some(OutputConstraint::JsonSchema(schema.clone()));
    let request = Request { output_constraint, ..request_with(vec![user("hi")]) };
    assert_eq!(body(&request)["format"], schema);
    let with = Request { tools: tools(), ..request.clone() };
    assert_eq!(body(&with).get("format"), None);
    let grammar = Request {
        output_constraint: Some(OutputConstraint::Gbnf("root ::= \"a\"".to_owned())),
        ..request
    };
    assert_eq!(body(&grammar).get("format"), None);
}

fn part_with_block(content: PartContent, model: &str, block: &str) -> ContentPart {
    let json = RawValue::from_string(block.to_owned()).unwrap();
    ContentPart {
        content,
        provider_block: Some(ProviderBlock {
            api: ProviderApi::Ollama,
            model: model.to_owned(),
            json,
        }),
    }
}

#[test]
fn calls_go_back_word_for_word_and_results_name_their_tool() {
    let native_call = r#"{"id":"c1","function":{"index":0,"name":"a_b_2","arguments":{"n": 12345678901234567890123}}}"#;
    let parts = vec![
        part_with_block(
            PartContent::Reasoning("hm".to_owned()),
            "llama3.1:8b",
            r#"{"thinking":"hm"}"#,
        ),
        ContentPart::new(PartContent::Text("so".to_owned())),
        part_with_block(call("c1", "a.b", "{}"), "llama3.1:8b", native_call),
        ContentPart::new(call("c2", "a.b", r#"{"n": 1.0}"#)),
    ];
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "a.b".to_owned(),
        content: format!("of {id}").into(),
        is_error: false,
    };
    let history = vec![
        user("go"),
        Message::Assistant(AssistantMessage { parts }.into()),
        Message::ToolResults(vec![result("c1"), result("c2")].into()),
    ];
    let capabilities = Capabilities::for_model(ProviderApi::Ollama, "llama3.1:8b");
    let sent = text(&Request { tools: tools(), ..request_with(history) }, &capabilities, true);
    let encoded_call = r#"{"id":"c2","function":{"name":"a_b","arguments":{"n": 1.0}}}"#;
    let expected = format!(
        r#"{{"role":"assistant","content":"so","thinking":"hm","tool_calls":[{native_call},{encoded_call}]}}"#
    );
    assert!(sent.contains(&expected), "{sent}");
    // The first call keeps the name that the tool had in an earlier request.
    for (id, name) in [("c1", "a_b_2"), ("c2", "a_b")] {
        let result = format!(
            r#"{{"role":"tool","content":"of {id}","tool_name":"{name}","tool_call_id":"{id}"}}"#
        );
        assert!(sent.contains(&result), "{sent}");
    }
}

#[test]
fn thoughts_of_another_model_and_empty_messages_are_left_out() {
    let parts = vec![
        part_with_block(
            PartContent::Reasoning("secret".to_owned()),
            "other",
            r#"{"thinking":"secret"}"#,
        ),
        ContentPart::new(PartContent::Text("so".to_owned())),
    ];
    let history = vec![
        user("go"),
        Message::Assistant(AssistantMessage { parts }.into()),
        user("on"),
        Message::Assistant(AssistantMessage::default().into()),
        user("?"),
    ];
    let expected = json!([
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "so"},
        {"role": "user", "content": "on"},
        {"role": "user", "content": "?"},
    ]);
    assert_eq!(body(&request_with(history))["messages"], expected);
}
