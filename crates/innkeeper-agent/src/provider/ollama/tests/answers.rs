//! Answers, whole and line by line.

use proptest::prelude::*;

use super::call;
use crate::conversation::{Part, Said};
use crate::provider::codec::{PARTS, cuts};
use crate::provider::{Class, Finish, Response, Usage, Wire};

const LINES: &[&str] = &[
    r#"{"model":"qwen3","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"Let me "},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"","thinking":"see."},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"Grüße, 🦀"},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"!","tool_calls":[{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}}]},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"list","arguments":{}}}]},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":5,"prompt_eval_count":120,"prompt_eval_cached_count":100,"eval_count":30}"#,
];

const WHOLE: &str = r#"{"model":"qwen3","message":{"role":"assistant","content":"Grüße, 🦀!","thinking":"Let me see.","tool_calls":[{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}},{"function":{"name":"list","arguments":{}}}]},"done_reason":"stop","done":true,"prompt_eval_count":120,"prompt_eval_cached_count":100,"eval_count":30}"#;

fn lines(all: &[&str]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}

fn said(response: &Response) -> Vec<Said> {
    response.answer.parts.iter().map(|part| part.said.clone()).collect()
}

fn block(part: &Part) -> &str {
    part.native.as_ref().unwrap().block.get()
}

