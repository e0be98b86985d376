//! What is sent.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use super::*;
use crate::conversation::{Answer, Conversation, Message, Native, ToolResult};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Choice, Constraint, Request, Wire};

fn body(request: &Request, model: &str, can: &Capabilities) -> String {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::GeminiInteractions, false);
    let asking = Asking { request, offer: &offer, model, can, streaming: false };
    String::from_utf8(encode(asking).unwrap().body).unwrap()
}

fn sent(request: &Request, model: &str, can: &Capabilities) -> Value {
    serde_json::from_str(&body(request, model, can)).unwrap()
}

fn input(messages: &[Message], model: &str) -> Value {
    let request = Request { messages: messages.to_vec(), ..Request::default() };
    sent(&request, model, &Capabilities::of(Wire::GeminiInteractions, model))["input"].take()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    Arc::new([Tool::new("web.look", "Looks.", schema)].into_iter().collect())
}

fn result(id: &str, text: &str, is_error: bool) -> ToolResult {
    let (id, name, text) = (id.to_owned(), "web.look".to_owned(), text.to_owned());
    ToolResult { id, name, text, is_error }
}

#[test]
fn a_request_has_all_that_the_model_takes() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request = Request {
        system: "Be brief.".to_owned(),
        messages: vec![Message::User("hello".into())],
        tools: tools(),
        choice: Choice::Required,
        temperature: Some(0.5),
        max_tokens: Some(100),
        context_tokens: None,
        stop_sequences: vec!["END".to_owned()],
        constraint: Some(Constraint::JsonSchema(schema.clone())),
        keep_prompt: true,
    };
    let can = Capabilities::of(Wire::GeminiInteractions, MODEL);
    let fitted = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let mut expected = json!({
        "model": MODEL,
        "system_instruction": "Be brief.",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "hello"}]}],
        "tools": [{"type": "function", "name": "web_look", "description": "Looks.", "parameters": fitted}],
        "generation_config": {
            "temperature": 0.5,
            "max_output_tokens": 100,
            "stop_sequences": ["END"],
            "tool_choice": "any",
        },
        "response_format": {"type": "text", "mime_type": "application/json", "schema": schema},
        "store": false,
        "stream": false,
    });
    assert_eq!(sent(&request, "models/gemini-3.8-flash", &can), expected);

    let least = Capabilities { native_tools: true, ..Capabilities::default() };
    expected["generation_config"] = json!({"max_output_tokens": 100, "tool_choice": "auto"});
    expected.as_object_mut().unwrap().remove("response_format");
    assert_eq!(sent(&request, MODEL, &least), expected);

    let bare = json!({"model": MODEL, "input": [], "generation_config": {}, "store": false, "stream": false});
    assert_eq!(sent(&Request::default(), MODEL, &can), bare);
}

