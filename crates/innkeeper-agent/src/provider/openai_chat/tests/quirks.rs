//! Tests of responses of servers that deviate from OpenAI's API.

use crate::conversation::PartContent;
use crate::provider::codec::ApiError;
use crate::provider::codec::chunking::{calls, decode_body, decode_stream, sse_events};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Response};

fn stream(deltas: &[&str], finish: &str) -> Response {
    let chunk = |delta: &str, finish: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#)
    };
    let mut data: Vec<_> = deltas.iter().map(|delta| chunk(delta, "null")).collect();
    data.push(chunk("{}", finish));
    decode_stream(
        ProviderApi::OpenAiChat,
        &sse_events(&data.iter().map(String::as_str).collect::<Vec<_>>()),
    )
    .unwrap()
}

fn message(message: &str) -> Response {
    let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
    decode_body(ProviderApi::OpenAiChat, &body).unwrap()
}

#[test]
fn half_a_surrogate_pair_of_arguments_is_joined_with_the_other_in_the_next_chunk() {
    let response = stream(
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":\"\ud83d"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"\ude00\"}"}}]}"#,
        ],
        "\"tool_calls\"",
    );
    assert_eq!(calls(&response), [("a", "f", "{\"p\":\"\u{1f600}\"}")]);
}

#[test]
fn of_members_with_one_name_the_last_counts_that_is_not_null() {
    let response = message(
        r#"{"content":"Hi","content":null,"tool_calls":[{"id":"a","x":1,"x":2,"x":null,"function":{"name":"f","name":null,"arguments":"{}"}}]}"#,
    );
    assert_eq!(response.message.visible_text(), "Hi");
    assert_eq!(calls(&response), [("a", "f", "{}")]);
    let native = response.message.parts[1].provider_block.as_ref().unwrap();
    assert!(native.json.get().contains(r#""x":2"#), "{native:?}");
}

/// A deviation, the deltas of a message, and the expected id, name and arguments of its calls.
type NumberingCase =
    (&'static str, &'static [&'static str], &'static [(&'static str, &'static str, &'static str)]);

const X: &str = r#"{"x":1}"#;

const NUMBERING_CASES: &[NumberingCase] = &[
    (
        "a name in two fragments",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"file","arguments":"{\"x\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
        ],
        &[("a", "read_file", X)],
    ),
    (
        "a name in three fragments with empty arguments, then a second call",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"re","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"ad","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"_file","arguments":null}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g"}}]}"#,
        ],
        &[("a", "read_file", X), ("b", "g", "{}")],
    ),
    (
        "a name that grows with every delta",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"read"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"read_file"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"read_file","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "read_file", X)],
    ),
    (
        "the whole call again at the end",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\": 1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "the whole call again at the end, without an index",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "the whole arguments again at the end",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "the name and another id with every delta",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "a name in two fragments without an index",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"read_"}}]}"#,
            r#"{"tool_calls":[{"function":{"name":"file","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "read_file", X)],
    ),
    (
        "a call as before `tool_calls` existed",
        &[
            r#"{"function_call":{"name":"f","arguments":""}}"#,
            r#"{"function_call":{"arguments":"{\"x\":1}"}}"#,
        ],
        &[("", "f", X)],
    ),
    (
        "a call in both members",
        &[
            r#"{"function_call":{"name":"f","arguments":"{}"},"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}]}"#,
            r#"{"function_call":{"arguments":"1}"},"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "index 0 for all, ids differ",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X), ("b", "f", X)],
    ),
    (
        "index 0 for all, no ids, names differ",
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"arguments":"1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"g","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("", "f", X), ("", "g", X)],
    ),
    (
        "index 0 for all, no ids, the same name",
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("", "f", X), ("", "f", X)],
    ),
    (
        "no index, no ids, in one list",
        &[
            r#"{"tool_calls":[{"function":{"name":"f","arguments":"{\"x\":1}"}},{"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("", "f", X), ("", "f", X)],
    ),
    (
        "index 0 for all, no ids, the second without arguments",
        &[
            r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"g"}}]}"#,
        ],
        &[("", "f", X), ("", "g", "{}")],
    ),
    (
        "no index, no ids, no arguments, in one list",
        &[r#"{"tool_calls":[{"function":{"name":"f"}},{"function":{"name":"f"}}]}"#],
        &[("", "f", "{}"), ("", "f", "{}")],
    ),
    (
        "one id for two",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"g","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X), ("a", "g", X)],
    ),
    (
        "no index, deltas by id",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":""}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"name":"g","arguments":""}}]}"#,
            r#"{"tool_calls":[{"id":"a","function":{"arguments":"{\"x\":1}"}}]}"#,
            r#"{"tool_calls":[{"id":"b","function":{"arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X), ("b", "g", X)],
    ),
    (
        "no index, no id: of the last call",
        &[
            r#"{"tool_calls":[{"id":"a","function":{"name":"f"}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"function":{"arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "the name again with every delta",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "another id with every delta",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"b","function":{"arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "arguments before the name",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "arguments as an object",
        &[r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":{"x":1}}}]}"#],
        &[("a", "f", X)],
    ),
    (
        "no arguments",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
            r#"{"tool_calls":[{"index":1,"id":"b","function":{"name":"g","arguments":null}}]}"#,
            r#"{"tool_calls":[{"index":2,"id":"c","function":{"name":"h"}}]}"#,
        ],
        &[("a", "f", "{}"), ("b", "g", "{}"), ("c", "h", "{}")],
    ),
    (
        "name and arguments without `function`, or none at all",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","name":"f","arguments":"{\"x\":1}"}, 7, {"index":1,"id":"b"}]}"#,
        ],
        &[("a", "f", X), ("b", "", "{}")],
    ),
];

