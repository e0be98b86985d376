//! Tests of encoded requests.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use super::*;
use crate::conversation::{AssistantMessage, Conversation, Message, ProviderBlock, ToolResult};
use crate::provider::codec::request_encoding::{encode_body, encode_request};
use crate::provider::{
    Capabilities, OutputConstraint, ProviderApi, Request, ToolChoice, ToolSupport,
};

fn body_text(request: &Request, model: &str, capabilities: &Capabilities) -> String {
    encode_body(ProviderApi::GeminiInteractions, request, model, capabilities)
}

fn body_json(request: &Request, model: &str, capabilities: &Capabilities) -> Value {
    serde_json::from_str(&body_text(request, model, capabilities)).unwrap()
}

fn input(messages: &[Message], model: &str) -> Value {
    let request = Request { messages: messages.to_vec(), ..Request::default() };
    body_json(&request, model, &Capabilities::for_model(ProviderApi::GeminiInteractions, model))["input"].take()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    Arc::new([Tool::new("web.look", "Looks.", schema)].into_iter().collect())
}

fn result(id: &str, text: &str, is_error: bool) -> ToolResult {
    let (id, name) = (id.to_owned(), "web.look".to_owned());
    ToolResult { id, name, content: text.into(), is_error }
}

/// Proves: G32
#[test]
fn a_request_has_all_that_the_model_takes() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let request = Request {
        system: "Be brief.".to_owned(),
        messages: vec![Message::User("hello".into())],
        tools: tools(),
        plain_tools: false,
        tool_choice: ToolChoice::Required,
        temperature: Some(0.5),
        max_tokens: Some(100),
        context_tokens: None,
        stop_sequences: vec!["END".to_owned()],
        output_constraint: Some(OutputConstraint::JsonSchema(schema.clone())),
        prompt_caching: true,
        iteration: 0,
    };
    let capabilities = Capabilities {
        temperature: true,
        ..Capabilities::for_model(ProviderApi::GeminiInteractions, MODEL)
    };
    let lowered_schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let mut expected = json!({
        "model": MODEL,
        "system_instruction": "Be brief.",
        "input": [{"type": "user_input", "content": [{"type": "text", "text": "hello"}]}],
        "tools": [{"type": "function", "name": "web_look", "description": "Looks.", "parameters": lowered_schema}],
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
    assert_eq!(body_json(&request, "models/gemini-3.8-flash", &capabilities), expected);

    let least = Capabilities {
        tools: ToolSupport { native: true, ..ToolSupport::default() },
        ..Capabilities::default()
    };
    expected["generation_config"] = json!({"max_output_tokens": 100, "tool_choice": "auto"});
    expected.as_object_mut().unwrap().remove("response_format");
    assert_eq!(body_json(&request, MODEL, &least), expected);

    let bare = json!({"model": MODEL, "input": [], "generation_config": {}, "store": false, "stream": false});
    assert_eq!(body_json(&Request::default(), MODEL, &capabilities), bare);
}

#[test]
fn the_revision_and_the_stream_flag_are_sent() {
    let (request, capabilities) = (Request::default(), Capabilities::default());
    let api = ProviderApi::GeminiInteractions;
    let outgoing = encode_request(api, &request, MODEL, &capabilities, true);
    assert_eq!(outgoing.path, "/v1beta/interactions");
    assert_eq!(outgoing.headers, [("api-revision", "2026-05-20".to_owned())]);
    assert!(String::from_utf8(outgoing.body).unwrap().contains(r#""stream":true"#));
}

#[test]
fn each_choice_has_its_mode() {
    let table = [
        (ToolChoice::Auto, false, "auto"),
        (ToolChoice::Auto, true, "validated"),
        (ToolChoice::None, true, "none"),
        (ToolChoice::Required, true, "any"),
    ];
    for (tool_choice, validated, mode) in table {
        let request = Request { tools: tools(), tool_choice, ..Request::default() };
        let mut capabilities = Capabilities::for_model(ProviderApi::GeminiInteractions, MODEL);
        capabilities.quirks.gemini.validated_mode = validated;
        assert_eq!(
            body_json(&request, MODEL, &capabilities)["generation_config"]["tool_choice"],
            mode
        );
    }
}

#[test]
fn the_models_own_steps_go_back_verbatim() {
    let steps = [
        r#"{"type":"thought", "summary":[ {"type":"text","text":"\u00fc"} ], "signature":"a+/="}"#,
        r#"{"type":"function_call","id":"x1","name":"web_look","arguments":{"n": 12345678901234567890},"signature":"QQ=="}"#,
        r#"{"type":"function_call","name":"web_look","arguments":{}}"#,
    ];
    let mut conversation = Conversation::new();
    conversation.push_user("look").unwrap();
    let assistant = decode_body(&interaction(&steps.join(","), "requires_action")).unwrap().message;
    conversation.push_assistant(assistant).unwrap();
    conversation
        .push_tool_results(vec![result("call_1", "broken", true), result("x1", "seen", false)])
        .unwrap();
    let request = Request { messages: conversation.messages().to_vec(), ..Request::default() };
    let text = body_text(
        &request,
        MODEL,
        &Capabilities::for_model(ProviderApi::GeminiInteractions, MODEL),
    );
    assert!(text.contains(&steps[..2].join(",")), "{text}");
    // The generated id, which the result names.
    let expected_call =
        r#"{"type":"function_call","id":"call_1","name":"web_look","arguments":{}}"#;
    assert!(text.contains(expected_call), "{text}");
    let all = input(conversation.messages(), MODEL);
    let expected_result =
        json!({"type": "function_result", "call_id": "x1", "name": "web_look", "result": "seen"});
    assert_eq!(all[4], expected_result);
    let expected_result = json!({
        "type": "function_result",
        "call_id": "call_1",
        "name": "web_look",
        "result": "broken",
        "is_error": true,
    });
    assert_eq!(all[5], expected_result);
}

#[test]
fn calls_of_another_model_follow_a_thought_with_the_placeholder_signature() {
    let foreign = |arguments: &str| {
        let (id, name, arguments) = (String::new(), "web.look".to_owned(), arguments.to_owned());
        ContentPart::new(PartContent::ToolCall(ToolCall { id, name, arguments, is_cut: false }))
    };
    let mut foreign_thought = ContentPart::new(PartContent::Reasoning("hm".to_owned()));
    foreign_thought.provider_block = Some(ProviderBlock {
        api: ProviderApi::GeminiGenerate,
        model: MODEL.to_owned(),
        json: serde_json::value::to_raw_value(&json!({"thoughtSignature": "theirs"})).unwrap(),
    });
    let spoken_text = ContentPart::new(text("I look."));
    let parts = vec![
        foreign_thought,
        spoken_text,
        foreign(r#"{"n":98765432109876543210}"#),
        foreign("not JSON"),
    ];
    let mut conversation = Conversation::new();
    conversation.push_assistant(AssistantMessage { parts }).unwrap();
    conversation.fail_pending("stopped");
    let request = Request { messages: conversation.messages().to_vec(), ..Request::default() };
    let text = body_text(
        &request,
        MODEL,
        &Capabilities::for_model(ProviderApi::GeminiInteractions, MODEL),
    );
    assert!(text.contains(r#""arguments":{"n":98765432109876543210}"#), "{text}");

    let all = input(conversation.messages(), MODEL);
    assert_eq!(
        all[0],
        json!({"type": "model_output", "content": [{"type": "text", "text": "I look."}]})
    );
    assert_eq!(all[1], json!({"type": "thought", "signature": "skip_thought_signature_validator"}));
    assert_eq!((&all[2]["id"], &all[2]["name"]), (&json!("call_1"), &json!("web_look")));
    let call = json!({"type": "function_call", "id": "call_2", "name": "web_look", "arguments": {"unreadable": "not JSON"}});
    assert_eq!(all[3], call);
    assert_eq!((&all[4]["call_id"], &all[4]["is_error"]), (&json!("call_1"), &json!(true)));
    let unsigned = input(conversation.messages(), "gemini-2.5-flash");
    assert!(!unsigned.to_string().contains("ignature"), "{unsigned}");
    assert_eq!(unsigned.as_array().unwrap().len(), 5);
}

#[test]
fn streamed_steps_go_back_whole() {
    let assistant = decode_steps(&[
        start(0, r#"{"type":"thought","signature":""}"#),
        delta(0, r#"{"type":"thought_signature","signature":"QUJD"}"#),
        start(1, r#"{"type":"function_call","id":"c","name":"look","arguments":{}}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"{\"n\":1"}"#),
        delta(1, r#"{"type":"arguments_delta","arguments":"}"}"#),
        completed("requires_action"),
    ]);
    let all = input(&[Message::Assistant(assistant.message.into())], MODEL);
    let thought = json!({"type": "thought", "signature": "QUJD"});
    let call = json!({"type": "function_call", "id": "c", "name": "look", "arguments": {"n": 1}});
    assert_eq!(all, json!([thought, call]));
}

/// Proves: G36
#[test]
fn names_and_schemas_are_encoded_for_the_api() {
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
    let body = body_json(
        &request,
        MODEL,
        &Capabilities::for_model(ProviderApi::GeminiInteractions, MODEL),
    );
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
