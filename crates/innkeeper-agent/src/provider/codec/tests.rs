//! Tests of calls that an API would reject in a later request.

use serde_json::{Value, json};

use super::chunking::{decode_body, test_model};
use super::request_encoding::encode_body;
use super::*;
use crate::conversation::{ContentPart, Conversation, PartContent};

/// Returns an unstreamed response with one call with these arguments.
fn call_body(api: ProviderApi, arguments: &str) -> String {
    let quoted = Value::from(arguments);
    match api {
        ProviderApi::OpenAiChat => format!(
            r#"{{"choices":[{{"finish_reason":"tool_calls","message":{{"role":"assistant","tool_calls":[{{"id":"c","type":"function","function":{{"name":"t","arguments":{quoted}}}}}]}}}}]}}"#
        ),
        ProviderApi::OpenAiResponses => format!(
            r#"{{"status":"completed","output":[{{"type":"function_call","call_id":"c","name":"t","arguments":{quoted}}}]}}"#
        ),
        ProviderApi::Anthropic => format!(
            r#"{{"type":"message","role":"assistant","content":[{{"type":"tool_use","id":"c","name":"t","input":{arguments}}}],"stop_reason":"tool_use"}}"#
        ),
        ProviderApi::GeminiGenerate => format!(
            r#"{{"candidates":[{{"content":{{"parts":[{{"functionCall":{{"name":"t","args":{arguments}}}}}]}},"finishReason":"STOP"}}]}}"#
        ),
        ProviderApi::GeminiInteractions => format!(
            r#"{{"id":"v","object":"interaction","status":"requires_action","model":"m","steps":[{{"type":"function_call","id":"c","name":"t","arguments":{arguments}}}]}}"#
        ),
        ProviderApi::Ollama => format!(
            r#"{{"message":{{"role":"assistant","tool_calls":[{{"function":{{"name":"t","arguments":{arguments}}}}}]}},"done":true,"done_reason":"stop"}}"#
        ),
    }
}

/// Returns the part of the call in a response, and the next request after the response.
fn call_part_and_next_request(api: ProviderApi, arguments: &str) -> (ContentPart, String) {
    let message = decode_body(api, &call_body(api, arguments)).unwrap().message;
    let part = message.parts[0].clone();
    let mut conversation = Conversation::new();
    conversation.push_user("?").unwrap();
    conversation.push_assistant(message).unwrap();
    conversation.fail_pending("interrupted");
    let request = Request { messages: conversation.messages().to_vec(), ..Request::default() };
    let model = test_model(api);
    (part, encode_body(api, &request, model, &Capabilities::for_model(api, model)))
}

#[test]
fn arguments_that_an_api_cannot_read_go_back_as_text_in_an_object() {
    let nested = |depth: usize| format!(r#"{{"n":{}{}}}"#, "[".repeat(depth), "]".repeat(depth));
    for api in ProviderApi::ALL {
        for arguments in [r#"{"n":1e400}"#.to_owned(), r#"{"n":"\ud800"}"#.to_owned(), nested(127)]
        {
            let (part, next) = call_part_and_next_request(api, &arguments);
            let PartContent::ToolCall(call) = &part.content else { panic!("{api:?} {part:?}") };
            assert_eq!(call.arguments, arguments, "{api:?}: the conversation has the arguments");
            assert_eq!(part.provider_block, None, "{api:?} {arguments}");
            let wrapped = json!({"unreadable": arguments}).to_string();
            let quoted = Value::from(wrapped.as_str()).to_string();
            assert!(next.contains(&wrapped) || next.contains(&quoted), "{api:?} {next}");
            assert!(serde_json::from_str::<Value>(&next).is_ok(), "{api:?} {next}");
        }
        for arguments in [r#"{"n":1e308,"m":123456789012345678901234567890}"#, &nested(100)] {
            let (part, next) = call_part_and_next_request(api, arguments);
            assert!(!next.contains("unreadable"), "{api:?} {next}");
            assert!(part.provider_block.is_some(), "{api:?} {part:?}");
        }
    }
}

#[test]
fn a_temperature_that_is_no_number_is_not_sent() {
    for api in ProviderApi::ALL {
        let model = test_model(api);
        let capabilities =
            Capabilities { temperature: true, ..Capabilities::for_model(api, model) };
        for (temperature, is_sent) in [(0.5, true), (f64::NAN, false)] {
            let request = Request { temperature: Some(temperature), ..Request::default() };
            let body = encode_body(api, &request, model, &capabilities);
            assert_eq!(body.contains("temperature"), is_sent, "{api:?} {body}");
        }
    }
}
