//! Tests of responses, unstreamed and streamed.

use proptest::prelude::*;

use super::call;
use crate::conversation::{ContentPart, PartContent};
use crate::provider::codec::{MAX_CONTENT_PARTS, chunking};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Response, Usage};

const LINES: &[&str] = &[
    r#"{"model":"qwen3","created_at":"2026-11-01T00:00:00Z","message":{"role":"assistant","content":"","thinking":"Let me "},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"","thinking":"see."},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"Grüße, 🦀"},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"!","tool_calls":[{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}}]},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":"","tool_calls":[{"function":{"name":"list","arguments":{}}}]},"done":false}"#,
    r#"{"model":"qwen3","message":{"role":"assistant","content":""},"done_reason":"stop","done":true,"total_duration":5,"prompt_eval_count":120,"prompt_eval_cached_count":100,"eval_count":30}"#,
];

const BODY: &str = r#"{"model":"qwen3","message":{"role":"assistant","content":"Grüße, 🦀!","thinking":"Let me see.","tool_calls":[{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}},{"function":{"name":"list","arguments":{}}}]},"done_reason":"stop","done":true,"prompt_eval_count":120,"prompt_eval_cached_count":100,"eval_count":30}"#;

fn lines(all: &[&str]) -> String {
    all.iter().map(|line| format!("{line}\n")).collect()
}

fn contents(response: &Response) -> Vec<PartContent> {
    response.message.parts.iter().map(|part| part.content.clone()).collect()
}

fn block(part: &ContentPart) -> &str {
    part.provider_block.as_ref().unwrap().json.get()
}

