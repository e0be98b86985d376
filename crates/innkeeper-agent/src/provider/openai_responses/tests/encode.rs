//! Requests as they are sent.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use crate::conversation::{Conversation, Message, Part, Said, ToolCall, ToolResult};
use crate::provider::codec::cuts::{MODEL, whole};
use crate::provider::codec::{Asking, encode};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Choice, Constraint, Constraints, Request, Sends, Wire};

fn tools() -> Arc<Tools> {
    let closed = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    let tools = [Tool::new("maps.find", "Finds a place.", closed), Tool::new("maps.tag", "", open)];
    Arc::new(tools.into_iter().collect())
}

fn sent(request: &Request, can: &Capabilities) -> String {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::OpenAiResponses, can.strict_tools);
    let asking = Asking { request, offer: &offer, model: MODEL, can, streaming: true };
    let outgoing = encode(Wire::OpenAiResponses, asking).unwrap();
    assert_eq!((outgoing.path.as_str(), outgoing.headers), ("/responses", Vec::new()));
    String::from_utf8(outgoing.body).unwrap()
}

fn body(request: &Request, can: &Capabilities) -> Value {
    serde_json::from_str(&sent(request, can)).unwrap()
}

fn able() -> Capabilities {
    Capabilities {
        native_tools: true,
        temperature: true,
        forced_choice: true,
        strict_tools: true,
        constraints: Constraints { json_schema: true, gbnf: true, structural_tag: true },
        sends: Sends { encrypted_reasoning: true, ..Sends::default() },
        ..Capabilities::default()
    }
}

fn full() -> Request {
    Request {
        system: "Be brief.".to_owned(),
        messages: vec![Message::User("Where?".into())],
        tools: tools(),
        choice: Choice::Required,
        temperature: Some(0.0),
        max_tokens: Some(50),
        context_tokens: None,
        stop_sequences: vec!["END".to_owned()],
        constraint: None,
        keep_prompt: true,
    }
}

/// Proves: G32, G34
#[test]
fn a_request_has_the_shape_of_responses() {
    let sent = body(&full(), &able());
    let find = json!({
        "type": "function",
        "name": "maps_find",
        "description": "Finds a place.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": false,
        },
        "strict": true,
    });
    assert_eq!(
        (&sent["tools"][1]["name"], &sent["tools"][1]["strict"]),
        (&json!("maps_tag"), &json!(false))
    );
    let expected = json!({
        "model": MODEL,
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": "Where?"}],
        "tools": [find, sent["tools"][1]],
        "tool_choice": "required",
        "temperature": 0.0,
        "max_output_tokens": 50,
        "include": ["reasoning.encrypted_content"],
        "store": false,
        "stream": true,
    });
    assert_eq!(sent, expected);
}

#[test]
fn what_a_model_does_not_take_is_left_out() {
    let constraint = Some(Constraint::JsonSchema(json!({"type": "object"})));
    let request = Request { system: String::new(), max_tokens: None, constraint, ..full() };
    let expected = json!({
        "model": MODEL,
        "input": [{"type": "message", "role": "user", "content": "Where?"}],
        "store": false,
        "stream": true,
    });
    assert_eq!(body(&request, &Capabilities::default()), expected);
    let cannot = Capabilities { forced_choice: false, default_max_tokens: Some(9), ..able() };
    let sent = body(&request, &cannot);
    assert_eq!((sent.get("tool_choice"), &sent["max_output_tokens"]), (None, &json!(9)));
    let none = Request { choice: Choice::None, ..request };
    assert_eq!(body(&none, &able())["tool_choice"], "none");
}

#[test]
fn an_answer_is_held_to_a_schema_and_to_no_grammar() {
    let closed = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    for (schema, strict) in [(closed, true), (open, false)] {
        let request =
            Request { constraint: Some(Constraint::JsonSchema(schema.clone())), ..full() };
        let format =
            json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict});
        assert_eq!(body(&request, &able())["text"], json!({"format": format}));
    }
    for constraint in
        [Constraint::Gbnf("root ::= \"a\"".to_owned()), Constraint::StructuralTag(json!({}))]
    {
        let request = Request { constraint: Some(constraint), ..full() };
        assert_eq!(body(&request, &able()).get("text"), None);
    }
}

