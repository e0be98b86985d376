//! Tests of OpenAI's responses.

use proptest::prelude::*;

use crate::conversation::PartContent;
use crate::provider::codec::chunking::{calls, decode_body, decode_chunked, decode_stream};
use crate::provider::codec::{ApiError, MAX_CONTENT_PARTS, MAX_LIST_ITEMS};
use crate::provider::{Cost, FinishReason, LlmErrorKind, ProviderApi, Response, Usage};

/// Reasoning in two paragraphs, a message, two parallel calls and a number that no `f64`
/// represents.
const EVENTS: &[&str] = &[
    r#"{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"in_progress","model":"gpt-6-sol","output":[],"error":null}}"#,
    r#"{"type":"response.in_progress","sequence_number":1,"response":{"id":"resp_1","status":"in_progress","model":"gpt-6-sol","output":[]}}"#,
    r#"{"type":"response.output_item.added","sequence_number":2,"output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"half"}}"#,
    r#"{"type":"response.reasoning_summary_part.added","item_id":"rs_1","output_index":0,"summary_index":0,"part":{"type":"summary_text","text":""}}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"**Wea"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":0,"delta":"ther**"}"#,
    r#"{"type":"response.reasoning_summary_text.done","item_id":"rs_1","output_index":0,"summary_index":0,"text":"**Weather**"}"#,
    r#"{"type":"response.reasoning_summary_text.delta","item_id":"rs_1","output_index":0,"summary_index":1,"delta":"In Zürich."}"#,
    r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Weather**"},{"type":"summary_text","text":"In Zürich."}],"encrypted_content":"gAAA"}}"#,
    r#"{"type":"response.output_item.added","output_index":1,"item":{"type":"message","id":"msg_1","status":"in_progress","role":"assistant","phase":"commentary","content":[]}}"#,
    r#"{"type":"response.content_part.added","item_id":"msg_1","output_index":1,"content_index":0,"part":{"type":"output_text","text":"","annotations":[]}}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"Let me ","obfuscation":"x"}"#,
    r#"{"type":"response.output_text.delta","item_id":"msg_1","output_index":1,"content_index":0,"delta":"see 🙂"}"#,
    r#"{"type":"response.output_text.done","item_id":"msg_1","output_index":1,"content_index":0,"text":"Let me see 🙂"}"#,
    r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me see 🙂","annotations":[],"logprobs":[]}]}}"#,
    r#"{"type":"response.output_item.added","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"weather","arguments":"","status":"in_progress"}}"#,
    r#"{"type":"response.output_item.added","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"call_b","name":"add","arguments":"","status":"in_progress"}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"{\"city\":"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"{\"n\": 123456789012"}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_1","output_index":2,"delta":"\"Zürich\"}"}"#,
    r#"{"type":"response.function_call_arguments.done","item_id":"fc_1","output_index":2,"arguments":"{\"city\":\"Zürich\"}"}"#,
    r#"{"type":"response.output_item.done","output_index":2,"item":{"type":"function_call","id":"fc_1","call_id":"call_a","name":"weather","arguments":"{\"city\":\"Zürich\"}","status":"completed"}}"#,
    r#"{"type":"response.function_call_arguments.delta","item_id":"fc_2","output_index":3,"delta":"34567890123}"}"#,
    r#"{"type":"response.output_item.done","output_index":3,"item":{"type":"function_call","id":"fc_2","call_id":"call_b","name":"add","arguments":"{\"n\": 12345678901234567890123}","status":"completed"}}"#,
    r#"{"type":"response.completed","response":{"id":"resp_1","status":"completed","model":"gpt-6-sol","error":null,"incomplete_details":null,"output":[],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64,"cache_write_tokens":1},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":140}}}"#,
];

