//! Messages, requests, responses and results of runs are written as JSON and read back.

mod run_results;

use std::sync::Arc;

use innkeeper_agent::content::{
    Content, ContentBlock, EmbeddedResource, MediaContent, RawJson, ResourceContents, ResourceLink,
    StructuredContent,
};
use innkeeper_agent::conversation::{
    AssistantMessage, ContentPart, Conversation, Message, PartContent, ProviderApi, ProviderBlock,
    ToolCall, ToolResult,
};
use innkeeper_agent::provider::{
    Cost, FinishReason, OutputConstraint, Request, Response, ToolChoice, Usage,
};
use innkeeper_toolcall::Tool;
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;
use serde_json::value::RawValue;

fn raw(text: &str) -> Box<RawValue> {
    serde_json::from_str(text).unwrap()
}

/// JSON whose text a parse into numbers and maps would change.
fn raw_json() -> impl Strategy<Value = Box<RawValue>> {
    let texts = [
        r#"{"n": 1.50, "n": 123456789012345678901234567890}"#,
        "[ 1e400 ,\t-0 ]",
        r#"{"text":"\u00e4\/"}"#,
        "null",
    ];
    prop::sample::select(texts.to_vec()).prop_map(raw)
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z\"\\\\\n ]{0,12}", any::<String>()]
}

fn media() -> impl Strategy<Value = MediaContent> {
    (option::of(text()), text())
        .prop_map(|(mime_type, data)| MediaContent { mime_type, data: data.into() })
}

fn block() -> impl Strategy<Value = ContentBlock> {
    let contents = prop_oneof![
        text().prop_map(|text| ResourceContents::Text(text.into())),
        text().prop_map(|data| ResourceContents::Blob(data.into())),
    ];
    prop_oneof![
        text().prop_map(ContentBlock::from),
        media().prop_map(ContentBlock::Image),
        media().prop_map(ContentBlock::Audio),
        (text(), option::of(text()), contents).prop_map(|(uri, mime_type, contents)| {
            ContentBlock::Resource(EmbeddedResource { uri, mime_type, contents })
        }),
        (option::of(text()), option::of(text()), option::of(text())).prop_map(
            |(uri, name, mime_type)| {
                ContentBlock::ResourceLink(ResourceLink { uri, name, mime_type })
            }
        ),
        (raw_json(), any::<bool>()).prop_map(|(json, is_repeated)| {
            let json = RawJson::from(&*json);
            ContentBlock::Structured(StructuredContent { json, is_repeated })
        }),
        raw_json().prop_map(|json| ContentBlock::Other(RawJson::from(&*json))),
    ]
}

fn content() -> impl Strategy<Value = Content> {
    vec(block(), 0..4).prop_map(Content::from)
}

fn part() -> impl Strategy<Value = ContentPart> {
    let content = prop_oneof![
        text().prop_map(PartContent::Text),
        text().prop_map(PartContent::Reasoning),
        (text(), text(), text()).prop_map(|(id, name, arguments)| {
            PartContent::ToolCall(ToolCall { id, name, arguments, is_cut: false })
        }),
        Just(PartContent::Other),
    ];
    let api = prop::sample::select(ProviderApi::ALL.to_vec());
    let native = option::of((api, text(), raw_json()));
    (content, native).prop_map(|(content, native)| ContentPart {
        content,
        provider_block: native.map(|(api, model, json)| ProviderBlock { api, model, json }),
    })
}

fn assistant() -> impl Strategy<Value = AssistantMessage> {
    vec(part(), 0..4).prop_map(|parts| AssistantMessage { parts })
}

fn message() -> impl Strategy<Value = Message> {
    let result = (text(), text(), content(), any::<bool>())
        .prop_map(|(id, name, content, is_error)| ToolResult { id, name, content, is_error });
    prop_oneof![
        content().prop_map(Message::User),
        assistant().prop_map(|message| Message::Assistant(message.into())),
        vec(result, 0..3).prop_map(|results| Message::ToolResults(results.into())),
    ]
}

prop_compose! {
    fn request()(
        system in text(),
        messages in vec(message(), 0..4),
        tools in vec((text(), text()), 0..3),
        tool_choice in prop::sample::select(
            vec![ToolChoice::Auto, ToolChoice::None, ToolChoice::Required]
        ),
        temperature in option::of(prop::num::f64::NORMAL),
        numbers in (option::of(any::<u32>()), option::of(any::<u32>())),
        stop_sequences in vec(text(), 0..3),
        output_constraint in option::of(prop_oneof![
            text().prop_map(|key| OutputConstraint::JsonSchema(json!({key: [1.5, -2, null]}))),
            text().prop_map(OutputConstraint::Gbnf),
            text().prop_map(|key| OutputConstraint::StructuralTag(json!({key: true}))),
        ]),
        prompt_caching in any::<bool>(),
    ) -> Request {
        let schema = json!({"type": "object", "minimum": 0.1});
        let tools = tools.into_iter().map(|(name, text)| Tool::new(name, text, schema.clone()));
        Request {
            system,
            messages,
            tools: Arc::new(tools.collect()),
            plain_tools: false,
            tool_choice,
            temperature,
            max_tokens: numbers.0,
            context_tokens: numbers.1,
            stop_sequences,
            output_constraint,
            prompt_caching,
            iteration: 0,
        }
    }
}

fn finish_reason() -> impl Strategy<Value = FinishReason> {
    let known = vec![
        FinishReason::Stop,
        FinishReason::ToolCalls,
        FinishReason::Length,
        FinishReason::ContextFull,
        FinishReason::Refusal,
        FinishReason::MalformedToolCall,
        FinishReason::Paused,
    ];
    prop_oneof![prop::sample::select(known), text().prop_map(FinishReason::Other)]
}

