//! Streams that are not quite as OpenAI's.

use crate::provider::codec::cuts::{calls, events, read, streamed, whole};
use crate::provider::codec::{Fault, LIST};
use crate::provider::{Class, Finish, Response, Wire};

const COMPLETED: &str = r#"{"type":"response.completed","response":{"status":"completed"}}"#;

fn stream(data: &[&str]) -> Response {
    streamed(Wire::OpenAiResponses, &events(data)).unwrap()
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
        // Pieces are missing.
        &[added, first, done, COMPLETED],
        &[added, done, COMPLETED],
        &[done, COMPLETED],
        // Pieces come before the item they are of.
        &[first, added, second, done, COMPLETED],
        &[first, second, done, COMPLETED],
        // Nothing is said of the item's end but in the response.
        &[added, first, in_response],
        &[first, in_response],
        &[in_response],
        &[added, first, second, done, in_response],
    ] {
        let response = stream(data);
        assert_eq!(calls(&response), [("c", "f", r#"{"a":1}"#)], "{data:?}");
        assert!(response.answer.parts[0].native.is_some(), "{data:?}");
        assert_eq!(response.finish, Finish::ToolCalls);
    }
    // The item is said nowhere: its pieces are all there is.
    let response = stream(&[added, first, second, COMPLETED]);
    assert_eq!(calls(&response), [("c", "f", r#"{"a":1}"#)]);
    assert!(response.answer.parts[0].native.is_none());
}

#[test]
fn a_thought_has_its_content_from_its_own_end_or_from_that_of_the_response() {
    let item = |content: &str| {
        format!(r#"{{"type":"reasoning","id":"rs","summary":[],"encrypted_content":{content}}}"#)
    };
    for (done, completed, kept) in
        [("\"a\"", "\"b\"", "\"a\""), ("null", "\"b\"", "\"b\""), ("\"a\"", "null", "\"a\"")]
    {
        let (done, completed) = (item(done), item(completed));
        let done =
            format!(r#"{{"type":"response.output_item.done","output_index":0,"item":{done}}}"#);
        let completed =
            format!(r#"{{"type":"response.completed","response":{{"output":[{completed}]}}}}"#);
        let response = stream(&[&done, &completed]);
        let [thought] = &response.answer.parts[..] else { panic!("{response:?}") };
        assert_eq!(thought.native.as_ref().unwrap().block.get(), item(kept));
    }
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_piece() {
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
fn an_item_of_too_many_parts_loses_nothing_that_was_written_before() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Once"}"#;
    let content = vec!["{}"; LIST + 1].join(",");
    let item = format!(r#"{{"type":"message","content":[{content}]}}"#);
    for last in [
        format!(r#"{{"type":"response.output_item.done","output_index":1,"item":{item}}}"#),
        format!(r#"{{"type":"response.completed","response":{{"output":[{{}},{item}]}}}}"#),
    ] {
        let body = events(&[text, &last]);
        let (failed, _) = read(Wire::OpenAiResponses, true, body.as_bytes(), &[1 << 20]);
        assert_eq!(failed.unwrap_err().written.as_deref(), Some("Once"));
    }
}

#[test]
fn events_that_say_no_index_are_told_apart_by_the_id() {
    let text = |id: &str, delta: &str| {
        format!(r#"{{"type":"response.output_text.delta","item_id":"{id}","delta":"{delta}"}}"#)
    };
    let (a, b, c) = (text("m1", "A"), text("m2", "C"), text("m1", "B"));
    let response = stream(&[&a, &b, COMPLETED]);
    assert_eq!(response.answer.shown(), "AC");
    assert_eq!(response.answer.parts.len(), 2);
    let output = r#"{"type":"response.completed","response":{"output":[{"type":"message","id":"m1","content":[{"type":"output_text","text":"AB"}]}]}}"#;
    let response = stream(&[&a, &c, output]);
    assert_eq!((response.answer.shown().as_str(), response.answer.parts.len()), ("AB", 1));
    let nameless = r#"{"type":"response.output_text.delta","delta":"B"}"#;
    assert_eq!(stream(&[&a, nameless, COMPLETED]).answer.shown(), "AB");
}

#[test]
fn a_refusal_and_open_thoughts_are_read_piece_by_piece() {
    let thought = r#"{"type":"response.reasoning_text.delta","output_index":0,"content_index":0,"delta":"Hmm."}"#;
    let refusal =
        r#"{"type":"response.refusal.delta","output_index":1,"content_index":0,"delta":"No."}"#;
    let output = r#""output":[{"type":"reasoning","summary":[],"content":[{"type":"reasoning_text","text":"Hmm."}]},{"type":"message","content":[{"type":"refusal","refusal":"No."}]}]"#;
    let completed = format!(r#"{{"type":"response.completed","response":{{{output}}}}}"#);
    let response = stream(&[thought, refusal, &completed]);
    assert_eq!(response, whole(Wire::OpenAiResponses, &format!("{{{output}}}")).unwrap());
    assert_eq!(
        (response.answer.reasoning(), response.answer.shown()),
        ("Hmm.".into(), "No.".into())
    );
    assert_eq!(response.finish, Finish::Refused);
    assert_eq!(stream(&[refusal, COMPLETED]).finish, Finish::Refused);
}

#[test]
fn the_name_of_an_event_is_enough() {
    let body = "event: response.output_text.delta\ndata: {\"delta\":\"Hi\"}\n\nevent: response.completed\ndata: {}\n\n";
    assert_eq!(streamed(Wire::OpenAiResponses, body).unwrap().answer.shown(), "Hi");
}

#[test]
fn a_server_that_does_not_stream_is_read_all_the_same() {
    let body = r#"{"status":"completed","output":[{"type":"message","content":[{"type":"output_text","text":"Hi"}]},{"type":"function_call","call_id":"c","name":"f","arguments":"{}"}]}"#;
    let response = streamed(Wire::OpenAiResponses, body).unwrap();
    assert_eq!(response, whole(Wire::OpenAiResponses, body).unwrap());
}

/// Proves: G79
#[test]
fn a_failure_in_the_midst_of_an_answer_keeps_what_was_written() {
    let text = r#"{"type":"response.output_text.delta","output_index":0,"delta":"Once"}"#;
    let later = Class::Later { after: None };
    for (data, class, message) in [
        (
            r#"{"type":"error","code":"rate_limit_exceeded","message":"slow","param":null}"#,
            later,
            "slow",
        ),
        (
            r#"{"type":"error","error":{"type":"invalid_request_error","code":"context_length_exceeded","message":"long"}}"#,
            Class::TooLong,
            "long",
        ),
        (
            r#"{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"broke"}}}"#,
            later,
            "broke",
        ),
        (
            r#"{"type":"response.completed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"no"}}}"#,
            Class::Refused,
            "no",
        ),
        (r#"{"error":{"code":401,"message":"who"}}"#, Class::Key, "who"),
        ("{\"ty", Class::Unreadable, "an event is no JSON object"),
    ] {
        let failed = streamed(Wire::OpenAiResponses, &events(&[text, data])).unwrap_err();
        assert_eq!(
            failed,
            Fault { class, message: message.to_owned(), written: Some("Once".to_owned()) },
            "{data}"
        );
    }
}
