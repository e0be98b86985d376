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

fn body_json(request: &Request, model: &str, capabilities: &Capabilities) -> Value {
    let body = encode_body(ProviderApi::GeminiGenerate, request, model, capabilities);
    serde_json::from_str(&body).unwrap()
}

fn contents(messages: Vec<Message>, model: &str) -> Value {
    let request = Request { messages, ..Request::default() };
    body_json(&request, model, &Capabilities::for_model(ProviderApi::GeminiGenerate, model))["contents"].take()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    Arc::new([Tool::new("web.look", "Looks.", schema)].into_iter().collect())
}

fn foreign_call(name: &str, arguments: &str) -> ContentPart {
    let (id, name) = (String::new(), name.to_owned());
    ContentPart::new(PartContent::ToolCall(ToolCall {
        id,
        name,
        arguments: arguments.to_owned(),
        is_cut: false,
    }))
}

fn result(id: &str, name: &str, text: &str, is_error: bool) -> ToolResult {
    let (id, name) = (id.to_owned(), name.to_owned());
    ToolResult { id, name, content: text.into(), is_error }
}

#[test]
fn the_path_names_the_model_as_one_segment() {
    let request = Request::default();
    let capabilities = Capabilities::default();
    let table = [
        ("gemini-3.8-flash", false, "/v1beta/models/gemini-3.8-flash:generateContent"),
        ("models/gemma-3n", true, "/v1beta/models/gemma-3n:streamGenerateContent?alt=sse"),
        ("a/b?c ü", false, "/v1beta/models/a%2Fb%3Fc%20%C3%BC:generateContent"),
    ];
    for (model, streaming, path) in table {
        let api = ProviderApi::GeminiGenerate;
        let outgoing = encode_request(api, &request, model, &capabilities, streaming);
        assert_eq!((outgoing.path.as_str(), outgoing.headers.len()), (path, 0));
    }
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
    let model = "gemini-3.5-flash";
    let capabilities = Capabilities::for_model(ProviderApi::GeminiGenerate, model);
    let lowered_schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "tools": [{"functionDeclarations": [
            {"name": "web_look", "description": "Looks.", "parametersJsonSchema": lowered_schema},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY"}},
        "generationConfig": {
            "temperature": 0.5,
            "maxOutputTokens": 100,
            "stopSequences": ["END"],
            "responseMimeType": "application/json",
            "responseJsonSchema": schema,
        },
    });
    assert_eq!(body_json(&request, model, &capabilities), body);

    let none = Capabilities {
        tools: ToolSupport { native: true, ..ToolSupport::default() },
        ..Capabilities::default()
    };
    body["generationConfig"] = json!({"maxOutputTokens": 100});
    body["toolConfig"]["functionCallingConfig"]["mode"] = json!("AUTO");
    assert_eq!(body_json(&request, model, &none), body);

    let bare = json!({"contents": [], "generationConfig": {}});
    assert_eq!(body_json(&Request::default(), model, &capabilities), bare);
}

#[test]
fn each_choice_has_its_mode() {
    let table = [
        (ToolChoice::Auto, false, "AUTO"),
        (ToolChoice::Auto, true, "VALIDATED"),
        (ToolChoice::None, true, "NONE"),
        (ToolChoice::Required, true, "ANY"),
    ];
    for (tool_choice, validated, mode) in table {
        let request = Request { tools: tools(), tool_choice, ..Request::default() };
        let mut capabilities = Capabilities::for_model(ProviderApi::GeminiGenerate, MODEL);
        capabilities.quirks.gemini.validated_mode = validated;
        let body = body_json(&request, MODEL, &capabilities);
        assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], mode);
    }
}

#[test]
fn the_models_own_parts_go_back_verbatim() {
    let parts = [
        r#"{"text":"Hmm","thought":true,"thoughtSignature":"QQ=="}"#,
        r#"{ "functionCall": {"name":"web_look","args":{"n": 12345678901234567890}, "id":"x1"}, "thoughtSignature":"a+/=" }"#,
        r#"{"functionCall":{"name":"web_look","args":{}}}"#,
    ];
    let mut conversation = Conversation::new();
    conversation.push_user("look").unwrap();
    conversation
        .push_assistant(decode_body(&candidate(&parts.join(","), "STOP")).unwrap().message)
        .unwrap();
    let ids: Vec<_> = conversation.pending_calls().map(|call| call.id.clone()).collect();
    let results = vec![
        result(&ids[1], "web.look", "broken", true),
        result(&ids[0], "web.look", "seen", false),
    ];
    conversation.push_tool_results(results).unwrap();

    let request = Request {
        messages: conversation.messages().to_vec(),
        tools: tools(),
        ..Request::default()
    };
    let capabilities = Capabilities::for_model(ProviderApi::GeminiGenerate, MODEL);
    let body = encode_body(ProviderApi::GeminiGenerate, &request, MODEL, &capabilities);
    assert!(body.contains(&format!("[{}]", parts.join(","))), "{body}");

    let all = contents(conversation.messages().to_vec(), MODEL);
    let expected = json!({"role": "user", "parts": [
        {"functionResponse": {"id": "x1", "name": "web_look", "response": {"result": "seen"}}},
        {"functionResponse": {"name": "web_look", "response": {"error": "broken"}}},
    ]});
    assert_eq!(all[2], expected);
}

