//! Tests of encoded requests.

use std::sync::Arc;

use innkeeper_toolcall::{Tool, Tools};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::conversation::{
    AssistantMessage, ContentPart, Conversation, Message, PartContent, ToolCall, ToolResult,
};
use crate::provider::codec::chunking::{MODEL, decode_body};
use crate::provider::codec::request_encoding::encode_request;
use crate::provider::{
    Capabilities, ConstraintSupport, InferenceServer, OutputConstraint, ProviderApi, Request,
    RequestQuirks, TokenLimits, ToolChoice, ToolSupport,
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

fn encode_path_and_body(
    request: &Request,
    capabilities: &Capabilities,
    streaming: bool,
) -> (String, String) {
    let api = ProviderApi::OpenAiChat;
    let outgoing = encode_request(api, request, MODEL, capabilities, streaming);
    assert_eq!(outgoing.headers, []);
    (outgoing.path, String::from_utf8(outgoing.body).unwrap())
}

fn body(request: &Request, capabilities: &Capabilities) -> Value {
    serde_json::from_str(&encode_path_and_body(request, capabilities, false).1).unwrap()
}

fn user(text: &str) -> Vec<Message> {
    vec![Message::User(text.into())]
}

fn full_capabilities() -> Capabilities {
    Capabilities {
        tools: ToolSupport { native: true, forced_choice: true, ..ToolSupport::default() },
        temperature: true,
        stop_sequences: true,
        constraints: ConstraintSupport { json_schema: true, gbnf: true, structural_tag: true },
        ..Capabilities::default()
    }
}

fn full_request() -> Request {
    Request {
        system: "Be brief.".to_owned(),
        messages: user("Where?"),
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
fn a_request_has_the_shape_of_chat_completions() {
    let (path, text) = encode_path_and_body(&full_request(), &full_capabilities(), true);
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
fn parameters_that_a_model_does_not_support_are_left_out() {
    let mut request = full_request();
    request.output_constraint = Some(OutputConstraint::JsonSchema(json!({"type": "object"})));
    let least = body(&request, &Capabilities::default());
    let expected = json!({
        "model": MODEL,
        "messages": least["messages"],
        "max_tokens": 50,
        "stream": false,
    });
    assert_eq!(least, expected);
    request.temperature = Some(f64::NAN);
    assert_eq!(body(&request, &full_capabilities()).get("temperature"), None);
    let no_forced = Capabilities {
        tools: ToolSupport { forced_choice: false, ..full_capabilities().tools },
        ..full_capabilities()
    };
    assert_eq!(body(&request, &no_forced).get("tool_choice"), None);
}

#[test]
fn the_tool_choice_is_sent() {
    for (tool_choice, sent) in [
        (ToolChoice::Auto, Value::Null),
        (ToolChoice::None, json!("none")),
        (ToolChoice::Required, json!("required")),
    ] {
        let request = Request { tool_choice, ..full_request() };
        assert_eq!(body(&request, &full_capabilities())["tool_choice"], sent);
        let without = Request { tools: Arc::default(), ..request };
        assert_eq!(body(&without, &full_capabilities()).get("tool_choice"), None);
    }
}

#[test]
fn the_least_of_each_model_is_sent() {
    let quirks = RequestQuirks {
        max_completion_tokens: true,
        reasoning_effort_none: true,
        ..RequestQuirks::default()
    };
    let capabilities = Capabilities {
        tools: ToolSupport { strict: true, ..full_capabilities().tools },
        quirks,
        ..full_capabilities()
    };
    let sent = body(&full_request(), &capabilities);
    assert_eq!(sent["max_completion_tokens"], 50);
    assert_eq!(sent.get("max_tokens"), None);
    assert_eq!(sent["reasoning_effort"], "none");
    assert_eq!(sent["tools"][0]["function"]["strict"], true);
    assert_eq!(sent["tools"][1]["function"].get("strict"), None);
    let without = Request { tools: Arc::default(), max_tokens: None, ..full_request() };
    let sent = body(&without, &capabilities);
    assert_eq!((sent.get("reasoning_effort"), sent.get("max_completion_tokens")), (None, None));
    let capabilities = Capabilities {
        tokens: TokenLimits { default_output: Some(7), ..full_capabilities().tokens },
        ..full_capabilities()
    };
    assert_eq!(body(&without, &capabilities)["max_tokens"], 7);
}

#[test]
fn each_server_gets_the_output_constraint_in_its_own_parameter() {
    let closed = json!({
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "required": ["a"],
        "additionalProperties": false,
    });
    let open = json!({"type": "object", "properties": {"a": {"type": "string"}}});
    let format = |schema: &Value, strict: bool| {
        let named_schema = json!({"name": "answer", "schema": schema, "strict": strict});
        json!({"response_format": {"type": "json_schema", "json_schema": named_schema}})
    };
    let tag = json!({"type": "structural_tag", "format": {"type": "any_text"}});
    let schema = |schema: &Value| OutputConstraint::JsonSchema(schema.clone());
    let gbnf = || OutputConstraint::Gbnf("root ::= \"a\"".to_owned());
    let tagged = || OutputConstraint::StructuralTag(tag.clone());
    for (constraint, server, strict_tools, sent) in [
        (schema(&closed), InferenceServer::Provider, true, format(&closed, true)),
        (schema(&open), InferenceServer::Provider, true, format(&open, false)),
        (schema(&open), InferenceServer::LlamaCpp, false, format(&open, false)),
        (gbnf(), InferenceServer::LlamaCpp, false, json!({"grammar": "root ::= \"a\""})),
        (gbnf(), InferenceServer::Sglang, false, json!({"ebnf": "root ::= \"a\""})),
        (
            gbnf(),
            InferenceServer::Vllm,
            false,
            json!({"structured_outputs": {"grammar": "root ::= \"a\""}}),
        ),
        (
            tagged(),
            InferenceServer::Vllm,
            false,
            json!({"structured_outputs": {"structural_tag": tag.to_string()}}),
        ),
        (tagged(), InferenceServer::Sglang, false, json!({"response_format": tag})),
    ] {
        let request = Request {
            messages: user("?"),
            output_constraint: Some(constraint),
            ..Request::default()
        };
        let capabilities = Capabilities {
            tools: ToolSupport { strict: strict_tools, ..full_capabilities().tools },
            server,
            ..full_capabilities()
        };
        let mut expected = json!({"model": MODEL, "messages": [{"role": "user", "content": "?"}]});
        expected["stream"] = json!(false);
        expected.as_object_mut().unwrap().extend(sent.as_object().unwrap().clone());
        assert_eq!(body(&request, &capabilities), expected);
        let cannot = Capabilities { constraints: ConstraintSupport::default(), ..capabilities };
        assert_eq!(body(&request, &cannot).as_object().unwrap().len(), 3);
    }
}

const THOUGHT_AND_CALL: &str = r#"{"choices":[{"message":{"content":null,"reasoning_content":"Hmm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"},"extra_content":{"google":{"thought_signature":"s","n":1.0}}}]},"finish_reason":"tool_calls"}]}"#;

fn conversation() -> Conversation {
    let mut history = Conversation::new();
    history.push_user("Where?").unwrap();
    history
        .push_assistant(decode_body(ProviderApi::OpenAiChat, THOUGHT_AND_CALL).unwrap().message)
        .unwrap();
    let (id, name, text) = ("c1".to_owned(), "maps.find".to_owned(), "Here.".to_owned());
    history
        .push_tool_results(vec![ToolResult { id, name, content: text.into(), is_error: false }])
        .unwrap();
    history
}

#[test]
fn an_assistant_message_goes_back_to_its_model_verbatim() {
    let request =
        Request { messages: conversation().messages().to_vec(), tools: tools(), ..full_request() };
    let (_, text) = encode_path_and_body(&request, &full_capabilities(), false);
    let assistant_json = r#"{"role":"assistant","content":null,"reasoning_content":"Hmm.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"},"extra_content":{"google":{"thought_signature":"s","n":1.0}}}]}"#;
    let result = r#"{"role":"tool","content":"Here.","tool_call_id":"c1"}"#;
    assert!(text.contains(&format!("{assistant_json},{result}")), "{text}");
}

#[test]
fn to_another_model_go_its_calls_and_no_thoughts() {
    let mut messages = conversation().messages().to_vec();
    let Message::Assistant(answer) = &mut messages[1] else { panic!("no answer") };
    let answer = Arc::make_mut(answer);
    for part in &mut answer.parts {
        part.provider_block.as_mut().unwrap().model = "another".to_owned();
        if let PartContent::ToolCall(call) = &mut part.content {
            call.name = "maps.find".to_owned();
        }
    }
    answer.parts.insert(1, ContentPart::new(PartContent::Text("Let me look.".to_owned())));
    let request = Request { messages, ..full_request() };
    let (_, text) = encode_path_and_body(&request, &full_capabilities(), false);
    let assistant_json = r#"{"role":"assistant","content":"Let me look.","tool_calls":[{"id":"c1","type":"function","function":{"name":"maps_find","arguments":"{\"n\":12345678901234567890123}"}}]}"#;
    assert!(text.contains(assistant_json), "{text}");
}

#[test]
fn parts_of_a_content_go_back_as_parts() {
    let message = r#"{"choices":[{"message":{"content":[{"type":"thinking","thinking":"Hmm."},{"type":"text","text":"So."}]}}]}"#;
    let assistant = decode_body(ProviderApi::OpenAiChat, message).unwrap().message;
    let request =
        Request { messages: vec![Message::Assistant(assistant.into())], ..Request::default() };
    let expected = json!([{
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": [{"type": "text", "text": "Hmm."}]},
            {"type": "text", "text": "So."},
        ],
    }]);
    assert_eq!(body(&request, &full_capabilities())["messages"], expected);
}

#[test]
fn mistral_gets_ids_of_nine_letters_and_digits_that_keep_results_with_their_calls() {
    let call = |id: &str| {
        ContentPart::new(PartContent::ToolCall(ToolCall {
            id: id.to_owned(),
            name: "maps.find".to_owned(),
            arguments: "{}".to_owned(),
            is_cut: false,
        }))
    };
    let result = |id: &str| ToolResult {
        id: id.to_owned(),
        name: "maps.find".to_owned(),
        content: "x".into(),
        is_error: false,
    };
    let ids = ["call_PTLP8xhu3uwZk4l3nlnrrJha", "call_1", "abcDEF123", "functions.now:0"];
    let parts = ids.map(call).to_vec();
    let messages = vec![
        Message::User("Find.".into()),
        Message::Assistant(AssistantMessage { parts }.into()),
        Message::ToolResults(ids.map(result).to_vec().into()),
    ];
    let request = Request { messages, tools: tools(), ..Request::default() };
    let capabilities = Capabilities::for_model(ProviderApi::OpenAiChat, "mistral-large-latest");
    let body = body(&request, &capabilities);
    let calls = body["messages"][1]["tool_calls"].as_array().unwrap();
    let sent: Vec<&str> = calls.iter().map(|call| call["id"].as_str().unwrap()).collect();
    let results = body["messages"].as_array().unwrap()[2..].iter();
    let answered: Vec<&str> = results.map(|it| it["tool_call_id"].as_str().unwrap()).collect();
    assert_eq!(sent, answered);
    assert_eq!(sent[2], "abcDEF123");
    let is_short = |id: &&str| id.len() == 9 && id.bytes().all(|it| it.is_ascii_alphanumeric());
    assert!(sent.iter().all(is_short), "{sent:?}");
    let unique: std::collections::BTreeSet<&str> = sent.iter().copied().collect();
    assert_eq!(unique.len(), ids.len());
}

#[test]
fn a_user_message_after_results_is_separated_from_them_where_models_need_it() {
    let mut history = conversation();
    history.fail_pending("stopped");
    let mut messages = history.messages().to_vec();
    let last =
        messages.iter().rposition(|message| matches!(message, Message::ToolResults(_))).unwrap();
    messages.truncate(last + 1);
    messages.extend(user("And now?"));
    let request = Request { messages, ..full_request() };
    let roles = |capabilities: &Capabilities| -> Vec<String> {
        let sent = body(&request, capabilities);
        let roles = sent["messages"].as_array().unwrap().iter();
        roles.map(|message| message["role"].as_str().unwrap().to_owned()).collect()
    };
    let apart = roles(&full_capabilities());
    assert_eq!(apart[apart.len() - 3..], ["tool", "assistant", "user"]);
    let quirks = RequestQuirks { max_completion_tokens: true, ..RequestQuirks::default() };
    let openai = roles(&Capabilities { quirks, ..full_capabilities() });
    assert_eq!(openai[openai.len() - 2..], ["tool", "user"]);
}

#[test]
fn arguments_that_are_no_object_do_not_spoil_a_conversation() {
    for (original, sent) in [
        (r#"{"a": 1.00}"#, r#"{"a": 1.00}"#),
        ("", "{}"),
        (r#"{"a":"#, r#"{"unreadable":"{\"a\":"}"#),
        ("[1]", r#"{"unreadable":"[1]"}"#),
    ] {
        let arguments = serde_json::to_string(original).unwrap();
        let message = format!(
            r#"{{"choices":[{{"message":{{"tool_calls":[{{"id":"c","function":{{"name":"f","arguments":{arguments}}}}}]}},"finish_reason":"length"}}]}}"#
        );
        let assistant = decode_body(ProviderApi::OpenAiChat, &message).unwrap().message;
        let request =
            Request { messages: vec![Message::Assistant(assistant.into())], ..Request::default() };
        let body = body(&request, &full_capabilities());
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
            ContentPart::new(PartContent::ToolCall(ToolCall { id, name, arguments: "{}".to_owned(), is_cut: false }))
        };
        let answer = AssistantMessage { parts: names.iter().map(call).collect() };
        let request = Request { tools, messages: vec![Message::Assistant(answer.into())], ..Request::default() };
        let body = body(&request, &full_capabilities());
        let offered = body["tools"].as_array().unwrap().iter();
        let called = body["messages"][0]["tool_calls"].as_array().unwrap().iter();
        for name in offered.chain(called).map(|it| it["function"]["name"].as_str().unwrap()) {
            prop_assert!((1..=64).contains(&name.len()));
            prop_assert!(name.bytes().all(|it| it.is_ascii_alphanumeric() || b"_-".contains(&it)));
        }
    }
}
