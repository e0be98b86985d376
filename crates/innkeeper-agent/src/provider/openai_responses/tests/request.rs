//! Tests of encoded requests.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use crate::conversation::{ContentPart, Conversation, Message, PartContent, ToolCall, ToolResult};
use crate::provider::codec::chunking::{MODEL, decode_body};
use crate::provider::codec::request_encoding::encode_request;
use crate::provider::{
    Capabilities, ConstraintSupport, OutputConstraint, ProviderApi, Request, RequestQuirks,
    TokenLimits, ToolChoice, ToolSupport,
};

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

fn request_text(request: &Request, capabilities: &Capabilities) -> String {
    let api = ProviderApi::OpenAiResponses;
    let outgoing = encode_request(api, request, MODEL, capabilities, true);
    assert_eq!((outgoing.path.as_str(), outgoing.headers), ("/responses", Vec::new()));
    String::from_utf8(outgoing.body).unwrap()
}

fn body(request: &Request, capabilities: &Capabilities) -> Value {
    serde_json::from_str(&request_text(request, capabilities)).unwrap()
}

fn full_capabilities() -> Capabilities {
    Capabilities {
        tools: ToolSupport {
            native: true,
            forced_choice: true,
            strict: true,
            ..ToolSupport::default()
        },
        temperature: true,
        constraints: ConstraintSupport { json_schema: true, gbnf: true, structural_tag: true },
        quirks: RequestQuirks { encrypted_reasoning: true, ..RequestQuirks::default() },
        ..Capabilities::default()
    }
}

fn full_request() -> Request {
    Request {
        system: "Be brief.".to_owned(),
        messages: vec![Message::User("Where?".into())],
        tools: tools(),
        plain_tools: false,
        tool_choice: ToolChoice::Required,
        temperature: Some(0.0),
        max_tokens: Some(50),
        context_tokens: None,
        stop_sequences: vec!["END".to_owned()],
        output_constraint: None,
        prompt_caching: true,
        iteration: 0,
    }
}

/// Proves: G32, G34
#[test]
fn a_request_has_the_shape_of_responses() {
    let sent = body(&full_request(), &full_capabilities());
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
fn parameters_that_a_model_does_not_support_are_left_out() {
    let output_constraint = Some(OutputConstraint::JsonSchema(json!({"type": "object"})));
    let request =
        Request { system: String::new(), max_tokens: None, output_constraint, ..full_request() };
    let expected = json!({
        "model": MODEL,
        "input": [{"type": "message", "role": "user", "content": "Where?"}],
        "store": false,
        "stream": true,
    });
    assert_eq!(body(&request, &Capabilities::default()), expected);
    let cannot = Capabilities {
        tokens: TokenLimits { default_output: Some(9), ..full_capabilities().tokens },
        tools: ToolSupport { forced_choice: false, ..full_capabilities().tools },
        ..full_capabilities()
    };
    let sent = body(&request, &cannot);
    assert_eq!((sent.get("tool_choice"), &sent["max_output_tokens"]), (None, &json!(9)));
    let none = Request { tool_choice: ToolChoice::None, ..request };
    assert_eq!(body(&none, &full_capabilities())["tool_choice"], "none");
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
        let request = Request {
            output_constraint: Some(OutputConstraint::JsonSchema(schema.clone())),
            ..full_request()
        };
        let format =
            json!({"type": "json_schema", "name": "answer", "schema": schema, "strict": strict});
        assert_eq!(body(&request, &full_capabilities())["text"], json!({"format": format}));
    }
    for constraint in [
        OutputConstraint::Gbnf("root ::= \"a\"".to_owned()),
        OutputConstraint::StructuralTag(json!({})),
    ] {
        let request = Request { output_constraint: Some(constraint), ..full_request() };
        assert_eq!(body(&request, &full_capabilities()).get("text"), None);
    }
}

const THOUGHT: &str =
    r#"{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA","status":null}"#;
const TEXT: &str = r#"{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me look.","annotations":[]}]}"#;
const CALL: &str = r#"{"type":"function_call","id":"fc_1","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}","status":"completed"}"#;
const SEARCH: &str = r#"{"type":"web_search_call","id":"ws_1","status":"completed"}"#;
const RESULT: &str = r#"{"type":"function_call_output","call_id":"c1","output":"Here."}"#;

