//! Requests as they are sent.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::{Answer, Conversation, Message, Part, Said, ToolCall, ToolResult};
use crate::provider::codec::cuts::{MODEL, whole};
use crate::provider::codec::{Asking, encode};
use crate::provider::offer::Offer;
use crate::provider::{
    Capabilities, Choice, Constraint, Constraints, Request, Sends, Server, Wire,
};

fn tools() -> Arc<Tools> {
    let schema = json!({
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "additionalProperties": {"type": "string"}});
    Arc::new(
        [Tool::new("maps.find", "Finds a place.", schema), Tool::new("maps.tag", "", open)]
            .into_iter()
            .collect(),
    )
}

fn sent(request: &Request, can: &Capabilities, streaming: bool) -> (String, String) {
    let offer = Offer::new(Arc::clone(&request.tools), Wire::OpenAiChat, can.strict_tools);
    let asking = Asking { request, offer: &offer, model: MODEL, can, streaming };
    let outgoing = encode(Wire::OpenAiChat, asking).unwrap();
    assert_eq!(outgoing.headers, []);
    (outgoing.path, String::from_utf8(outgoing.body).unwrap())
}

fn body(request: &Request, can: &Capabilities) -> Value {
    serde_json::from_str(&sent(request, can, false).1).unwrap()
}

fn user(text: &str) -> Vec<Message> {
    vec![Message::User(text.into())]
}

fn able() -> Capabilities {
    Capabilities {
        native_tools: true,
        temperature: true,
        stop_sequences: true,
        forced_choice: true,
        constraints: Constraints { json_schema: true, gbnf: true, structural_tag: true },
        ..Capabilities::default()
    }
}