#[test]
fn the_first_call_of_another_model_gets_the_placeholder_signature() {
    let native = ProviderBlock {
        api: ProviderApi::GeminiGenerate,
        model: "gemini-3.1-pro-preview".to_owned(),
        json: serde_json::value::to_raw_value(&json!({"thoughtSignature": "theirs"})).unwrap(),
    };
    let thought = ContentPart {
        content: PartContent::Reasoning("hm".to_owned()),
        provider_block: Some(native.clone()),
    };
    let mut first = foreign_call("web.look", r#"{"n":98765432109876543210}"#);
    first.provider_block = Some(native);
    let assistant_parts = vec![
        thought,
        ContentPart::new(PartContent::Text("I look.".to_owned())),
        first,
        foreign_call("web.look", "not JSON"),
        ContentPart::new(PartContent::Other),
    ];
    let mut conversation = Conversation::new();
    for user_text in ["a", "b"] {
        conversation.push_user(user_text).unwrap();
        conversation.push_assistant(AssistantMessage { parts: assistant_parts.clone() }).unwrap();
        conversation.fail_pending("stopped");
    }
    let all = contents(conversation.messages().to_vec(), MODEL);
    let unsigned = contents(conversation.messages().to_vec(), "gemini-2.5-flash");
    for at in [1, 4] {
        let parts = all[at]["parts"].as_array().unwrap();
        assert_eq!(parts.len(), 3);
        assert_eq!(parts[0], json!({"text": "I look."}));
        assert_eq!(parts[1]["thoughtSignature"], "skip_thought_signature_validator");
        assert_eq!(parts[1]["functionCall"]["name"], "web_look");
        let other =
            json!({"functionCall": {"name": "web_look", "args": {"unreadable": "not JSON"}}});
        assert_eq!(parts[2], other);
        let text = unsigned[at].to_string();
        assert!(!text.contains("ignature"), "{text}");
        let expected_response =
            json!({"functionResponse": {"name": "web_look", "response": {"error": "stopped"}}});
        assert_eq!(all[at + 1]["parts"], json!([expected_response, expected_response]));
    }
    let request = Request { messages: conversation.messages().to_vec(), ..Request::default() };
    let capabilities = Capabilities::for_model(ProviderApi::GeminiGenerate, MODEL);
    let body = encode_body(ProviderApi::GeminiGenerate, &request, MODEL, &capabilities);
    assert!(body.contains(r#""args":{"n":98765432109876543210}"#), "{body}");
}

#[test]
fn a_call_after_a_signed_call_gets_no_placeholder_signature() {
    let signed = r#"{"functionCall":{"name":"now","args":{}},"thoughtSignature":"QQ=="}"#;
    let mut assistant = decode_body(&candidate(signed, "STOP")).unwrap().message;
    assistant.parts.push(foreign_call("now", "{}"));
    let all = contents(vec![Message::Assistant(assistant.into())], MODEL);
    let second = json!({"functionCall": {"name": "now", "args": {}}});
    assert_eq!(all[0]["parts"][1], second);
}

#[test]
fn an_answer_of_nothing_is_left_out() {
    let parts = vec![
        ContentPart::new(PartContent::Text(String::new())),
        ContentPart::new(PartContent::Reasoning("hm".to_owned())),
    ];
    let messages = vec![
        Message::User("a".into()),
        Message::Assistant(AssistantMessage { parts }.into()),
        Message::User("b".into()),
    ];
    let all = contents(messages, MODEL);
    assert_eq!(all.as_array().unwrap().len(), 2);
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
    let body =
        body_json(&request, MODEL, &Capabilities::for_model(ProviderApi::GeminiGenerate, MODEL));
    let tool = &body["tools"][0]["functionDeclarations"][0];
    let name = tool["name"].as_str().unwrap();
    assert!(name.len() <= 64, "{name}");
    assert!(name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_'), "{name}");
    assert!(name.chars().all(|it| it.is_ascii_alphanumeric() || "_-".contains(it)), "{name}");
    let schema = tool["parametersJsonSchema"].to_string();
    for keyword in ["$ref", "$defs", "oneOf", "const", "additionalProperties"] {
        assert!(!schema.contains(keyword), "{schema}");
    }
    assert!(schema.contains(r#""x""#), "{schema}");
}