fn conversation(output: &[&str]) -> Vec<Message> {
    let mut history = Conversation::new();
    let body = format!(r#"{{"output":[{}]}}"#, output.join(","));
    history
        .push_assistant(decode_body(ProviderApi::OpenAiResponses, &body).unwrap().message)
        .unwrap();
    let (id, name, text) = ("c1".to_owned(), "maps.find".to_owned(), "Here.".to_owned());
    history
        .push_tool_results(vec![ToolResult { id, name, content: text.into(), is_error: false }])
        .unwrap();
    history.messages().to_vec()
}

fn input(messages: Vec<Message>, capabilities: &Capabilities) -> String {
    let text =
        request_text(&Request { messages, tools: tools(), ..Request::default() }, capabilities);
    let (_, rest) = text.split_once(r#""input":["#).unwrap();
    rest.split_once(r#"],"tools""#).unwrap().0.to_owned()
}

#[test]
fn items_go_back_to_their_model_verbatim_and_in_order() {
    let output = [THOUGHT, TEXT, SEARCH, CALL];
    let expected = [&output[..], &[RESULT]].concat().join(",");
    assert_eq!(input(conversation(&output), &full_capabilities()), expected);
}

#[test]
fn reasoning_that_was_not_stored_does_not_go_back_nor_the_items_bound_to_it() {
    let unencrypted = r#"{"type":"reasoning","id":"rs_1","summary":[]}"#;
    let text = r#"{"type":"message","role":"assistant","content":"Let me look."}"#;
    let call = r#"{"type":"function_call","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}"}"#;
    assert_eq!(
        input(conversation(&[unencrypted, TEXT, CALL]), &full_capabilities()),
        [text, call, RESULT].join(",")
    );
    // Servers with open reasoning have no encrypted content.
    let open = Capabilities { quirks: RequestQuirks::default(), ..full_capabilities() };
    let expected = [unencrypted, TEXT, CALL, RESULT].join(",");
    assert_eq!(input(conversation(&[unencrypted, TEXT, CALL]), &open), expected);
}

#[test]
fn a_thought_that_nothing_followed_does_not_go_back() {
    assert_eq!(
        input(conversation(&[THOUGHT, TEXT, CALL, THOUGHT]), &full_capabilities()),
        [THOUGHT, TEXT, CALL, RESULT].join(",")
    );
    let assistant =
        decode_body(ProviderApi::OpenAiResponses, &format!(r#"{{"output":[{THOUGHT}]}}"#))
            .unwrap()
            .message;
    let user = Message::User("Go on.".into());
    let expected = r#"{"type":"message","role":"user","content":"Go on."}"#;
    assert_eq!(
        input(vec![Message::Assistant(assistant.into()), user], &full_capabilities()),
        expected
    );
}

#[test]
fn to_another_model_go_text_and_calls_alone() {
    let mut messages = conversation(&[THOUGHT, TEXT, SEARCH, CALL]);
    let Message::Assistant(answer) = &mut messages[0] else { panic!("no answer") };
    let answer = Arc::make_mut(answer);
    for part in &mut answer.parts {
        part.provider_block.as_mut().unwrap().model = "another".to_owned();
    }
    let text = r#"{"type":"message","role":"assistant","content":"Let me look."}"#;
    let call = r#"{"type":"function_call","call_id":"c1","name":"maps_find","arguments":"{\"n\": 12345678901234567890123}"}"#;
    assert_eq!(input(messages, &full_capabilities()), [text, call, RESULT].join(","));
}

#[test]
fn a_call_of_another_provider_gets_the_name_of_this_api() {
    let call = |name: &str, arguments: &str| {
        let (id, name, arguments) = ("c1".to_owned(), name.to_owned(), arguments.to_owned());
        ContentPart::new(PartContent::ToolCall(ToolCall { id, name, arguments, is_cut: false }))
    };
    for (name, arguments, alias, encoded_arguments) in [
        ("maps.find", "{}", "maps_find", "{}"),
        ("gone.tool", r#"{"a":"#, "gone_tool", r#"{"unreadable":"{\"a\":"}"#),
    ] {
        let assistant =
            crate::conversation::AssistantMessage { parts: vec![call(name, arguments)] };
        let request = Request {
            messages: vec![Message::Assistant(assistant.into())],
            tools: tools(),
            ..full_request()
        };
        let expected = json!({
            "type": "function_call",
            "call_id": "c1",
            "name": alias,
            "arguments": encoded_arguments,
        });
        assert_eq!(body(&request, &full_capabilities())["input"], json!([expected]));
    }
}
