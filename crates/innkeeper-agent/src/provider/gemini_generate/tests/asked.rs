//! What is sent.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use serde_json::{Value, json};

use super::*;
use crate::conversation::{Answer, Conversation, Message, Native, ToolResult};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Choice, Constraint, Request, Wire};

fn sent(request: &Request, model: &str, can: &Capabilities) -> Value {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::GeminiGenerate, false);
    let asking = Asking { request, offer: &offer, model, can, streaming: false };
    serde_json::from_slice(&encode(asking).unwrap().body).unwrap()
}

fn contents(messages: Vec<Message>, model: &str) -> Value {
    let request = Request { messages, ..Request::default() };
    sent(&request, model, &Capabilities::of(Wire::GeminiGenerate, model))["contents"].take()
}

fn tools() -> Arc<Tools> {
    let schema = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    Arc::new([Tool::new("web.look", "Looks.", schema)].into_iter().collect())
}

fn foreign(name: &str, arguments: &str) -> Part {
    let (id, name) = (String::new(), name.to_owned());
    Part::new(Said::Call(ToolCall { id, name, arguments: arguments.to_owned() }))
}

fn result(id: &str, name: &str, text: &str, is_error: bool) -> ToolResult {
    let (id, name, text) = (id.to_owned(), name.to_owned(), text.to_owned());
    ToolResult { id, name, text, is_error }
}