const BODY: &str = r#"{"id":"resp_1","object":"response","status":"completed","model":"gpt-6-sol","error":null,"incomplete_details":null,"output":[{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"**Weather**"},{"type":"summary_text","text":"In Zürich."}],"encrypted_content":"gAAA"},{"type":"message","id":"msg_1","status":"completed","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Let me see 🙂","annotations":[],"logprobs":[]}]},{"type":"function_call","id":"fc_1","call_id":"call_a","name":"weather","arguments":"{\"city\":\"Zürich\"}","status":"completed"},{"type":"function_call","id":"fc_2","call_id":"call_b","name":"add","arguments":"{\"n\": 12345678901234567890123}","status":"completed"}],"usage":{"input_tokens":90,"input_tokens_details":{"cached_tokens":64},"output_tokens":50,"output_tokens_details":{"reasoning_tokens":30},"total_tokens":140}}"#;

fn decode_members(members: &str) -> Response {
    decode_body(ProviderApi::OpenAiResponses, &format!("{{{members}}}")).unwrap()
}

/// Returns a stream with OpenAI's event names.
fn named_events(events: &[&str]) -> String {
    let kind = |data: &str| {
        let (_, rest) = data.split_once(r#""type":""#).unwrap();
        rest.split_once('"').unwrap().0.to_owned()
    };
    events.iter().map(|data| format!("event: {}\ndata: {data}\n\n", kind(data))).collect()
}

/// Proves: G53, G76
#[test]
fn streamed_thoughts_text_and_parallel_calls_equal_unstreamed_ones() {
    let response = decode_stream(ProviderApi::OpenAiResponses, &named_events(EVENTS)).unwrap();
    assert_eq!(response, decode_body(ProviderApi::OpenAiResponses, BODY).unwrap());
    assert_eq!(response.message.reasoning(), "**Weather**\n\nIn Zürich.");
    assert_eq!(response.message.visible_text(), "Let me see 🙂");
    let (weather, add) = (r#"{"city":"Zürich"}"#, r#"{"n": 12345678901234567890123}"#);
    assert_eq!(calls(&response), [("call_a", "weather", weather), ("call_b", "add", add)]);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(response.model.as_deref(), Some("gpt-6-sol"));
    let usage = Usage {
        prompt_tokens: 90,
        completion_tokens: 50,
        cached_tokens: 64,
        reasoning_tokens: 30,
        cost: None,
    };
    assert_eq!(response.usage, Some(usage));
}

#[test]
fn the_cost_is_read_from_the_usage_of_the_completed_response() {
    let add = |text: &str| text.replace(r#""usage":{"#, r#""usage":{"cost":0.95,"#);
    let events: Vec<String> = EVENTS.iter().map(|event| add(event)).collect();
    let events: Vec<&str> = events.iter().map(String::as_str).collect();
    let response = decode_stream(ProviderApi::OpenAiResponses, &named_events(&events)).unwrap();
    assert_eq!(response, decode_body(ProviderApi::OpenAiResponses, &add(BODY)).unwrap());
    assert_eq!(response.usage.unwrap().cost, Cost::from_json_number("0.95"));
}

/// Proves: G53, G77
#[test]
fn each_finish_reason_is_distinguished() {
    let text = r#"{"type":"message","content":[{"type":"output_text","text":"Once"}]}"#;
    let refusal = r#"{"type":"message","content":[{"type":"refusal","refusal":"I can't."}]}"#;
    let truncated = r#"{"type":"function_call","call_id":"c","name":"f","arguments":"{\"a\":","status":"incomplete"}"#;
    let other = FinishReason::Other("steered".to_owned());
    for (output, status, reason, visible_text, finish_reason) in [
        (text, "completed", "null", "Once", FinishReason::Stop),
        ("", "completed", "null", "", FinishReason::Stop),
        (refusal, "completed", "null", "I can't.", FinishReason::Refusal),
        (text, "incomplete", r#"{"reason":"max_output_tokens"}"#, "Once", FinishReason::Length),
        (truncated, "incomplete", r#"{"reason":"max_output_tokens"}"#, "", FinishReason::Length),
        (text, "incomplete", r#"{"reason":"content_filter"}"#, "Once", FinishReason::Refusal),
        (text, "incomplete", r#"{"reason":"steered"}"#, "Once", other),
    ] {
        let rest = format!(r#""status":"{status}","incomplete_details":{reason}"#);
        let response = decode_members(&format!(r#""output":[{output}],{rest}"#));
        assert_eq!(
            (response.message.visible_text().as_str(), &response.finish_reason),
            (visible_text, &finish_reason)
        );
        // Without item events, the items are only in the response object.
        let event =
            format!(r#"{{"type":"response.{status}","response":{{"output":[{output}],{rest}}}}}"#);
        assert_eq!(
            decode_stream(ProviderApi::OpenAiResponses, &named_events(&[&event])).unwrap(),
            response
        );
    }
}

/// Proves: G79
#[test]
fn an_answer_that_failed_is_a_failure() {
    for (members, kind) in [
        (
            r#""status":"failed","error":{"code":"rate_limit_exceeded","message":"no"}"#,
            LlmErrorKind::RetryLater { after: None },
        ),
        (
            r#""status":"failed","error":{"code":"server_error","message":"no"}"#,
            LlmErrorKind::RetryLater { after: None },
        ),
        (
            r#""status":"failed","error":{"code":"invalid_prompt","message":"no"}"#,
            LlmErrorKind::Refusal,
        ),
        (r#""error":{"code":401,"message":"no"}"#, LlmErrorKind::Authentication),
        (r#""status":"cancelled","output":[]"#, LlmErrorKind::RetryLater { after: None }),
        (r#""status":"queued","output":[]"#, LlmErrorKind::InvalidResponse),
        (r#""id":"x""#, LlmErrorKind::InvalidResponse),
    ] {
        let failed =
            decode_body(ProviderApi::OpenAiResponses, &format!("{{{members}}}")).unwrap_err();
        assert_eq!(failed.kind, kind, "{members}");
    }
    for body in ["", "[]", "<html>"] {
        assert_eq!(
            decode_body(ProviderApi::OpenAiResponses, body).unwrap_err().kind,
            LlmErrorKind::InvalidResponse
        );
    }
}

#[test]
fn items_of_an_unknown_kind_are_kept() {
    let item = r#"{"type":"web_search_call","id":"ws_1", "n":1.00}"#;
    let response = decode_members(&format!(r#""output":[{item},7,{{}}]"#));
    let [search, empty] = &response.message.parts[..] else { panic!("{response:?}") };
    assert_eq!(
        (&search.content, search.provider_block.as_ref().unwrap().json.get()),
        (&PartContent::Other, item)
    );
    assert_eq!(empty.content, PartContent::Other);
}

#[test]
fn a_call_is_read_however_it_is_written() {
    for (members, id, arguments, native) in [
        (r#""call_id":"c","arguments":"{\"a\":1}""#, "c", r#"{"a":1}"#, true),
        (r#""call_id":"c","arguments":{"a":1.00}"#, "c", r#"{"a":1.00}"#, true),
        (r#""call_id":"c","arguments":"""#, "c", "{}", false),
        (r#""call_id":"c""#, "c", "{}", false),
        (r#""call_id":"c","arguments":"","status":"completed""#, "c", "{}", false),
        (r#""call_id":"c","arguments":"","status":"incomplete""#, "c", "", false),
        (r#""call_id":"c","arguments":"{\"a\"""#, "c", r#"{"a""#, false),
        (r#""id":"fc","arguments":"{}""#, "fc", "{}", false),
        (r#""arguments":"{}""#, "", "{}", false),
    ] {
        let call = format!(r#"{{"type":"function_call","name":"f",{members}}}"#);
        let response = decode_members(&format!(r#""output":[{call}]"#));
        assert_eq!(calls(&response), [(id, "f", arguments)], "{members}");
        assert_eq!(response.message.parts[0].provider_block.is_some(), native, "{members}");
    }
}

#[test]
fn the_number_of_items_is_limited() {
    let output = |count| format!(r#"{{"output":[{}]}}"#, vec!["{}"; count].join(","));
    let response = decode_body(ProviderApi::OpenAiResponses, &output(MAX_CONTENT_PARTS)).unwrap();
    assert_eq!(response.message.parts.len(), MAX_CONTENT_PARTS);
    let error =
        decode_body(ProviderApi::OpenAiResponses, &output(MAX_CONTENT_PARTS + 1)).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::InvalidResponse);
    let message = |count| {
        let content = vec![r#"{"text":"x"}"#; count].join(",");
        format!(r#"{{"output":[{{"type":"message","content":[{content}]}}]}}"#)
    };
    let response = decode_body(ProviderApi::OpenAiResponses, &message(MAX_LIST_ITEMS)).unwrap();
    assert_eq!(response.message.visible_text().len(), MAX_LIST_ITEMS);
    let error =
        decode_body(ProviderApi::OpenAiResponses, &message(MAX_LIST_ITEMS + 1)).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::InvalidResponse);
    let events = |count: usize| -> String {
        let event = |at| {
            format!(
                "data: {{\"type\":\"response.output_item.done\",\"output_index\":{at},\"item\":{{}}}}\n\n"
            )
        };
        let end = "data: {\"type\":\"response.completed\"}\n\n";
        (0..count).map(event).chain([end.to_owned()]).collect()
    };
    let (response, _) = decode_chunked(
        ProviderApi::OpenAiResponses,
        true,
        events(MAX_CONTENT_PARTS).as_bytes(),
        &[1 << 20],
    );
    assert_eq!(response.unwrap().message.parts.len(), MAX_CONTENT_PARTS);
    let (error, _) = decode_chunked(
        ProviderApi::OpenAiResponses,
        true,
        events(MAX_CONTENT_PARTS + 1).as_bytes(),
        &[1 << 20],
    );
    assert_eq!(error.unwrap_err().kind, LlmErrorKind::InvalidResponse);
}

/// Proves: G77
#[test]
fn no_prefix_of_a_stream_is_an_answer() {
    let body = named_events(EVENTS);
    for end in 0..body.len() {
        let (response, _) = decode_chunked(
            ProviderApi::OpenAiResponses,
            true,
            &body.as_bytes()[..end],
            &[end.max(1)],
        );
        let ApiError { kind, partial_output, .. } = response.unwrap_err();
        assert_eq!(kind, LlmErrorKind::Connection, "{end}");
        assert!("Let me see 🙂".starts_with(&partial_output.unwrap()), "{end}");
    }
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_a_failure(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        size in 1_usize..40,
        streaming: bool,
    ) {
        drop(decode_chunked(ProviderApi::OpenAiResponses, streaming, &bytes, &[size]));
    }

    #[test]
    fn a_stream_with_bytes_of_another_kind_is_an_answer_or_a_failure(
        at in 0_usize..6000,
        bytes in proptest::collection::vec(any::<u8>(), 1..4),
        size in 1_usize..200,
    ) {
        let mut body = named_events(EVENTS).into_bytes();
        let at = at % body.len();
        let end = (at + bytes.len()).min(body.len());
        body.splice(at..end, bytes);
        let (first, pieces) = decode_chunked(ProviderApi::OpenAiResponses, true, &body, &[body.len()]);
        let (again, others) = decode_chunked(ProviderApi::OpenAiResponses, true, &body, &[size]);
        prop_assert_eq!(&first, &again);
        if first.is_ok() {
            prop_assert_eq!(pieces, others);
        }
    }

    #[test]
    fn events_in_any_order_and_number_are_an_answer_or_a_failure(
        order in proptest::collection::vec(0..EVENTS.len(), 0..30),
    ) {
        let events: Vec<_> = order.iter().map(|at| EVENTS[*at]).chain(EVENTS.last().copied()).collect();
        let (response, _) = decode_chunked(ProviderApi::OpenAiResponses, true, named_events(&events).as_bytes(), &[50]);
        prop_assert!(response.is_ok());
    }
}