const THOUGHT: &str =
    r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA","status":null}"#;
const TEXT: &str = r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]}"#;
const CALL: &str = r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}","status":"completed"}"#;
const SEARCH: &str = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
const RESULT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"Here."}"#;

fn talk(output: &[&str]) -> Vec<Message> {
    let mut talk = Conversation::new();
    let answer = format!(r#"{{"output":[{}]}}"#, output.join(","));
    talk.answer(whole(Wire::OpenAiResponses, &answer).unwrap().answer).unwrap();
    let (id, name, text) = ("c1".to_owned(), "maps.find".to_owned(), "Here.".to_owned());
    talk.results(vec![ToolResult { id, name, text, is_error: false }]).unwrap();
    talk.messages().to_vec()
}

fn input(messages: Vec<Message>, can: &Capabilities) -> String {
    let text = sent(&Request { messages, tools: tools(), ..Request::default() }, can);
    let (_, rest) = text.split_once(r#""input":["#).unwrap();
    rest.split_once(r#"],"tools""#).unwrap().0.to_owned()
}

#[test]
fn items_go_back_to_their_model_in_their_own_words_and_order() {
    let output = [THOUGHT, TEXT, SEARCH, CALL];
    let expected = [&output[..], &[RESULT]].concat().join(",");
    assert_eq!(input(talk(&output), &able()), expected);
}

#[test]
fn thoughts_that_nobody_stored_do_not_go_back_nor_what_is_bound_to_them() {
    let lost = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let text = r#"{"type":"message","role":"assistant","content":"Let me look."}"#;
    let call = r#"{"type":"function_call","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}"}"#;
    assert_eq!(input(talk(&[lost, TEXT, CALL]), &able()), [text, call, RESULT].join(","));
    // Servers whose thoughts are open have no others.
    let open = Capabilities { sends: Sends::default(), ..able() };
    let expected = [lost, TEXT, CALL, RESULT].join(",");
    assert_eq!(input(talk(&[lost, TEXT, CALL]), &open), expected);
}

#[test]
fn a_thought_that_nothing_followed_does_not_go_back() {
    assert_eq!(
        input(talk(&[THOUGHT, TEXT, CALL, THOUGHT]), &able()),
        [THOUGHT, TEXT, CALL, RESULT].join(",")
    );
    let answer =
        whole(Wire::OpenAiResponses, &format!(r#"{{"output":[{THOUGHT}]}}"#)).unwrap().answer;
    let user = Message::User("Go on.".into());
    let expected = r#"{"type":"message","role":"user","content":"Go on."}"#;
    assert_eq!(input(vec![Message::Answer(answer.into()), user], &able()), expected);
}

#[test]
fn to_another_model_go_text_and_calls_alone() {
    let mut messages = talk(&[THOUGHT, TEXT, SEARCH, CALL]);
    let Message::Answer(answer) = &mut messages[0] else { panic!("no answer") };
    let answer = Arc::make_mut(answer);
    for part in &mut answer.parts {
        part.native.as_mut().unwrap().model = "another".to_owned();
    }
    let text = r#"{"type":"message","role":"assistant","content":"Let me look."}"#;
    let call = r#"{"type":"function_call","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}"}"#;
    assert_eq!(input(messages, &able()), [text, call, RESULT].join(","));
}

#[test]
fn a_call_of_another_provider_goes_under_the_name_of_this_wire() {
    let call = |name: &str, arguments: &str| {
        let (id, name, arguments) = ("c1".to_owned(), name.to_owned(), arguments.to_owned());
        Part::new(Said::Call(ToolCall { id, name, arguments }))
    };
    for (name, arguments, alias, written) in [
        ("maps.find", "{}", "maps_find", "{}"),
        ("gone.tool", r#"{"a":"#, "gone_tool", r#"{"unreadable":"{\"a\":"}"#),
    ] {
        let answer = crate::conversation::Answer { parts: vec![call(name, arguments)] };
        let request =
            Request { messages: vec![Message::Answer(answer.into())], tools: tools(), ..full() };
        let expected = json!({
            "type": "function_call",
            "call_id": "c1",
            "name": alias,
            "arguments": written,
        });
        assert_eq!(body(&request, &able())["input"], json!([expected]));
    }
}