prop_compose! {
    fn usage()(
        counts in any::<[u64; 4]>(),
        cost in option::of((0..9_000_u32, 0..1_000_000_u32)),
    ) -> Usage {
        Usage {
            prompt_tokens: counts[0],
            completion_tokens: counts[1],
            cached_tokens: counts[2],
            reasoning_tokens: counts[3],
            cost: cost.and_then(|(whole, part)| {
                Cost::from_json_number(&format!("{whole}.{part:06}"))
            }),
        }
    }
}

prop_compose! {
    fn response()(
        message in assistant(),
        finish_reason in finish_reason(),
        usage in option::of(usage()),
        model in option::of(text()),
    ) -> Response {
        Response { message, finish_reason, usage, model }
    }
}

fn read_back<T: Serialize + DeserializeOwned>(value: &T) -> T {
    serde_json::from_str(&serde_json::to_string(value).unwrap()).unwrap()
}

proptest! {
    #[test]
    fn every_message_is_read_back_equal(message in message()) {
        prop_assert_eq!(read_back(&message), message);
    }

    #[test]
    fn every_request_is_read_back_equal(request in request()) {
        prop_assert_eq!(read_back(&request), request);
    }

    #[test]
    fn every_response_is_read_back_equal(response in response()) {
        prop_assert_eq!(read_back(&response), response);
    }

    #[test]
    fn every_conversation_is_read_back_equal(exchanges in vec((content(), assistant()), 0..4)) {
        let mut conversation = Conversation::new();
        for (content, message) in exchanges {
            conversation.push_user(content).unwrap();
            conversation.push_assistant(message).unwrap();
            conversation.fail_pending("stopped");
        }
        prop_assert_eq!(read_back(&conversation), conversation);
    }
}

#[test]
fn a_stored_conversation_has_a_version_and_an_unknown_version_is_refused_by_name() {
    let mut conversation = Conversation::new();
    conversation.push_user("Hi.").unwrap();
    let stored = serde_json::to_string(&conversation).unwrap();
    assert_eq!(stored, r#"{"version":1,"messages":[{"user":[{"text":"Hi."}]}]}"#);
    for unknown in [
        r#"{"version":2,"messages":[]}"#,
        r#"{"messages":{"of":"another form"},"version":2,"more":1}"#,
    ] {
        let error = serde_json::from_str::<Conversation>(unknown).unwrap_err().to_string();
        assert!(error.contains("unknown version `2`") && error.contains("`1`"), "{error}");
    }
}

#[test]
fn a_stored_conversation_with_messages_in_an_invalid_order_is_refused() {
    let call = r#"{"content":{"tool_call":{"id":"a","name":"t","arguments":"{}"}}}"#;
    let assistant = format!(r#"{{"assistant":{{"parts":[{call}]}}}}"#);
    let results = r#"{"tool_results":[{"id":"b","name":"t","content":[],"is_error":false}]}"#;
    for (messages, expected) in [
        (format!(r#"{assistant},{{"user":[]}}"#), "message 1: call `a` of `t` has no result"),
        (results.to_owned(), "message 0: result for call `b`"),
        (r#"{"tool_results":[]}"#.to_owned(), "message 0: the list of tool results is empty"),
        (format!(r#"{{"assistant":{{"parts":[{call},{call}]}}}}"#), "message 0: call id `a`"),
    ] {
        let stored = format!(r#"{{"version":1,"messages":[{messages}]}}"#);
        let error = serde_json::from_str::<Conversation>(&stored).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn a_stored_conversation_is_an_object_without_unknown_members() {
    let read = |text: &str| serde_json::from_str::<Conversation>(text);
    assert!(read(r#"{"messages":[],"version":1}"#).is_ok());
    for text in ["[1,[]]", r#"{"version":1}"#, r#"{"version":1,"version":1,"messages":[]}"#] {
        assert!(read(text).is_err(), "{text}");
    }
    let user = r#"{"user":[{"text":"a"}]}"#;
    let part = r#""content":{"tool_call":{"id":"1","name":"t","arguments":"{}"}}"#;
    let block = r#""provider_block":{"api":"anthropic","model":"m","json":{"future":1}}"#;
    let result = r#""id":"1","name":"t","is_error":false"#;
    let stored = format!(
        r#"{{"version":1,"messages":[{user},{{"assistant":{{"parts":[{{{part},{block}}}]}}}},
        {{"tool_results":[{{{result},"content":[{{"image":{{"data":""}}}},
        {{"resource":{{"uri":"","contents":{{"text":""}}}}}},{{"resource_link":{{"uri":""}}}},
        {{"structured":{{"json":{{"future":1}},"is_repeated":true}}}}]}}]}}]}}"#
    );
    assert_eq!(read(&stored).unwrap().messages().len(), 3);
    for place in [
        r#"{"version""#,
        r#"{"parts""#,
        r#"{"content""#,
        r#"{"id":"1","name":"t","arguments""#,
        r#"{"api""#,
        r#"{"id":"1","name":"t","is_error""#,
        r#"{"data""#,
        r#"{"uri":"","contents""#,
        r#"{"uri":""}"#,
        r#"{"json""#,
    ] {
        let future = place.replacen('{', r#"{"future":0,"#, 1);
        assert_eq!(stored.matches(place).count(), 1, "{place}");
        let error = read(&stored.replace(place, &future)).unwrap_err().to_string();
        assert!(error.contains("`future`"), "{place}: {error}");
    }
}