#[test]
fn the_path_names_the_model_as_one_segment() {
    let request = Request::default();
    let offer = Offer::new(Arc::default(), Wire::GeminiGenerate, false);
    let can = Capabilities::default();
    let table = [
        ("gemini-3.8-flash", false, "/v1beta/models/gemini-3.8-flash:generateContent"),
        ("models/gemma-3n", true, "/v1beta/models/gemma-3n:streamGenerateContent?alt=sse"),
        ("a/b?c ü", false, "/v1beta/models/a%2Fb%3Fc%20%C3%BC:generateContent"),
    ];
    for (model, streaming, path) in table {
        let asking = Asking { request: &request, offer: &offer, model, can: &can, streaming };
        let outgoing = encode(asking).unwrap();
        assert_eq!((outgoing.path.as_str(), outgoing.headers.len()), (path, 0));
    }
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
    let model = "gemini-3.8-flash";
    let can = Capabilities::of(Wire::GeminiGenerate, model);
    let fitted = json!({"type": "object", "properties": {"at": {"type": "string"}}});
    let mut body = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [{"role": "user", "parts": [{"text": "hello"}]}],
        "tools": [{"functionDeclarations": [
            {"name": "web_look", "description": "Looks.", "parametersJsonSchema": fitted},
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
    assert_eq!(sent(&request, model, &can), body);

    let none = Capabilities { native_tools: true, ..Capabilities::default() };
    body["generationConfig"] = json!({"maxOutputTokens": 100});
    body["toolConfig"]["functionCallingConfig"]["mode"] = json!("AUTO");
    assert_eq!(sent(&request, model, &none), body);

    let bare = json!({"contents": [], "generationConfig": {}});
    assert_eq!(sent(&Request::default(), model, &can), bare);
}

#[test]
fn each_choice_has_its_mode() {
    let table = [
        (Choice::Auto, false, "AUTO"),
        (Choice::Auto, true, "VALIDATED"),
        (Choice::None, true, "NONE"),
        (Choice::Required, true, "ANY"),
    ];
    for (choice, validated, mode) in table {
        let request = Request { tools: tools(), choice, ..Request::default() };
        let mut can = Capabilities::of(Wire::GeminiGenerate, MODEL);
        can.sends.validated_mode = validated;
        let body = sent(&request, MODEL, &can);
        assert_eq!(body["toolConfig"]["functionCallingConfig"]["mode"], mode);
    }
}

#[test]
fn what_the_model_said_goes_back_word_for_word() {
    let parts = [
        r#"{"text":"Hmm","thought":true,"thoughtSignature":"QQ=="}"#,
        r#"{ "functionCall": {"name":"web_look","args":{"n": 12345678901234567890}, "id":"x1"}, "thoughtSignature":"a+/=" }"#,
        r#"{"functionCall":{"name":"web_look","args":{}}}"#,
    ];
    let mut talk = Conversation::new();
    talk.user("look").unwrap();
    talk.answer(whole(&candidate(&parts.join(","), "STOP")).unwrap().answer).unwrap();
    let ids: Vec<_> = talk.open_calls().map(|call| call.id.clone()).collect();
    let results = vec![
        result(&ids[1], "web.look", "broken", true),
        result(&ids[0], "web.look", "seen", false),
    ];
    talk.results(results).unwrap();

    let request = Request { messages: talk.messages().to_vec(), ..Request::default() };
    let offer = Offer::new(tools(), Wire::GeminiGenerate, false);
    let can = Capabilities::of(Wire::GeminiGenerate, MODEL);
    let asking =
        Asking { request: &request, offer: &offer, model: MODEL, can: &can, streaming: true };
    let body = String::from_utf8(encode(asking).unwrap().body).unwrap();
    assert!(body.contains(&format!("[{}]", parts.join(","))), "{body}");

    let all = contents(talk.messages().to_vec(), MODEL);
    let answered = json!({"role": "user", "parts": [
        {"functionResponse": {"id": "x1", "name": "web_look", "response": {"result": "seen"}}},
        {"functionResponse": {"name": "web_look", "response": {"error": "broken"}}},
    ]});
    assert_eq!(all[2], answered);
}

#[test]
fn of_calls_that_another_model_made_the_first_gets_the_word_for_a_signature() {
    let native = Native {
        wire: Wire::GeminiGenerate,
        model: "gemini-3.1-pro-preview".to_owned(),
        block: serde_json::value::to_raw_value(&json!({"thoughtSignature": "theirs"})).unwrap(),
    };
    let thought = Part { said: Said::Reasoning("hm".to_owned()), native: Some(native.clone()) };
    let mut first = foreign("web.look", r#"{"n":98765432109876543210}"#);
    first.native = Some(native);
    let step = vec![
        thought,
        Part::new(Said::Text("I look.".to_owned())),
        first,
        foreign("web.look", "not JSON"),
        Part::new(Said::Other),
    ];
    let mut talk = Conversation::new();
    for turn in ["a", "b"] {
        talk.user(turn).unwrap();
        talk.answer(Answer { parts: step.clone() }).unwrap();
        talk.close("stopped");
    }
    let all = contents(talk.messages().to_vec(), MODEL);
    let unsigned = contents(talk.messages().to_vec(), "gemini-2.5-flash");
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
        let told =
            json!({"functionResponse": {"name": "web_look", "response": {"error": "stopped"}}});
        assert_eq!(all[at + 1]["parts"], json!([told, told]));
    }
    let request = Request { messages: talk.messages().to_vec(), ..Request::default() };
    let offer = Offer::new(Arc::default(), Wire::GeminiGenerate, false);
    let can = Capabilities::of(Wire::GeminiGenerate, MODEL);
    let asking =
        Asking { request: &request, offer: &offer, model: MODEL, can: &can, streaming: true };
    let body = String::from_utf8(encode(asking).unwrap().body).unwrap();
    assert!(body.contains(r#""args":{"n":98765432109876543210}"#), "{body}");
}

#[test]
fn a_call_behind_one_that_is_signed_gets_no_word_for_a_signature() {
    let signed = r#"{"functionCall":{"name":"now","args":{}},"thoughtSignature":"QQ=="}"#;
    let mut answer = whole(&candidate(signed, "STOP")).unwrap().answer;
    answer.parts.push(foreign("now", "{}"));
    let all = contents(vec![Message::Answer(answer.into())], MODEL);
    let second = json!({"functionCall": {"name": "now", "args": {}}});
    assert_eq!(all[0]["parts"][1], second);
}

#[test]
fn an_answer_of_nothing_is_left_out() {
    let parts =
        vec![Part::new(Said::Text(String::new())), Part::new(Said::Reasoning("hm".to_owned()))];
    let messages = vec![
        Message::User("a".into()),
        Message::Answer(Answer { parts }.into()),
        Message::User("b".into()),
    ];
    let all = contents(messages, MODEL);
    assert_eq!(all.as_array().unwrap().len(), 2);
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
    let body = sent(&request, MODEL, &Capabilities::of(Wire::GeminiGenerate, MODEL));
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