#[test]
fn calls_on_several_lines_without_ids_are_read_and_streamed_or_not_the_answer_is_the_same() {
    let streamed = cuts::streamed(Wire::Ollama, &lines(LINES)).unwrap();
    assert_eq!(streamed, cuts::whole(Wire::Ollama, WHOLE).unwrap());
    let expected = [
        Said::Reasoning("Let me see.".to_owned()),
        Said::Text("Grüße, 🦀!".to_owned()),
        call("call_x", "look", r#"{"n": 12345678901234567890.10,"s":"}"}"#),
        call("", "list", "{}"),
    ];
    assert_eq!(said(&streamed), expected);
    assert_eq!(block(&streamed.answer.parts[0]), r#"{"thinking":"Let me see."}"#);
    let own = r#"{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}}"#;
    assert_eq!(block(&streamed.answer.parts[2]), own);
    assert_eq!(streamed.finish, Finish::ToolCalls);
    assert_eq!(streamed.model.as_deref(), Some("qwen3"));
    let usage = Usage {
        prompt_tokens: 120,
        completion_tokens: 30,
        cached_tokens: 100,
        reasoning_tokens: 0,
    };
    assert_eq!(streamed.usage, Some(usage));
    let behind = format!("{}no JSON\n", lines(LINES));
    assert_eq!(cuts::streamed(Wire::Ollama, &behind).unwrap(), streamed);
    // Without its last line break it is the same answer.
    assert_eq!(cuts::streamed(Wire::Ollama, lines(LINES).trim_end()).unwrap(), streamed);
}

/// Proves: G53
#[test]
fn answers_of_every_kind_are_read() {
    let one = r#"{"function":{"name":"f","arguments":{"x":1}}}"#;
    let two = format!("{one},{one}");
    let (hi, f) = (|| Said::Text("Hi".to_owned()), || call("", "f", r#"{"x":1}"#));
    for (text, calls, reason, parts, finish) in [
        ("Hi", one, r#""stop""#, vec![hi(), f()], Finish::ToolCalls),
        ("", two.as_str(), r#""stop""#, vec![f(), f()], Finish::ToolCalls),
        ("", one, "null", vec![f()], Finish::ToolCalls),
        ("", "", r#""stop""#, vec![], Finish::Stop),
        ("", "", r#""load""#, vec![], Finish::Other("load".to_owned())),
        // A refusal is text like any other.
        ("Hi", "", r#""stop""#, vec![hi()], Finish::Stop),
        ("Hi", "", r#""length""#, vec![hi()], Finish::Length),
        ("", "", r#""new""#, vec![], Finish::Other("new".to_owned())),
    ] {
        let message =
            format!(r#"{{"role":"assistant","content":"{text}","tool_calls":[{calls}]}}"#);
        let answer = format!(r#"{{"message":{message},"done":true,"done_reason":{reason}}}"#);
        let response = cuts::whole(Wire::Ollama, &answer).unwrap();
        assert_eq!((said(&response), &response.finish), (parts, &finish), "{answer}");
        assert_eq!(cuts::streamed(Wire::Ollama, &format!("{answer}\n")).unwrap(), response);
    }
}

/// Proves: G77
#[test]
fn an_answer_that_was_cut_at_its_greatest_length_says_so_with_and_without_calls() {
    for calls in ["", r#"{"function":{"name":"f","arguments":{}}}"#] {
        let message = format!(r#"{{"content":"Hi","tool_calls":[{calls}]}}"#);
        let answer =
            format!("{{\"message\":{message},\"done\":true,\"done_reason\":\"length\"}}\n");
        assert_eq!(cuts::streamed(Wire::Ollama, &answer).unwrap().finish, Finish::Length);
        assert_eq!(cuts::whole(Wire::Ollama, &answer).unwrap().finish, Finish::Length);
    }
}

/// As ollambda streams: no `content`, no reason, and calls behind the line that is done.
#[test]
fn calls_behind_the_line_that_is_done_count() {
    let text = lines(&[
        r#"{"model":"m","message":{"role":"assistant"},"done":false}"#,
        r#"{"model":"m","message":{"role":"assistant"},"done":true}"#,
        r#"{"model":"m","message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},"done":false}"#,
    ]);
    let response = cuts::streamed(Wire::Ollama, &text).unwrap();
    assert_eq!(
        (said(&response), response.finish),
        (vec![call("", "f", r#"{"x":1}"#)], Finish::ToolCalls)
    );
}

#[test]
fn arguments_and_functions_in_other_shapes_are_read() {
    let text = r#"{"message":{"content":null,"tool_calls":[{"id":7,"function":{"name":"f","arguments":"{\"x\":1.0}"}},{"name":"g","arguments":{"y": 2}},{"function":{"name":"h"}},"?",{"function":{}}],"extra":1},"done":true}"#;
    let response = cuts::whole(Wire::Ollama, text).unwrap();
    let expected = [
        call("", "f", r#"{"x":1.0}"#),
        call("", "g", r#"{"y": 2}"#),
        call("", "h", "{}"),
        call("", "", "{}"),
    ];
    assert_eq!(said(&response), expected);
    // None of them is what Ollama takes back.
    assert!(response.answer.parts.iter().all(|part| part.native.is_none()));
}

#[test]
fn a_stream_without_a_line_that_is_done_is_broken_off() {
    for last in 0..LINES.len() {
        let fault =
            cuts::streamed(Wire::Ollama, &format!("{}\n", lines(&LINES[..last]))).unwrap_err();
        assert_eq!(fault.class, Class::Connection);
        let written = ["", "", "", "Grüße, 🦀", "Grüße, 🦀!", "Grüße, 🦀!"][last];
        assert_eq!(fault.written.as_deref(), Some(written), "{last}");
    }
}

#[test]
fn what_is_no_answer_is_unreadable() {
    for text in ["", "[]", "<html>", "{}", r#"{"message":null}"#, "{"] {
        let fault = cuts::whole(Wire::Ollama, text).unwrap_err();
        assert_eq!(fault.class, Class::Unreadable, "{text}");
    }
    assert_eq!(
        cuts::streamed(Wire::Ollama, "<html>\n</html>\n").unwrap_err().class,
        Class::Unreadable
    );
    assert_eq!(cuts::streamed(Wire::Ollama, "event: x\n").unwrap_err().class, Class::Unreadable);
}

#[test]
fn an_answer_has_at_most_so_many_calls() {
    let line = |calls: usize| {
        let calls = vec![r#"{"function":{"name":"f"}}"#; calls].join(",");
        format!(r#"{{"message":{{"tool_calls":[{calls}]}},"done":true}}"#)
    };
    let response = cuts::whole(Wire::Ollama, &line(PARTS)).unwrap();
    assert_eq!(response.answer.calls().count(), PARTS);
    assert_eq!(cuts::whole(Wire::Ollama, &line(PARTS + 1)).unwrap_err().class, Class::Unreadable);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..20) {
        for streaming in [true, false] {
            let _read = cuts::read(Wire::Ollama, streaming, &bytes, &[size]);
        }
        let _fault = crate::provider::ollama::fault(400, &bytes);
    }

    #[test]
    fn a_real_stream_cut_anywhere_is_broken_off_or_whole(cut in 0.0..1.0_f64, size in 1_usize..50) {
        let text = lines(LINES);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        match cuts::read(Wire::Ollama, true, bytes, &[size]).0 {
            Ok(response) => prop_assert_eq!(response, cuts::whole(Wire::Ollama, WHOLE).unwrap()),
            Err(fault) => prop_assert_eq!(fault.class, Class::Connection),
        }
    }
}
