//! Answers that break off, are cut or are too large.

use proptest::prelude::*;

use super::events;
use crate::provider::codec::{PARTS, cuts, is_json};
use crate::provider::{Class, Finish, Response, Wire};

const CALL: &[&str] = &[
    r#"{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}"#,
    r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
    r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"I look 👀."}}"#,
    r#"{"type":"content_block_stop","index":0}"#,
    r#"{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"a\":\"b"}}"#,
    r#"{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"}"}}"#,
    r#"{"type":"content_block_stop","index":1}"#,
    r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":9}}"#,
    r#"{"type":"message_stop"}"#,
];

/// Without `left` of its events, and with the end that `reason` says.
fn ending(first: usize, reason: &str) -> String {
    let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{reason}}}}}"#);
    let mut all = CALL[..first].to_vec();
    all.extend([end.as_str(), r#"{"type":"message_stop"}"#]);
    events(&all)
}

fn runs_a_cut_call(response: &Response) -> bool {
    let mut calls = response.answer.calls();
    response.finish == Finish::ToolCalls && calls.any(|call| !is_json(&call.arguments))
}

/// Proves: G77
#[test]
fn a_call_that_was_cut_is_never_one_to_run() {
    for reason in
        [r#""max_tokens""#, r#""tool_use""#, r#""end_turn""#, r#""stop_sequence""#, "null"]
    {
        // Its beginning alone, and with a piece of its arguments.
        for first in [5, 6] {
            let response = cuts::streamed(Wire::Anthropic, &ending(first, reason)).unwrap();
            assert_eq!(response.finish, Finish::Length, "{reason}, {first}");
            assert_eq!(response.answer.calls().count(), 1);
            let part = &response.answer.parts[1];
            assert!(first == 5 || part.native.is_none(), "half an input goes back nowhere");
        }
    }
    // Its arguments are all there, so that it has no end but needs none.
    let response = cuts::streamed(Wire::Anthropic, &ending(7, r#""tool_use""#)).unwrap();
    assert_eq!(response.finish, Finish::ToolCalls);
}

#[test]
fn a_call_that_ended_with_broken_arguments_is_left_to_be_repaired() {
    let mut all = CALL.to_vec();
    all.remove(6);
    let response = cuts::streamed(Wire::Anthropic, &events(&all)).unwrap();
    assert_eq!(response.finish, Finish::ToolCalls);
    assert_eq!(response.answer.calls().next().unwrap().arguments, r#"{"a":"b"#);
    assert_eq!(response.answer.parts[1].native, None);
}

#[test]
fn a_call_that_a_stop_sequence_cut_is_never_one_to_run() {
    let mut all = CALL.to_vec();
    all.remove(6);
    all[7] = r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence"}}"#;
    assert_eq!(cuts::streamed(Wire::Anthropic, &events(&all)).unwrap().finish, Finish::Length);
    let whole = r#"{"content":[{"type":"tool_use","id":"t","name":"look","input":"{\"a\":"}],"stop_reason":"stop_sequence"}"#;
    assert_eq!(cuts::whole(Wire::Anthropic, whole).unwrap().finish, Finish::Length);
}

#[test]
fn nothing_counts_behind_the_end() {
    let more = [
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"more"}}"#,
        r#"{"type":"error","error":{"type":"api_error","message":"late"}}"#,
    ];
    let text = format!("{}{}data: no JSON\n\n", events(CALL), events(&more));
    let all = cuts::streamed(Wire::Anthropic, &events(CALL)).unwrap();
    assert_eq!(cuts::streamed(Wire::Anthropic, &text).unwrap(), all);
}

#[test]
fn a_stream_that_breaks_off_is_a_failure_with_what_was_written() {
    for last in 0..8 {
        let fault =
            cuts::streamed(Wire::Anthropic, &format!("{}\n", events(&CALL[..last]))).unwrap_err();
        assert_eq!(fault.class, Class::Connection, "{last}");
        assert_eq!(fault.written.as_deref(), Some(if last < 3 { "" } else { "I look 👀." }));
    }
    // Behind the reason only the good-bye is missing.
    let all = cuts::streamed(Wire::Anthropic, &events(CALL)).unwrap();
    assert_eq!(cuts::streamed(Wire::Anthropic, &events(&CALL[..9])).unwrap(), all);
}

#[test]
fn what_is_no_answer_is_unreadable() {
    for text in ["", "[]", "<html>", "{}", r#"{"content":"text"}"#, r#"{"content":[}"#] {
        let fault = cuts::whole(Wire::Anthropic, text).unwrap_err();
        assert_eq!(fault.class, Class::Unreadable, "{text}");
    }
    for text in [
        "event: content_block_delta\ndata: {\"type\":\n\n",
        "event: content_block_start\ndata: {\"index\":0,\"content_block\":[]}\n\n",
        "event: content_block_delta\ndata: {\"delta\":{\"type\":\"input_json_delta\"}}\n\n",
    ] {
        assert_eq!(
            cuts::streamed(Wire::Anthropic, text).unwrap_err().class,
            Class::Unreadable,
            "{text}"
        );
    }
}

#[test]
fn an_answer_has_at_most_so_many_parts() {
    let text = |parts: usize| {
        let blocks = vec![r#"{"type":"text","text":"a"}"#; parts].join(",");
        format!(r#"{{"content":[{blocks}]}}"#)
    };
    let response = cuts::whole(Wire::Anthropic, &text(PARTS)).unwrap();
    assert_eq!(response.answer.parts.len(), PARTS);
    let fault = cuts::whole(Wire::Anthropic, &text(PARTS + 1)).unwrap_err();
    assert_eq!(fault.class, Class::Unreadable);
    let start = r#"{"type":"content_block_start","content_block":{"type":"text","text":"a"}}"#;
    let stream = |parts: usize| {
        let mut all = vec![start; parts];
        all.push(r#"{"type":"message_stop"}"#);
        events(&all)
    };
    let read = |parts| cuts::read(Wire::Anthropic, true, stream(parts).as_bytes(), &[4096]).0;
    assert_eq!(read(PARTS).unwrap().answer.parts.len(), PARTS);
    assert_eq!(read(PARTS + 1).unwrap_err().class, Class::Unreadable);
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_piece() {
    let start = r#"{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"look","input":{}}}"#;
    let delta = |json: &str| {
        format!(
            "event: content_block_delta\ndata: {{\"type\":\"content_block_delta\",\"index\":0,\"delta\":{{\"type\":\"input_json_delta\",\"partial_json\":\"{json}\"}}}}\n\n"
        )
    };
    let body = [
        events(&[start]),
        delta(r#"{\"p\":\"\ud83d"#),
        delta(r#"\ude00\"}"#),
        events(&[r#"{"type":"content_block_stop","index":0}"#, r#"{"type":"message_stop"}"#]),
    ];
    let response = cuts::streamed(Wire::Anthropic, &body.concat()).unwrap();
    let call = super::call("t", "look", "{\"p\":\"\u{1f600}\"}");
    assert_eq!(response.answer.parts[0].said, call);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..20) {
        for streaming in [true, false] {
            let (response, pieces) = cuts::read(Wire::Anthropic, streaming, &bytes, &[size]);
            if let (true, Ok(response)) = (streaming, response) {
                cuts::are_the_answer(&pieces, &response);
            }
        }
        let _fault = crate::provider::anthropic::fault(400, &bytes);
    }

    /// Lines of a real stream, some lost, some twice, in any order, the whole cut anywhere.
    #[test]
    fn no_stream_makes_it_run_a_cut_call(
        order in proptest::collection::vec(0..CALL.len(), 0..14),
        cut in 0.0..1.0_f64,
        size in 1_usize..50,
    ) {
        let all: Vec<&str> = order.iter().map(|at| CALL[*at]).collect();
        let text = events(&all);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        if let (Ok(response), _) = cuts::read(Wire::Anthropic, true, bytes, &[size]) {
            let stopped = order.iter().filter(|at| **at == 7).count() > 0;
            prop_assert!(stopped || !runs_a_cut_call(&response), "{response:?}");
        }
    }

    #[test]
    fn a_real_stream_cut_anywhere_is_broken_off_or_whole(cut in 0.0..1.0_f64, size in 1_usize..50) {
        let text = events(CALL);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        match cuts::read(Wire::Anthropic, true, bytes, &[size]).0 {
            Ok(response) => {
                prop_assert_eq!(&response.answer.parts[1].said, &super::call("t", "look", r#"{"a":"b"}"#));
            }
            Err(fault) => prop_assert_eq!(fault.class, Class::Connection),
        }
    }
}
