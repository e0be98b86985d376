//! Answers of servers that speak like OpenAI, but not quite.

use crate::conversation::Said;
use crate::provider::codec::Fault;
use crate::provider::codec::cuts::{calls, events, streamed, whole};
use crate::provider::{Class, Finish, Response, Wire};

fn stream(deltas: &[&str], finish: &str) -> Response {
    let chunk = |delta: &str, finish: &str| {
        format!(r#"{{"choices":[{{"index":0,"delta":{delta},"finish_reason":{finish}}}]}}"#)
    };
    let mut data: Vec<_> = deltas.iter().map(|delta| chunk(delta, "null")).collect();
    data.push(chunk("{}", finish));
    streamed(Wire::OpenAiChat, &events(&data.iter().map(String::as_str).collect::<Vec<_>>()))
        .unwrap()
}

fn message(message: &str) -> Response {
    let body = format!(r#"{{"choices":[{{"message":{message},"finish_reason":"stop"}}]}}"#);
    whole(Wire::OpenAiChat, &body).unwrap()
}

#[test]
fn half_a_surrogate_pair_of_arguments_is_joined_with_the_other_in_the_next_piece() {
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
    assert_eq!(response.answer.shown(), "Hi");
    assert_eq!(calls(&response), [("a", "f", "{}")]);
    let native = response.answer.parts[1].native.as_ref().unwrap();
    assert!(native.block.get().contains(r#""x":2"#), "{native:?}");
}

/// What differs, the pieces of a message, and its calls: id, name, arguments.
type Row =
    (&'static str, &'static [&'static str], &'static [(&'static str, &'static str, &'static str)]);

const X: &str = r#"{"x":1}"#;

const NUMBERED: &[Row] = &[
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
            r#"{"tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"x\":1}"}}]}"#,
        ],
        &[("a", "f", X), ("a", "f", X)],
    ),
    (
        "no index, pieces by id",
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
        "the name again with every piece",
        &[
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}}]}"#,
            r#"{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":":1}"}}]}"#,
        ],
        &[("a", "f", X)],
    ),
    (
        "another id with every piece",
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
fn calls_are_told_apart_however_they_are_numbered() {
    for (what, deltas, expected) in NUMBERED {
        let response = stream(deltas, r#""stop""#);
        assert_eq!(calls(&response), *expected, "{what}");
        assert_eq!(response.finish, Finish::ToolCalls, "{what}");
        for (part, (id, ..)) in response.answer.parts.iter().zip(*expected) {
            assert_eq!(part.native.is_some(), !id.is_empty(), "{what}");
        }
        if let [delta] = deltas {
            assert_eq!(message(delta), response, "{what}");
        }
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
    for (deltas, whole, native) in [
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
        // The same in both is said once.
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
        assert_eq!(response.answer.reasoning(), "Hmm.");
        assert_eq!(response.answer.shown(), "So.");
        let [thought, _] = &response.answer.parts[..] else { panic!("{response:?}") };
        assert_eq!(thought.native.as_ref().unwrap().block.get(), native);
        assert_eq!(message(whole), response);
    }
}

#[test]
fn parts_of_an_unknown_kind_are_kept() {
    let part = r#"{"type":"image_url", "image_url":{"url":"data:x","n":1.0}}"#;
    let content = format!(r#"{{"content":[{{"type":"text","text":"See:"}},{part}]}}"#);
    let response = message(&content);
    assert_eq!(response.answer.shown(), "See:");
    let other = &response.answer.parts[1];
    assert_eq!((&other.said, other.native.as_ref().unwrap().block.get()), (&Said::Other, part));
    assert_eq!(stream(&[&content], r#""stop""#), response);
}

#[test]
fn only_the_first_of_several_answers_is_taken() {
    let data = r#"{"choices":[{"index":1,"delta":{"content":"B"}},{"index":0,"delta":{"content":"A"},"finish_reason":"stop"}]}"#;
    let response = streamed(Wire::OpenAiChat, &events(&[data])).unwrap();
    assert_eq!(response.answer.shown(), "A");
}

#[test]
fn a_server_that_does_not_stream_is_read_all_the_same() {
    let body = r#"
        {"model":"m","choices":[{"message":{"content":"{\"a\"}","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}}]},"finish_reason":"tool_calls"}]}"#;
    let response = streamed(Wire::OpenAiChat, &format!("{body}\n\n")).unwrap();
    assert_eq!(response, whole(Wire::OpenAiChat, body).unwrap());
    assert_eq!(calls(&response), [("a", "f", "{}")]);
    assert_eq!(
        streamed(Wire::OpenAiChat, &body[..body.len() - 1]).unwrap_err().class,
        Class::Connection
    );
}

/// Proves: G79
#[test]
fn a_failure_in_the_midst_of_an_answer_keeps_what_was_written() {
    let text = r#"{"choices":[{"delta":{"content":"Once"}}]}"#;
    for (data, class, message) in [
        (
            r#"{"error":{"message":"slow down","type":"requests","code":"rate_limit_exceeded"}}"#,
            Class::Later { after: None },
            "slow down",
        ),
        (r#"{"error":{"message":"no more","code":402}}"#, Class::Billing, "no more"),
        (r#"{"error":"it broke"}"#, Class::Later { after: None }, "it broke"),
        (
            r#"{"object":"error","message":"bad key","type":"AuthenticationError","code":401}"#,
            Class::Key,
            "bad key",
        ),
        (
            r#"{"choices":[{"delta":{"content":""},"finish_reason":"error","error":{"code":502,"message":"upstream"}}]}"#,
            Class::Later { after: None },
            "upstream",
        ),
        ("{\"cho", Class::Unreadable, "a chunk is no JSON object"),
        (
            r#"{"error":{}}"#,
            Class::Later { after: None },
            "the answer says that it failed, but not why",
        ),
    ] {
        let failed = streamed(Wire::OpenAiChat, &events(&[text, data, "[DONE]"])).unwrap_err();
        assert_eq!(
            failed,
            Fault { class, message: message.to_owned(), written: Some("Once".to_owned()) },
            "{data}"
        );
    }
    let body = r#"{"error":{"message":"no more","code":402}}"#;
    assert_eq!(whole(Wire::OpenAiChat, body).unwrap_err().class, Class::Billing);
    assert_eq!(streamed(Wire::OpenAiChat, body).unwrap_err().class, Class::Billing);
}

#[test]
fn an_event_named_error_is_a_failure_whatever_it_holds() {
    for (data, class, message) in [
        (r#"{"message":"no","code":401}"#, Class::Key, "no"),
        ("it broke", Class::Unreadable, "it broke"),
    ] {
        let body = format!("event: error\ndata: {data}\n\n");
        let failed = streamed(Wire::OpenAiChat, &body).unwrap_err();
        assert_eq!(failed, Fault { class, message: message.to_owned(), written: None });
    }
}

#[test]
fn a_message_that_repeats_the_pieces_before_it_is_not_read_twice() {
    let first = r#"{"choices":[{"delta":{"content":"A"}}]}"#;
    let last = r#"{"choices":[{"message":{"content":"A"},"finish_reason":"stop"}]}"#;
    for data in [&[first, last][..], &[last]] {
        let response = streamed(Wire::OpenAiChat, &events(data)).unwrap();
        assert_eq!(response.answer.shown(), "A");
    }
}

#[test]
fn what_is_no_answer_of_this_wire_is_unreadable() {
    for body in [
        "",
        "<html>",
        "[]",
        "{}",
        r#"{"choices":[]}"#,
        r#"{"choices":[{"text":"x","finish_reason":"stop"}]}"#,
    ] {
        assert_eq!(whole(Wire::OpenAiChat, body).unwrap_err().class, Class::Unreadable, "{body}");
    }
}