/// Proves: G53, G76
#[test]
fn calls_are_distinguished_however_they_are_numbered() {
    for (case, deltas, expected) in NUMBERING_CASES {
        let response = stream(deltas, r#""stop""#);
        assert_eq!(calls(&response), *expected, "{case}");
        assert_eq!(response.finish_reason, FinishReason::ToolCalls, "{case}");
        for (part, (id, ..)) in response.message.parts.iter().zip(*expected) {
            assert_eq!(part.provider_block.is_some(), !id.is_empty(), "{case}");
        }
        if let [delta] = deltas {
            assert_eq!(message(delta), response, "{case}");
        }
    }
}

#[test]
fn a_call_whose_name_or_arguments_are_unclear_is_cut() {
    for (case, deltas) in [
        (
            "fragments, or a name that grows",
            [
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"db_"}}]}"#,
                r#"{"tool_calls":[{"index":0,"function":{"name":"db_drop","arguments":"{}"}}]}"#,
            ],
        ),
        (
            "a call without arguments, or another id for the arguments",
            [
                r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":""}}]}"#,
                r#"{"tool_calls":[{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}]}"#,
            ],
        ),
    ] {
        let response = stream(&deltas, r#""tool_calls""#);
        assert!(response.message.calls().next().is_some_and(|call| call.is_cut), "{case}");
    }
}

#[test]
fn numbers_in_arguments_stay_as_they_were_written() {
    let delta = r#"{"tool_calls":[{"id":"a","function":{"name":"f","arguments":{"n":12345678901234567890123, "e":1.00e2}}}]}"#;
    let expected = r#"{"n":12345678901234567890123, "e":1.00e2}"#;
    assert_eq!(calls(&message(delta)), [("a", "f", expected)]);
    assert_eq!(message(delta), stream(&[delta], r#""tool_calls""#));
}

#[test]
fn thoughts_are_found_under_each_name() {
    for (deltas, expected, native) in [
        (
            &[
                r#"{"reasoning_content":"Hm"}"#,
                r#"{"reasoning_content":"m."}"#,
                r#"{"content":"So."}"#,
            ][..],
            r#"{"content":"So.","reasoning_content":"Hmm."}"#,
            r#"{"reasoning_content":"Hmm."}"#,
        ),
        (
            &[r#"{"reasoning":"Hmm.","content":null}"#, r#"{"content":"So.","reasoning":null}"#],
            r#"{"reasoning":"Hmm.","content":"So."}"#,
            r#"{"reasoning":"Hmm."}"#,
        ),
        // The same reasoning in both fields counts once.
        (
            &[r#"{"reasoning":"Hmm.","reasoning_content":"Hmm."}"#, r#"{"content":"So."}"#],
            r#"{"reasoning":"Hmm.","reasoning_content":"Hmm.","content":"So."}"#,
            r#"{"reasoning_content":"Hmm."}"#,
        ),
        (
            &[
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}]}"#,
                r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"m."}]}]}"#,
                r#"{"content":[{"type":"text","text":"So."}]}"#,
            ],
            r#"{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Hmm."}]},{"type":"text","text":"So."}]}"#,
            r#"{"type":"thinking","thinking":[{"type":"text","text":"Hmm."}]}"#,
        ),
        (
            &[
                r#"{"reasoning":"Hm","reasoning_details":[{"type":"reasoning.text","text":"Hm","index":0,"format":"f"}]}"#,
                r#"{"reasoning":"m.","reasoning_details":[{"type":"reasoning.text","text":"m.","index":0,"signature":"s"}]}"#,
                r#"{"content":"So.","reasoning_details":[{"type":"reasoning.encrypted","data":"x","index":1}]}"#,
            ],
            r#"{"content":"So.","reasoning":"Hmm.","reasoning_details":[{"type":"reasoning.text","text":"Hmm.","index":0,"format":"f","signature":"s"},{"type":"reasoning.encrypted","data":"x","index":1}]}"#,
            r#"{"reasoning_details":[{"type":"reasoning.text","text":"Hmm.","index":0,"format":"f","signature":"s"},{"type":"reasoning.encrypted","data":"x","index":1}]}"#,
        ),
    ] {
        let response = stream(deltas, r#""stop""#);
        assert_eq!(response.message.reasoning(), "Hmm.");
        assert_eq!(response.message.visible_text(), "So.");
        let [thought, _] = &response.message.parts[..] else { panic!("{response:?}") };
        assert_eq!(thought.provider_block.as_ref().unwrap().json.get(), native);
        assert_eq!(message(expected), response);
    }
}