#[test]
fn the_revision_is_told_and_the_stream_is_asked_for() {
    let (request, can) = (Request::default(), Capabilities::default());
    let offer = Offer::new(Arc::default(), Wire::GeminiInteractions, false);
    let asking =
        Asking { request: &request, offer: &offer, model: MODEL, can: &can, streaming: true };
    let outgoing = encode(asking).unwrap();
    assert_eq!(outgoing.path, "/v1beta/interactions");
    assert_eq!(outgoing.headers, [("api-revision", "2026-05-20".to_owned())]);
    assert!(String::from_utf8(outgoing.body).unwrap().contains(r#""stream":true"#));
}

#[test]
fn each_choice_has_its_mode() {
    let table = [
        (Choice::Auto, false, "auto"),
        (Choice::Auto, true, "validated"),
        (Choice::None, true, "none"),
        (Choice::Required, true, "any"),
    ];
    for (choice, validated, mode) in table {
        let request = Request { tools: tools(), choice, ..Request::default() };
        let mut can = Capabilities::of(Wire::GeminiInteractions, MODEL);
        can.sends.validated_mode = validated;
        assert_eq!(sent(&request, MODEL, &can)["generation_config"]["tool_choice"], mode);
    }
}

#[test]
fn what_the_model_said_goes_back_word_for_word() {
    let steps = [
        r#"{"type":"thought", "summary":[ {"type":"text","text":"\u00fc"} ], "signature":"a+/="}"#,
        r#"{"type":"function_call","id":"x1","name":"web_look","arguments":{"n": 12345678901234567890},"signature":"QQ=="}"#,
        r#"{"type":"function_call","name":"web_look","arguments":{}}"#,
    ];
    let mut talk = Conversation::new();
    talk.user("look").unwrap();
    let answer = whole(&interaction(&steps.join(","), "requires_action")).unwrap().answer;
    talk.answer(answer).unwrap();
    talk.results(vec![result("call_1", "broken", true), result("x1", "seen", false)]).unwrap();
    let request = Request { messages: talk.messages().to_vec(), ..Request::default() };
    let text = body(&request, MODEL, &Capabilities::of(Wire::GeminiInteractions, MODEL));
    assert!(text.contains(&steps[..2].join(",")), "{text}");
    // Its result has to name it.
    let ours = r#"{"type":"function_call","id":"call_1","name":"web_look","arguments":{}}"#;
    assert!(text.contains(ours), "{text}");
    let all = input(talk.messages(), MODEL);
    let told =
        json!({"type": "function_result", "call_id": "x1", "name": "web_look", "result": "seen"});
    assert_eq!(all[4], told);
    let told = json!({
        "type": "function_result",
        "call_id": "call_1",
        "name": "web_look",
        "result": "broken",
        "is_error": true,
    });
    assert_eq!(all[5], told);
}

#[test]
fn calls_that_another_model_made_come_behind_a_thought_with_the_word_for_a_signature() {
    let foreign = |arguments: &str| {
        let (id, name, arguments) = (String::new(), "web.look".to_owned(), arguments.to_owned());
        Part::new(Said::Call(ToolCall { id, name, arguments }))
    };
    let mut theirs = Part::new(Said::Reasoning("hm".to_owned()));
    theirs.native = Some(Native {
        wire: Wire::GeminiGenerate,
        model: MODEL.to_owned(),
        block: serde_json::value::to_raw_value(&json!({"thoughtSignature": "theirs"})).unwrap(),
    });
    let spoken = Part::new(text("I look."));
    let parts = vec![theirs, spoken, foreign(r#"{"n":98765432109876543210}"#), foreign("not JSON")];
    let mut talk = Conversation::new();
    talk.answer(Answer { parts }).unwrap();
    talk.close("stopped");
    let request = Request { messages: talk.messages().to_vec(), ..Request::default() };
    let text = body(&request, MODEL, &Capabilities::of(Wire::GeminiInteractions, MODEL));
    assert!(text.contains(r#""arguments":{"n":98765432109876543210}"#), "{text}");

    let all = input(talk.messages(), MODEL);
    assert_eq!(
        all[0],
        json!({"type": "model_output", "content": [{"type": "text", "text": "I look."}]})
    );
    assert_eq!(all[1], json!({"type": "thought", "signature": "skip_thought_signature_validator"}));
    assert_eq!((&all[2]["id"], &all[2]["name"]), (&json!("call_1"), &json!("web_look")));
    let call = json!({"type": "function_call", "id": "call_2", "name": "web_look", "arguments": {"unreadable": "not JSON"}});
    assert_eq!(all[3], call);
    assert_eq!((&all[4]["call_id"], &all[4]["is_error"]), (&json!("call_1"), &json!(true)));
    let unsigned = input(talk.messages(), "gemini-2.5-flash");
    assert!(!unsigned.to_string().contains("ignature"), "{unsigned}");
    assert_eq!(unsigned.as_array().unwrap().len(), 5);
}

#[test]
fn what_came_in_pieces_goes_back_whole() {
    let answer = of(&[
        start(0, r#"{"type":"thought","signature":""}"#),
        delta(0, r#"{"type":"thought_signature","signature":"QUJD"}"#),
        start(1, r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"{\"n\":1"}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"}"}"#),
        completed("requires_action"),
    ]);
    let all = input(&[Message::Answer(answer.answer.into())], MODEL);
    let thought = json!({"type": "thought", "signature": "QUJD"});
    let call = json!({"type": "function_call", "id": "c", "name": "look", "arguments": {"n": 1}});
    assert_eq!(all, json!([thought, call]));
}

/// Proves: G36
#[test]
fn names_and_schemas_are_such_as_the_wire_takes() {
    let schema = json!({
        "$defs": {"place": {"type": "object", "properties": {"x": {"const": 1}}}},
        "type": "object",
        "properties": {
            "at": {"$ref": "#/$defs/place"},
            "how": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
        },
        "additionalProperties": false,
    });
    let name = format!("9.look/{}", "very ".repeat(20));
    let tools = Arc::new([Tool::new(name, "", schema)].into_iter().collect());
    let request = Request { tools, ..Request::default() };
    let body = sent(&request, MODEL, &Capabilities::of(Wire::GeminiInteractions, MODEL));
    let tool = &body["tools"][0];
    let name = tool["name"].as_str().unwrap();
    assert!(name.len() <= 64, "{name}");
    assert!(name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'), "{name}");
    assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it)), "{name}");
    let schema = tool["parameters"].to_string();
    for keyword in ["$ref", "$defs", "oneOf", "const", "additionalProperties"] {
        assert!(!schema.contains(keyword), "{schema}");
    }
    assert!(schema.contains(r#""x""#), "{schema}");
}