#[test]
fn calls_on_several_lines_without_ids_are_read_and_streamed_or_not_the_answer_is_the_same() {
    let streamed = chunking::decode_stream(ProviderApi::Ollama, &lines(LINES)).unwrap();
    assert_eq!(streamed, chunking::decode_body(ProviderApi::Ollama, BODY).unwrap());
    let expected = [
        PartContent::Reasoning("Let me see.".to_owned()),
        PartContent::Text("Grüße, 🦀!".to_owned()),
        call("call_x", "look", r#"{"n": 12345678901234567890.10,"s":"}"}"#),
        call("", "list", "{}"),
    ];
    assert_eq!(contents(&streamed), expected);
    assert_eq!(block(&streamed.message.parts[0]), r#"{"thinking":"Let me see."}"#);
    let native_call = r#"{"id":"call_x","function":{"index":0,"name":"look","arguments":{"n": 12345678901234567890.10,"s":"}"}}}"#;
    assert_eq!(block(&streamed.message.parts[2]), native_call);
    assert_eq!(streamed.finish_reason, FinishReason::ToolCalls);
    assert_eq!(streamed.model.as_deref(), Some("qwen3"));
    let usage = Usage {
        prompt_tokens: 120,
        completion_tokens: 30,
        cached_tokens: 100,
        reasoning_tokens: 0,
        cost: None,
    };
    assert_eq!(streamed.usage, Some(usage));
    let with_trailing_text = format!("{}no JSON\n", lines(LINES));
    assert_eq!(
        chunking::decode_stream(ProviderApi::Ollama, &with_trailing_text).unwrap(),
        streamed
    );
    // The response is the same without the last line break.
    assert_eq!(
        chunking::decode_stream(ProviderApi::Ollama, lines(LINES).trim_end()).unwrap(),
        streamed
    );
}

/// Proves: G53
#[test]
fn answers_of_every_kind_are_read() {
    let call_json = r#"{"function":{"name":"f","arguments":{"x":1}}}"#;
    let two = format!("{call_json},{call_json}");
    let (hi, f) = (|| PartContent::Text("Hi".to_owned()), || call("", "f", r#"{"x":1}"#));
    for (text, calls, reason, parts, finish_reason) in [
        ("Hi", call_json, r#""stop""#, vec![hi(), f()], FinishReason::ToolCalls),
        ("", two.as_str(), r#""stop""#, vec![f(), f()], FinishReason::ToolCalls),
        ("", call_json, "null", vec![f()], FinishReason::ToolCalls),
        ("", "", r#""stop""#, vec![], FinishReason::Stop),
        ("", "", r#""load""#, vec![], FinishReason::Other("load".to_owned())),
        // Ollama reports a refusal as text.
        ("Hi", "", r#""stop""#, vec![hi()], FinishReason::Stop),
        ("Hi", "", r#""length""#, vec![hi()], FinishReason::Length),
        ("", "", r#""new""#, vec![], FinishReason::Other("new".to_owned())),
    ] {
        let message =
            format!(r#"{{"role":"assistant","content":"{text}","tool_calls":[{calls}]}}"#);
        let body = format!(r#"{{"message":{message},"done":true,"done_reason":{reason}}}"#);
        let response = chunking::decode_body(ProviderApi::Ollama, &body).unwrap();
        assert_eq!(
            (contents(&response), &response.finish_reason),
            (parts, &finish_reason),
            "{body}"
        );
        assert_eq!(
            chunking::decode_stream(ProviderApi::Ollama, &format!("{body}\n")).unwrap(),
            response
        );
    }
}

/// Proves: G77
#[test]
fn a_response_truncated_at_max_tokens_says_so_with_and_without_calls() {
    for calls in ["", r#"{"function":{"name":"f","arguments":{}}}"#] {
        let message = format!(r#"{{"content":"Hi","tool_calls":[{calls}]}}"#);
        let body = format!("{{\"message\":{message},\"done\":true,\"done_reason\":\"length\"}}\n");
        assert_eq!(
            chunking::decode_stream(ProviderApi::Ollama, &body).unwrap().finish_reason,
            FinishReason::Length
        );
        assert_eq!(
            chunking::decode_body(ProviderApi::Ollama, &body).unwrap().finish_reason,
            FinishReason::Length
        );
    }
}

/// A stream of ollambda: no `content`, no done reason, and calls after the line with `done`.
#[test]
fn calls_behind_the_line_that_is_done_count() {
    let text = lines(&[
        r#"{"model":"m","message":{"role":"assistant"},"done":false}"#,
        r#"{"model":"m","message":{"role":"assistant"},"done":true}"#,
        r#"{"model":"m","message":{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":{"x":1}}}]},"done":false}"#,
    ]);
    let response = chunking::decode_stream(ProviderApi::Ollama, &text).unwrap();
    assert_eq!(
        (contents(&response), response.finish_reason),
        (vec![call("", "f", r#"{"x":1}"#)], FinishReason::ToolCalls)
    );
}

#[test]
fn arguments_and_functions_in_other_shapes_are_read() {
    let text = r#"{"message":{"content":null,"tool_calls":[{"id":7,"function":{"name":"f","arguments":"{\"x\":1.0}"}},{"name":"g","arguments":{"y": 2}},{"function":{"name":"h"}},"?",{"function":{}}],"extra":1},"done":true}"#;
    let response = chunking::decode_body(ProviderApi::Ollama, text).unwrap();
    let expected = [
        call("", "f", r#"{"x":1.0}"#),
        call("", "g", r#"{"y": 2}"#),
        call("", "h", "{}"),
        call("", "", "{}"),
    ];
    assert_eq!(contents(&response), expected);
    // Ollama does not accept any of these calls verbatim.
    assert!(response.message.parts.iter().all(|part| part.provider_block.is_none()));
}

#[test]
fn a_stream_without_a_line_that_is_done_is_broken_off() {
    for last in 0..LINES.len() {
        let error =
            chunking::decode_stream(ProviderApi::Ollama, &format!("{}\n", lines(&LINES[..last])))
                .unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Connection);
        let partial_output = ["", "", "", "Grüße, 🦀", "Grüße, 🦀!", "Grüße, 🦀!"][last];
        assert_eq!(error.partial_output.as_deref(), Some(partial_output), "{last}");
    }
}

#[test]
fn a_body_that_is_no_response_is_an_invalid_response() {
    for text in ["", "[]", "<html>", "{}", r#"{"message":null}"#, "{"] {
        let error = chunking::decode_body(ProviderApi::Ollama, text).unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::InvalidResponse, "{text}");
    }
    assert_eq!(
        chunking::decode_stream(ProviderApi::Ollama, "<html>\n</html>\n").unwrap_err().kind,
        LlmErrorKind::InvalidResponse
    );
    assert_eq!(
        chunking::decode_stream(ProviderApi::Ollama, "event: x\n").unwrap_err().kind,
        LlmErrorKind::InvalidResponse
    );
}

#[test]
fn the_number_of_calls_of_a_response_is_limited() {
    let line = |calls: usize| {
        let calls = vec![r#"{"function":{"name":"f"}}"#; calls].join(",");
        format!(r#"{{"message":{{"tool_calls":[{calls}]}},"done":true}}"#)
    };
    let response = chunking::decode_body(ProviderApi::Ollama, &line(MAX_CONTENT_PARTS)).unwrap();
    assert_eq!(response.message.calls().count(), MAX_CONTENT_PARTS);
    assert_eq!(
        chunking::decode_body(ProviderApi::Ollama, &line(MAX_CONTENT_PARTS + 1)).unwrap_err().kind,
        LlmErrorKind::InvalidResponse
    );
}

proptest! {
    #[test]
    fn no_bytes_make_it_panic(bytes in proptest::collection::vec(any::<u8>(), 0..300), size in 1_usize..20) {
        for streaming in [true, false] {
            let _read = chunking::decode_chunked(ProviderApi::Ollama, streaming, &bytes, &[size]);
        }
        let _fault = crate::provider::ollama::decode_error(400, &bytes);
    }

    #[test]
    fn a_real_stream_cut_anywhere_is_broken_off_or_whole(cut in 0.0..1.0_f64, size in 1_usize..50) {
        let text = lines(LINES);
        let bytes = &text.as_bytes()[..(text.len() as f64 * cut) as usize];
        match chunking::decode_chunked(ProviderApi::Ollama, true, bytes, &[size]).0 {
            Ok(response) => prop_assert_eq!(response, chunking::decode_body(ProviderApi::Ollama, BODY).unwrap()),
            Err(fault) => prop_assert_eq!(fault.kind, LlmErrorKind::Connection),
        }
    }
}