#[test]
fn parts_of_an_unknown_kind_are_kept() {
    let part = r#"{"type":"image_url", "image_url":{"url":"data:x","n":1.0}}"#;
    let content = format!(r#"{{"content":[{{"type":"text","text":"See:"}},{part}]}}"#);
    let response = message(&content);
    assert_eq!(response.message.visible_text(), "See:");
    let other = &response.message.parts[1];
    assert_eq!(
        (&other.content, other.provider_block.as_ref().unwrap().json.get()),
        (&PartContent::Other, part)
    );
    assert_eq!(stream(&[&content], r#""stop""#), response);
}

#[test]
fn only_the_first_of_several_answers_is_taken() {
    let data = r#"{"choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}"#;
    let response = decode_stream(ProviderApi::OpenAiChat, &sse_events(&[data])).unwrap();
    assert_eq!(response.message.visible_text(), "A");
}

#[test]
fn a_server_that_does_not_stream_is_read_all_the_same() {
    let body = r#"
        {"model":"m","choices":[{"message":{"content":"{\"a\"}","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let response = decode_stream(ProviderApi::OpenAiChat, &format!("{body}\n\n")).unwrap();
    assert_eq!(response, decode_body(ProviderApi::OpenAiChat, body).unwrap());
    assert_eq!(calls(&response), [("a", "f", "{}")]);
    assert_eq!(
        decode_stream(ProviderApi::OpenAiChat, &body[..body.len() - 1]).unwrap_err().kind,
        LlmErrorKind::Connection
    );
}

/// Proves: G79
#[test]
fn an_error_in_the_middle_of_a_response_has_the_partial_output() {
    let text = r#"{"choices":[{"delta":{"content":"Once"}}]}"#;
    for (data, kind, message) in [
        (
            r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
            LlmErrorKind::RetryLater { after: None },
            "slow down",
        ),
        (r#"{"error":{"message":"no more","code":402}}"#, LlmErrorKind::Billing, "no more"),
        (r#"{"error":"it broke"}"#, LlmErrorKind::RetryLater { after: None }, "it broke"),
        (
            r#"{"object":"error","message":"bad key","type":"AuthenticationError","code":401}"#,
            LlmErrorKind::Authentication,
            "bad key",
        ),
        (
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
            LlmErrorKind::RetryLater { after: None },
            "upstream",
        ),
        ("{\"cho", LlmErrorKind::InvalidResponse, "a chunk is not a JSON object"),
        (
            r#"{"error":{}}"#,
            LlmErrorKind::RetryLater { after: None },
            "the response reports an error without a message",
        ),
    ] {
        let failed = decode_stream(ProviderApi::OpenAiChat, &sse_events(&[text, data, "[DONE]"]))
            .unwrap_err();
        assert_eq!(
            failed,
            ApiError { kind, message: message.to_owned(), partial_output: Some("Once".to_owned()) },
            "{data}"
        );
    }
    let body = r#"{"error":{"message":"no more","code":402}}"#;
    assert_eq!(decode_body(ProviderApi::OpenAiChat, body).unwrap_err().kind, LlmErrorKind::Billing);
    assert_eq!(
        decode_stream(ProviderApi::OpenAiChat, body).unwrap_err().kind,
        LlmErrorKind::Billing
    );
}

#[test]
fn an_event_named_error_is_a_failure_whatever_it_holds() {
    for (data, kind, message) in [
        (r#"{"message":"no","code":401}"#, LlmErrorKind::Authentication, "no"),
        ("it broke", LlmErrorKind::InvalidResponse, "it broke"),
    ] {
        let body = format!("event: error\ndata: {data}\n\n");
        let error = decode_stream(ProviderApi::OpenAiChat, &body).unwrap_err();
        assert_eq!(error, ApiError { kind, message: message.to_owned(), partial_output: None });
    }
}

#[test]
fn a_message_that_repeats_the_chunks_before_it_is_not_read_twice() {
    let first = r#"{"choices":[{"delta":{"content":"A"}}]}"#;
    let last = r#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}]}"#;
    for data in [&[first, last][..], &[last]] {
        let response = decode_stream(ProviderApi::OpenAiChat, &sse_events(data)).unwrap();
        assert_eq!(response.message.visible_text(), "A");
    }
}

#[test]
fn a_body_of_another_api_is_an_invalid_response() {
    for body in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":[{"text":"x","finish_reason":"stop"}]}"#,
    ] {
        assert_eq!(
            decode_body(ProviderApi::OpenAiChat, body).unwrap_err().kind,
            LlmErrorKind::InvalidResponse,
            "{body}"
        );
    }
}
