//! Tests of streams that deviate from OpenAI's.

use crate::provider::codec::chunking::{
    calls, decode_body, decode_chunked, decode_stream, sse_events,
};
use crate::provider::codec::{ApiError, MAX_LIST_ITEMS};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Response};

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

fn stream(data: &[&str]) -> Response {
    decode_stream(ProviderApi::OpenAiResponses, &sse_events(data)).unwrap()
}

/// Proves: G53, G76
#[test]
fn the_finished_item_counts_whatever_came_before() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}"#;
    let first = r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"{\"a\":"}"#;
    let second = r#"{"type":"response.function_call_arguments.delta","output_index":0,"item_id":"fc","delta":"1}"}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":1}"}}"#;
    let in_response = r#"{"type":"response.completed","response":{"output":[{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{\"a\":1}"}]}}"#;
    for data in [
        &[added, first, second, done, COMPLETED][..],
        // A delta is missing.
        &[added, first, done, COMPLETED],
        &[added, done, COMPLETED],
        &[done, COMPLETED],
        // A delta comes before the start of its item.
        &[first, added, second, done, COMPLETED],
        &[first, second, done, COMPLETED],
        // Only the response object contains the finished item.
        &[added, first, in_response],
        &[first, in_response],
        &[in_response],
        &[added, first, second, done, in_response],
    ] {
        let response = stream(data);
        assert_eq!(calls(&response), [("c", "f", r#"{"a":1}"#)], "{data:?}");
        assert!(response.message.parts[0].provider_block.is_some(), "{data:?}");
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    }
    // The finished item never comes: only its deltas exist.
    let response = stream(&[added, first, second, COMPLETED]);
    assert_eq!(calls(&response), [("c", "f", r#"{"a":1}"#)]);
    assert!(response.message.parts[0].provider_block.is_none());
}

#[test]
fn a_streamed_call_counts_if_the_last_event_lists_another_output() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}"#;
    let arguments = r#"{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc","arguments":"{}"}"#;
    let empty = r#"{"type":"response.function_call_arguments.done","output_index":0,"item_id":"fc","arguments":""}"#;
    let done = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}}"#;
    let completed = |output: &str| {
        format!(r#"{{"type":"response.completed","response":{{"output":[{output}]}}}}"#)
    };
    let message = r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":"T"}]}"#;
    let blank = r#"{"type":"message","id":"m","role":"assistant","content":[{"type":"output_text","text":""}]}"#;
    let thought = r#"{"type":"reasoning","id":"rs","summary":[]}"#;
    for output in [message, blank, thought, ""] {
        for data in
            [&[added, arguments][..], &[added, empty], &[added, done], &[added, arguments, done]]
        {
            let completed = completed(output);
            let response = stream(&[data, &[&completed]].concat());
            assert_eq!(calls(&response), [("c", "f", "{}")], "{data:?} {output}");
            let text = if output == message { "T" } else { "" };
            assert_eq!(response.message.visible_text(), text, "{data:?}");
        }
    }
}

#[test]
fn an_item_that_the_last_event_lists_again_counts_once() {
    let completed = |output: &str| {
        format!(r#"{{"type":"response.completed","response":{{"output":[{output}]}}}}"#)
    };
    // The streamed reasoning is not listed, so that the message has another place and another id.
    let thought = r#"{"type":"response.output_item.done","output_index":0,"item":{"type":"reasoning","id":"rs","summary":[]}}"#;
    let text =
        r#"{"type":"response.output_text.delta","output_index":1,"item_id":"m","delta":"Hi"}"#;
    let message = r#"{"type":"message","id":"m2","content":[{"type":"output_text","text":"Hi"}]}"#;
    assert_eq!(stream(&[thought, text, &completed(message)]).message.visible_text(), "Hi");
    // A call has another id at the end.
    let call = r#"{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":"{}"}}"#;
    let again = r#"{"type":"function_call","id":"fc2","call_id":"c","name":"f","arguments":"{}"}"#;
    assert_eq!(calls(&stream(&[thought, call, &completed(again)])), [("c", "f", "{}")]);
}

/// A call as an item, with the ids `fc{id}` and `c{id}`.
fn item(id: &str, name: &str, arguments: &str, status: &str) -> String {
    let item = serde_json::json!({
        "type": "function_call", "id": format!("fc{id}"), "call_id": format!("c{id}"),
        "name": name, "arguments": arguments, "status": status,
    });
    item.to_string()
}

fn item_event(event: &str, index: u64, item: &str) -> String {
    format!(r#"{{"type":"response.output_item.{event}","output_index":{index},"item":{item}}}"#)
}

fn completed_with(output: &str) -> String {
    format!(r#"{{"type":"response.completed","response":{{"output":[{output}]}}}}"#)
}

/// Proves: G77
#[test]
fn a_call_that_the_provider_does_not_end_is_cut() {
    let whole = r#"{"x":1}"#;
    let added = item_event("added", 0, &item("1", "f", "", "in_progress"));
    let added = added.as_str();
    for status in ["incomplete", "in_progress"] {
        for arguments in ["", r#"{"x""#, whole] {
            let item = item("1", "f", arguments, status);
            let (done, listed) = (item_event("done", 0, &item), completed_with(&item));
            for data in
                [&[listed.as_str()][..], &[added, done.as_str(), COMPLETED], &[added, &*listed]]
            {
                let response = stream(data);
                assert!(response.message.calls().all(|call| call.is_cut), "{data:?}");
                assert_eq!(response.message.calls().count(), 1, "{data:?}");
                assert_eq!(response.finish_reason, FinishReason::Length, "{data:?}");
            }
            let body = format!(r#"{{"output":[{item}]}}"#);
            let response = decode_body(ProviderApi::OpenAiResponses, &body).unwrap();
            assert_eq!(response.finish_reason, FinishReason::Length);
            // The last word counts.
            let end = completed_with(&self::item("1", "f", whole, "completed"));
            let response = stream(&[added, &done, &end]);
            assert_eq!(calls(&response), [("c1", "f", whole)]);
            assert_eq!(response.finish_reason, FinishReason::ToolCalls);
        }
    }
    let response = stream(&[added, COMPLETED]);
    assert_eq!(response.finish_reason, FinishReason::Length, "only its start came");
    assert!(response.message.calls().all(|call| call.is_cut));
}

#[test]
fn a_call_with_another_place_id_and_spelling_at_the_end_is_the_same_call() {
    let spelled = r#"{"a": 1, "b": 2}"#;
    let added = item_event("added", 1, &item("1", "f", "", "in_progress"));
    let arguments = format!(
        r#"{{"type":"response.function_call_arguments.done","output_index":1,"item_id":"fc1","arguments":{spelled:?}}}"#
    );
    let delta = arguments.replace(".done", ".delta").replace(r#""arguments":"#, r#""delta":"#);
    let done = item_event("done", 1, &item("1", "f", spelled, "completed"));
    let again = item("9", "f", r#"{"b":2,"a":1}"#, "completed");
    let other = item("8", "g", "{}", "completed");
    let other_arguments = item("8", "f", r#"{"a":1,"b":3}"#, "completed");
    for ended in [&arguments, &delta, &done] {
        for (output, count) in [
            (again.clone(), 1),
            (format!("{again},{}", item("7", "f", spelled, "completed")), 2),
            (other.clone(), 2),
            (format!("{{}},{other}"), 2),
            (format!("{other},{again}"), 2),
            (other_arguments.clone(), 2),
        ] {
            // The chunks have the first spelling, the response has the last one.
            let body = sse_events(&[&added, ended, &completed_with(&output)]);
            let (response, _) =
                decode_chunked(ProviderApi::OpenAiResponses, true, body.as_bytes(), &[64]);
            let response = response.unwrap();
            assert_eq!(response.message.calls().count(), count, "{ended} {output}");
        }
    }
}

#[test]
fn a_thought_has_its_content_from_its_own_end_or_from_that_of_the_response() {
    let item = |content: &str| {
        format!(r#"{{"type":"reasoning","id":"rs","summary":[],"encrypted_content":{content}}}"#)
    };
    for (done, completed, expected) in
        [("\"a\"", "\"b\"", "\"a\""), ("null", "\"b\"", "\"b\""), ("\"a\"", "null", "\"a\"")]
    {
        let (done, completed) = (item(done), item(completed));
        let done =
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{done}}}"#);
        let completed =
            format!(r#"{{"type":"response.completed","response":{{"output":[{completed}]}}}}"#);
        let response = stream(&[&done, &completed]);
        let [thought] = &response.message.parts[..] else { panic!("{response:?}") };
        assert_eq!(thought.provider_block.as_ref().unwrap().json.get(), item(expected));
    }
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_chunk() {
    let added = r#"{"type":"response.output_item.added","output_index":0,"item":{"type":"function_call","id":"fc","call_id":"c","name":"f","arguments":""}}"#;
    let delta = |delta: &str| {
        format!(
            r#"{{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{delta}"}}"#
        )
    };
    let (first, second) = (delta(r#"{\"p\":\"\ud83d"#), delta(r#"\ude00\"}"#));
    let response = stream(&[added, &first, &second, COMPLETED]);
    assert_eq!(calls(&response), [("c", "f", "{\"p\":\"\u{1f600}\"}")]);
}

#[test]
fn an_item_of_too_many_parts_loses_no_partial_output() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Once"}"#;
    let content = vec!["{}"; MAX_LIST_ITEMS + 1].join(",");
    let item = format!(r#"{{"type":"message","content":[{content}]}}"#);
    for last in [
        format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{item}}}"#),
        format!(r#"{{"type":"response.completed","response":{{"output":[{{}},{item}]}}}}"#),
    ] {
        let body = sse_events(&[text, &last]);
        let (error, _) =
            decode_chunked(ProviderApi::OpenAiResponses, true, body.as_bytes(), &[1 << 20]);
        assert_eq!(error.unwrap_err().partial_output.as_deref(), Some("Once"));
    }
}

#[test]
fn events_without_an_index_are_matched_by_the_id() {
    let text = |id: &str, delta: &str| {
        format!(r#"{{"type":"response.output_text.delta","item_id":"{id}","delta":"{delta}"}}"#)
    };
    let (a, b, c) = (text("m1", "A"), text("m2", "C"), text("m1", "B"));
    let response = stream(&[&a, &b, COMPLETED]);
    assert_eq!(response.message.visible_text(), "AC");
    assert_eq!(response.message.parts.len(), 2);
    let output = r#"{"type":"response.completed","response":{"output":[{"type":"message","id":"m1","content":[{"type":"output_text","text":"AB"}]}]}}"#;
    let response = stream(&[&a, &c, output]);
    assert_eq!((response.message.visible_text().as_str(), response.message.parts.len()), ("AB", 1));
    let nameless = r#"{"type":"response.output_text.delta","delta":"B"}"#;
    assert_eq!(stream(&[&a, nameless, COMPLETED]).message.visible_text(), "AB");
}

#[test]
fn a_refusal_and_reasoning_text_are_streamed() {
    let thought = r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Hmm."}"#;
    let refusal =
        r#"{"type":"response.refusal.delta","output_index":1,"content_index":0,"delta":"No."}"#;
    let output = r#""output":[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hmm."}]},{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]"#;
    let completed = format!(r#"{{"type":"response.completed","response":{{{output}}}}}"#);
    let response = stream(&[thought, refusal, &completed]);
    assert_eq!(
        response,
        decode_body(ProviderApi::OpenAiResponses, &format!("{{{output}}}")).unwrap()
    );
    assert_eq!(
        (response.message.reasoning(), response.message.visible_text()),
        ("Hmm.".into(), "No.".into())
    );
    assert_eq!(response.finish_reason, FinishReason::Refusal);
    assert_eq!(stream(&[refusal, COMPLETED]).finish_reason, FinishReason::Refusal);
}

#[test]
fn the_name_of_an_event_is_enough() {
    let body = "event: response.output_text.delta\ndata: {\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {}\n\n";
    assert_eq!(
        decode_stream(ProviderApi::OpenAiResponses, body).unwrap().message.visible_text(),
        "Hi"
    );
}

#[test]
fn a_server_that_does_not_stream_is_read_all_the_same() {
    let body = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}"#;
    let response = decode_stream(ProviderApi::OpenAiResponses, body).unwrap();
    assert_eq!(response, decode_body(ProviderApi::OpenAiResponses, body).unwrap());
}

/// Proves: G79
#[test]
fn an_error_in_the_middle_of_a_response_has_the_partial_output() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Once"}"#;
    let retry_later = LlmErrorKind::RetryLater { after: None };
    for (data, kind, message) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#,
            retry_later,
            "slow",
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}"#,
            LlmErrorKind::ContextLength,
            "long",
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"broke"}}}"#,
            retry_later,
            "broke",
        ),
        (
            r#"{"type":"response.completed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}"#,
            LlmErrorKind::Refusal,
            "no",
        ),
        (r#"{"error":{"code":401,"message":"who"}}"#, LlmErrorKind::Authentication, "who"),
        ("{\"ty", LlmErrorKind::InvalidResponse, "an event is not a JSON object"),
    ] {
        let failed =
            decode_stream(ProviderApi::OpenAiResponses, &sse_events(&[text, data])).unwrap_err();
        assert_eq!(
            failed,
            ApiError { kind, message: message.to_owned(), partial_output: Some("Once".to_owned()) },
            "{data}"
        );
    }
}