fn full() -> Request {
    Request {
        system: "Be brief.".to_owned(),
        messages: user("Where?"),
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
fn a_request_has_the_shape_of_chat_completions() {
    let (path, text) = sent(&full(), &able(), true);
    assert_eq!(path, "/chat/completions");
    let find = json!({
        "name": "maps_find",
        "description": "Finds a place.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": false,
        },
    });
    let open =
        json!({"type": "object", "additionalProperties": {"type": "string"}, "properties": {}});
    let sent: Value = serde_json::from_str(&text).unwrap();
    let mut tag = sent["tools"][1]["function"].clone();
    tag["parameters"]["properties"] = json!({});
    assert_eq!(tag, json!({"name": "maps_tag", "parameters": open}));
    let expected = json!({
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "Where?"},
        ],
        "tools": [{"type": "function", "function": find}, sent["tools"][1]],
        "tool_choice": "required",
        "temperature": 0.0,
        "max_tokens": 50,
        "stop": ["END"],
        "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(sent, expected);
}

#[test]
fn what_a_model_does_not_take_is_left_out() {
    let mut request = full();
    request.constraint = Some(Constraint::JsonSchema(json!({"type": "object"})));
    let least = body(&request, &Capabilities::default());
    let expected = json!({
        "model": MODEL,
        "messages": least["messages"],
        "max_tokens": 50,
        "stream": false,
    });
    assert_eq!(least, expected);
    request.temperature = Some(f64::NAN);
    assert_eq!(body(&request, &able()).get("temperature"), None);
    let no_forced = Capabilities { forced_choice: false, ..able() };
    assert_eq!(body(&request, &no_forced).get("tool_choice"), None);
}

#[test]
fn tools_are_chosen_as_asked() {
    for (choice, sent) in [
        (Choice::Auto, Value::Null),
        (Choice::None, json!("none")),
        (Choice::Required, json!("required")),
    ] {
        let request = Request { choice, ..full() };
        assert_eq!(body(&request, &able())["tool_choice"], sent);
        let without = Request { tools: Arc::default(), ..request };
        assert_eq!(body(&without, &able()).get("tool_choice"), None);
    }
}

#[test]
fn the_least_of_each_model_is_sent() {
    let sends = Sends { max_completion_tokens: true, effort_none: true, ..Sends::default() };
    let can = Capabilities { sends, strict_tools: true, ..able() };
    let sent = body(&full(), &can);
    assert_eq!(sent["max_completion_tokens"], 50);
    assert_eq!(sent.get("max_tokens"), None);
    assert_eq!(sent["reasoning_effort"], "none");
    assert_eq!(sent["tools"][0]["function"]["strict"], true);
    assert_eq!(sent["tools"][1]["function"].get("strict"), None);
    let without = Request { tools: Arc::default(), max_tokens: None, ..full() };
    let sent = body(&without, &can);
    assert_eq!((sent.get("reasoning_effort"), sent.get("max_completion_tokens")), (None, None));
    let can = Capabilities { default_max_tokens: Some(7), ..able() };
    assert_eq!(body(&without, &can)["max_tokens"], 7);
}

#[test]
fn each_server_holds_the_answer_in_its_own_words() {
    let closed = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = |schema: &Value, strict: bool| {
        let named = json!({"name": "answer", "schema": schema, "strict": strict});
        json!({"response_format": {"type": "json_schema", "json_schema": named}})
    };
    let tag = json!({"type": "structural_tag", "format": {"type": "any_text"}});
    let schema = |schema: &Value| Constraint::JsonSchema(schema.clone());
    let gbnf = || Constraint::Gbnf("root ::= \"a\"".to_owned());
    let tagged = || Constraint::StructuralTag(tag.clone());
    for (constraint, server, strict_tools, sent) in [
        (schema(&closed), Server::Provider, true, format(&closed, true)),
        (schema(&open), Server::Provider, true, format(&open, false)),
        (schema(&open), Server::LlamaCpp, false, format(&open, false)),
        (gbnf(), Server::LlamaCpp, false, json!({"grammar": "root ::= \"a\""})),
        (gbnf(), Server::Sglang, false, json!({"ebnf": "root ::= \"a\""})),
        (gbnf(), Server::Vllm, false, json!({"structured_outputs": {"grammar": "root ::= \"a\""}})),
        (
            tagged(),
            Server::Vllm,
            false,
            json!({"structured_outputs": {"structural_tag": tag.to_string()}}),
        ),
        (tagged(), Server::Sglang, false, json!({"response_format": tag})),
    ] {
        let request =
            Request { messages: user("?"), constraint: Some(constraint), ..Request::default() };
        let can = Capabilities { server, strict_tools, ..able() };
        let mut expected = json!({"model": MODEL, "messages": [{"role": "user", "content": "?"}]});
        expected["stream"] = json!(false);
        expected.as_object_mut().unwrap().extend(sent.as_object().unwrap().clone());
        assert_eq!(body(&request, &can), expected);
        let cannot = Capabilities { constraints: Constraints::default(), ..can };
        assert_eq!(body(&request, &cannot).as_object().unwrap().len(), 3);
    }
}

const THOUGHT_AND_CALL: &str = r#"{"choices":[{"message":{"content":null,"reasoning_content":"Hmm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"},"extra_content":{"google":{"thought_signature":"s","n":1.0}}}]},"finish_reason":"tool_calls"}]}"#;

fn talk() -> Conversation {
    let mut talk = Conversation::new();
    talk.user("Where?").unwrap();
    talk.answer(whole(Wire::OpenAiChat, THOUGHT_AND_CALL).unwrap().answer).unwrap();
    let (id, name, text) = ("c1".to_owned(), "maps.find".to_owned(), "Here.".to_owned());
    talk.results(vec![ToolResult { id, name, text, is_error: false }]).unwrap();
    talk
}

#[test]
fn an_answer_goes_back_to_its_model_in_its_own_words() {
    let request = Request { messages: talk().messages().to_vec(), tools: tools(), ..full() };
    let (_, text) = sent(&request, &able(), false);
    let answer = r#"{"role":"assistant","content":null,"reasoning_content":"Hmm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"},"extra_content":{"google":{"thought_signature":"s","n":1.0}}}]}"#;
    let result = r#"{"role":"tool","content":"Here.","tool_call_id":"c1"}"#;
    assert!(text.contains(&format!("{answer},{result}")), "{text}");
}

#[test]
fn to_another_model_go_its_calls_and_no_thoughts() {
    let mut messages = talk().messages().to_vec();
    let Message::Answer(answer) = &mut messages[1] else { panic!("no answer") };
    let answer = Arc::make_mut(answer);
    for part in &mut answer.parts {
        part.native.as_mut().unwrap().model = "another".to_owned();
        if let Said::Call(call) = &mut part.said {
            call.name = "maps.find".to_owned();
        }
    }
    answer.parts.insert(1, Part::new(Said::Text("Let me look.".to_owned())));
    let request = Request { messages, ..full() };
    let (_, text) = sent(&request, &able(), false);
    let answer = r#"{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"}}]}"#;
    assert!(text.contains(answer), "{text}");
}

#[test]
fn parts_of_a_content_go_back_as_parts() {
    let message = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":"Hmm."},{"type":"text","text":"So."}]}}]}"#;
    let answer = whole(Wire::OpenAiChat, message).unwrap().answer;
    let request = Request { messages: vec![Message::Answer(answer.into())], ..Request::default() };
    let expected = json!([{
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm."}]},
            {"type": "text", "text": "So."},
        ],
    }]);
    assert_eq!(body(&request, &able())["messages"], expected);
}

