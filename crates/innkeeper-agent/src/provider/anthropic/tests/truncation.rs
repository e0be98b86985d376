//! Tests of responses that are incomplete, truncated or too large.

use proptest::prelude::*;

use super::events;
use crate::provider::codec::{MAX_CONTENT_PARTS, chunking, is_json};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Response};

const TOOL_USE_EVENTS: &[&str] = &[
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

/// Returns a stream of the first events, ended with the given stop reason.
fn stream_with_stop_reason(first: usize, reason: &str) -> String {
    let end = format!(r#"{{"type":"message_delta","delta":{{"stop_reason":{reason}}}}}"#);
    let mut all = TOOL_USE_EVENTS[..first].to_vec();
    all.extend([end.as_str(), r#"{"type":"message_stop"}"#]);
    events(&all)
}

fn runs_truncated_call(response: &Response) -> bool {
    response.finish_reason == FinishReason::ToolCalls
        && response.message.calls().any(|call| !call.is_cut && !is_json(&call.arguments))
}

/// Proves: G77
#[test]
fn a_call_that_was_cut_is_never_one_to_run() {
    for reason in ["max_tokens", "tool_use", "end_turn", "stop_sequence", "pause_turn", "brand_new"]
    {
        // With the start event alone, and with one delta of the arguments.
        for first in [5, 6] {
            let response = chunking::decode_stream(
                ProviderApi::Anthropic,
                &stream_with_stop_reason(first, &format!("{reason:?}")),
            )
            .unwrap();
            assert_ne!(response.finish_reason, FinishReason::ToolCalls, "{reason}, {first}");
            assert!(response.message.calls().all(|call| call.is_cut), "{reason}, {first}");
            assert_eq!(response.message.calls().count(), 1);
            let part = &response.message.parts[1];
            assert!(first == 5 || part.provider_block.is_none(), "half an input goes back nowhere");
        }
    }
    // The arguments are complete JSON, so the missing stop event does not matter.
    let response = chunking::decode_stream(
        ProviderApi::Anthropic,
        &stream_with_stop_reason(7, r#""tool_use""#),
    )
    .unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
}

#[test]
fn what_a_proxy_starts_again_counts_once() {
    let [start, block, delta, rest, stop] = [0, 4, 5, 6, 7].map(|at| TOOL_USE_EVENTS[at]);
    let other = block.replace(r#""id":"t""#, r#""id":"other""#);
    for before in [
        &[block][..],
        &[block, delta, rest, stop],
        &[other.as_str(), delta, rest, stop, start],
        &[other.as_str(), start],
    ] {
        let body = events(
            &[&[start], before, &[block, delta, rest, stop], &TOOL_USE_EVENTS[8..]].concat(),
        );
        let response = chunking::decode_stream(ProviderApi::Anthropic, &body).unwrap();
        let contents: Vec<_> = response.message.parts.iter().map(|part| &part.content).collect();
        assert_eq!(contents, [&super::call("t", "look", r#"{"a":"b"}"#)], "{before:?}");
        assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    }
}

#[test]
fn a_message_without_an_end_is_an_incomplete_stream() {
    let without_delta = [&TOOL_USE_EVENTS[..8], &TOOL_USE_EVENTS[9..]].concat();
    let error =
        chunking::decode_stream(ProviderApi::Anthropic, &events(&without_delta)).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::Connection);
    // Some servers say that the message ends, but not why.
    let response =
        chunking::decode_stream(ProviderApi::Anthropic, &stream_with_stop_reason(4, "null"));
    assert_eq!(response.unwrap().finish_reason, FinishReason::Stop);
}

#[test]
fn a_call_that_ended_with_broken_arguments_is_left_to_be_repaired() {
    let mut all = TOOL_USE_EVENTS.to_vec();
    all.remove(6);
    let response = chunking::decode_stream(ProviderApi::Anthropic, &events(&all)).unwrap();
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(response.message.calls().next().unwrap().arguments, r#"{"a":"b"#);
    assert_eq!(response.message.parts[1].provider_block, None);
}

#[test]
fn a_call_that_a_stop_sequence_cut_is_never_one_to_run() {
    let mut all = TOOL_USE_EVENTS.to_vec();
    all.remove(6);
    all[7] = r#"{"type":"message_delta","delta":{"stop_reason":"stop_sequence"}}"#;
    assert_eq!(
        chunking::decode_stream(ProviderApi::Anthropic, &events(&all)).unwrap().finish_reason,
        FinishReason::Length
    );
    let body = r#"{"content":[{"type":"tool_use","id":"t","name":"look","input":"{\"a\":"}],"stop_reason":"stop_sequence"}"#;
    assert_eq!(
        chunking::decode_body(ProviderApi::Anthropic, body).unwrap().finish_reason,
        FinishReason::Length
    );
}

#[test]
fn nothing_counts_behind_the_end() {
    let more = [
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"more"}}"#,
        r#"{"type":"error","error":{"type":"api_error","message":"late"}}"#,
    ];
    let text = format!("{}{}data: no JSON\n\n", events(TOOL_USE_EVENTS), events(&more));
    let all = chunking::decode_stream(ProviderApi::Anthropic, &events(TOOL_USE_EVENTS)).unwrap();
    assert_eq!(chunking::decode_stream(ProviderApi::Anthropic, &text).unwrap(), all);
}

#[test]
fn an_incomplete_stream_is_an_error_with_the_partial_output() {
    for last in 0..8 {
        let error = chunking::decode_stream(
            ProviderApi::Anthropic,
            &format!("{}\n", events(&TOOL_USE_EVENTS[..last])),
        )
        .unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Connection, "{last}");
        assert_eq!(error.partial_output.as_deref(), Some(if last < 3 { "" } else { "I look 👀." }));
    }
    // After the stop reason only `message_stop` is missing.
    let all = chunking::decode_stream(ProviderApi::Anthropic, &events(TOOL_USE_EVENTS)).unwrap();
    assert_eq!(
        chunking::decode_stream(ProviderApi::Anthropic, &events(&TOOL_USE_EVENTS[..9])).unwrap(),
        all
    );
}

#[test]
fn a_body_that_is_no_response_is_an_invalid_response() {
    for text in ["", "[]", "<html>", "{}", r#"{"content":"text"}"#, r#"{"content":[}"#] {
        let error = chunking::decode_body(ProviderApi::Anthropic, text).unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::InvalidResponse, "{text}");
    }
    for text in [
        "event: content_block_delta\ndata: {\"type\":\n\n",
        "event: content_block_start\ndata: {\"index\":0,\"content_block\":[]}\n\n",
        "event: content_block_delta\ndata: {\"delta\":{\"type\":\"input_json_delta\"}}\n\n",
    ] {
        assert_eq!(
            chunking::decode_stream(ProviderApi::Anthropic, text).unwrap_err().kind,
            LlmErrorKind::InvalidResponse,
            "{text}"
        );
    }
}

#[test]
fn the_number_of_parts_of_a_response_is_limited() {
    let text = |parts: usize| {
        let blocks = vec![r#"{"type":"text","text":"a"}"#; parts].join(",");
        format!(r#"{{"content":[{blocks}]}}"#)
    };
    let response = chunking::decode_body(ProviderApi::Anthropic, &text(MAX_CONTENT_PARTS)).unwrap();
    assert_eq!(response.message.parts.len(), MAX_CONTENT_PARTS);
    let error =
        chunking::decode_body(ProviderApi::Anthropic, &text(MAX_CONTENT_PARTS + 1)).unwrap_err();
    assert_eq!(error.kind, LlmErrorKind::InvalidResponse);
    let start = r#"{"type":"content_block_start","content_block":{"type":"text","text":"a"}}"#;
    let stream = |parts: usize| {
        let mut all = vec![start; parts];
        all.push(r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"}}"#);
        events(&all)
    };
    let read = |parts| {
        chunking::decode_chunked(ProviderApi::Anthropic, true, stream(parts).as_bytes(), &[4096]).0
    };
    assert_eq!(read(MAX_CONTENT_PARTS).unwrap().message.parts.len(), MAX_CONTENT_PARTS);
    assert_eq!(read(MAX_CONTENT_PARTS + 1).unwrap_err().kind, LlmErrorKind::InvalidResponse);
}

#[test]
fn half_a_surrogate_pair_is_joined_with_the_other_in_the_next_chunk() {
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
        events(&[
            r#"{"type":"content_block_stop","index":0}"#,
            r#"{"type":"message_delta","delta":{"stop_reason":"tool_use"}}"#,
        ]),
    ];
    let response = chunking::decode_stream(ProviderApi::Anthropic, &body.concat()).unwrap();
    let call = super::call("t", "look", "{\"p\":\"\u{1f600}\"}");
    assert_eq!(response.message.parts[0].content, call);
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..20) {
        for streaming in [true, false] {
            let (response, pieces) = chunking::decode_chunked(ProviderApi::Anthropic, streaming, &bytes, &[size]);
            if let (true, Ok(response)) = (streaming, response) {
                chunking::assert_chunks_match(&pieces, &response);
            }
        }
        let _fault = crate::provider::anthropic::decode_error(400, &bytes);
    }

    /// Lines of a real stream: some lost, some repeated, in any order, truncated at any byte.
    #[test]
    fn no_stream_makes_it_run_a_cut_call(
        order in proptest::collection::vec(0..TOOL_USE_EVENTS.len(), 0..14),
        cut in 0.0..1.0_f64,
        size in 1_usize..50,
    ) {
        let all: Vec<&str> = order.iter().map(|at| TOOL_USE_EVENTS[*at]).collect();
        let text = events(&all);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        if let (Ok(response), _) = chunking::decode_chunked(ProviderApi::Anthropic, true, bytes, &[size]) {
            let stopped = order.iter().filter(|at| **at == 7).count() > 0;
            prop_assert!(stopped || !runs_truncated_call(&response), "{response:?}");
        }
    }

    #[test]
    fn a_real_stream_cut_anywhere_is_broken_off_or_whole(cut in 0.0..1.0_f64, size in 1_usize..50) {
        let text = events(TOOL_USE_EVENTS);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        match chunking::decode_chunked(ProviderApi::Anthropic, true, bytes, &[size]).0 {
            Ok(response) => {
                prop_assert_eq!(&response.message.parts[1].content, &super::call("t", "look", r#"{"a":"b"}"#));
            }
            Err(fault) => prop_assert_eq!(fault.kind, LlmErrorKind::Connection),
        }
    }
}