#[test]
fn what_a_person_says_right_after_results_stands_apart_from_them_where_models_want_it() {
    let mut talk = talk();
    talk.close("stopped");
    let mut messages = talk.messages().to_vec();
    let last = messages.iter().rposition(|it| matches!(it, Message::Results(_))).unwrap();
    messages.truncate(last + 1);
    messages.extend(user("And now?"));
    let request = Request { messages, ..full() };
    let roles = |can: &Capabilities| -> Vec<String> {
        let sent = body(&request, can);
        let roles = sent["messages"].as_array().unwrap().iter();
        roles.map(|it| it["role"].as_str().unwrap().to_owned()).collect()
    };
    let apart = roles(&able());
    assert_eq!(apart[apart.len() - 3..], ["tool", "assistant", "user"]);
    let sends = Sends { max_completion_tokens: true, ..Sends::default() };
    let openai = roles(&Capabilities { sends, ..able() });
    assert_eq!(openai[openai.len() - 2..], ["tool", "user"]);
}

#[test]
fn arguments_that_are_no_object_do_not_spoil_a_conversation() {
    for (said, sent) in [
        (r#"{"a": 1.00}"#, r#"{"a": 1.00}"#),
        ("", "{}"),
        (r#"{"a":"#, r#"{"unreadable":"{\"a\":"}"#),
        ("[1]", r#"{"unreadable":"[1]"}"#),
    ] {
        let arguments = serde_json::to_string(said).unwrap();
        let message = format!(
            r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":{arguments}}}}}]}},"finish_reason":"length"}}]}}"#
        );
        let answer = whole(Wire::OpenAiChat, &message).unwrap().answer;
        let request =
            Request { messages: vec![Message::Answer(answer.into())], ..Request::default() };
        let body = body(&request, &able());
        assert_eq!(body["messages"][0]["tool_calls"][0]["function"]["arguments"], sent);
    }
}

proptest! {
    /// Proves: G34
    #[test]
    fn every_name_that_is_sent_is_one_that_is_taken(names in proptest::collection::vec(".{0,20}|.{300}", 1..5)) {
        let list = names.iter().map(|name| Tool::new(name.as_str(), "", json!({"type": "object"})));
        let tools: Arc<Tools> = Arc::new(list.collect());
        let call = |name: &String| {
            let (id, name) = (name.clone(), format!("{name}, gone"));
            Part::new(Said::Call(ToolCall { id, name, arguments: "{}".to_owned() }))
        };
        let answer = Answer { parts: names.iter().map(call).collect() };
        let request = Request { tools, messages: vec![Message::Answer(answer.into())], ..Request::default() };
        let body = body(&request, &able());
        let offered = body["tools"].as_array().unwrap().iter();
        let called = body["messages"][0]["tool_calls"].as_array().unwrap().iter();
        for name in offered.chain(called).map(|it| it["function"]["name"].as_str().unwrap()) {
            prop_assert!((1..=64).contains(&name.len()));
            prop_assert!(name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)));
        }
    }
}
