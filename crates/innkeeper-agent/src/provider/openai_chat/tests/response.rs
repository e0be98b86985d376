//! Tests of OpenAI's responses.

use proptest::prelude::*;

use crate::provider::codec::ApiError;
use crate::provider::codec::chunking::{
    calls, decode_body, decode_chunked, decode_stream, sse_events,
};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Response, Usage};

/// Text, two parallel calls, a number that no `f64` represents, and the usage.
const CALLS: &[&str] = &[
    r#"{"id":"chatcmpl-1","object":"chat.completion.chunk","created":1,"model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"role":"assistant","content":"","refusal":null},"logprobs":null,"finish_reason":null}],"usage":null,"obfuscation":"x"}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"Let me "},"finish_reason":null}],"usage":null}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"content":"s\u00e9e 🙂"},"finish_reason":null}],"usage":null}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_a","type":"function","function":{"name":"weather","arguments":""}}]},"finish_reason":null}]}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"city\":\"Z\u00fc"}}]},"finish_reason":null}]}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"id":"call_b","type":"function","function":{"name":"add","arguments":""}}]},"finish_reason":null}]}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"rich\"}"}},{"index":1,"function":{"arguments":"{\"n\": 12345678901234567890123"}}]},"finish_reason":null}]}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"}"}}]},"finish_reason":null}]}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}],"usage":null}"#,
    r#"{"id":"chatcmpl-1","model":"gpt-4o-2024-08-06","choices":[],"usage":{"prompt_tokens":81,"completion_tokens":45,"total_tokens":126,"prompt_tokens_details":{"cached_tokens":64,"audio_tokens":0},"completion_tokens_details":{"reasoning_tokens":12}}}"#,
    "[DONE]",
];

const BODY: &str = r#"{"id":"chatcmpl-1","object":"chat.completion","model":"gpt-4o-2024-08-06","choices":[{"index":0,"message":{"role":"assistant","content":"Let me sée 🙂","refusal":null,"annotations":[],"tool_calls":[{"id":"call_a","type":"function","function":{"name":"weather","arguments":"{\"city\":\"Zürich\"}"}},{"id":"call_b","type":"function","function":{"name":"add","arguments":"{\"n\": 12345678901234567890123}"}}]},"logprobs":null,"finish_reason":"tool_calls"}],"usage":{"prompt_tokens":81,"completion_tokens":45,"total_tokens":126,"prompt_tokens_details":{"cached_tokens":64},"completion_tokens_details":{"reasoning_tokens":12}}}"#;

fn stream(data: &[&str]) -> Response {
    decode_stream(ProviderApi::OpenAiChat, &sse_events(data)).unwrap()
}

/// Proves: G53, G76
#[test]
fn streamed_text_and_parallel_calls_equal_unstreamed_ones() {
    let response = stream(CALLS);
    assert_eq!(response, decode_body(ProviderApi::OpenAiChat, BODY).unwrap());
    assert_eq!(response.message.visible_text(), "Let me sée 🙂");
    let (weather, add) = (r#"{"city":"Zürich"}"#, r#"{"n": 12345678901234567890123}"#);
    assert_eq!(calls(&response), [("call_a", "weather", weather), ("call_b", "add", add)]);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    assert_eq!(response.model.as_deref(), Some("gpt-4o-2024-08-06"));
    let usage = Usage {
        prompt_tokens: 81,
        completion_tokens: 45,
        cached_tokens: 64,
        reasoning_tokens: 12,
        cost: None,
    };
    assert_eq!(response.usage, Some(usage));
}

#[test]
fn the_cost_is_read_from_the_usage_and_no_cost_is_not_zero() {
    for (member, expected) in [
        (r#","cost":0.00014"#, Some("0.00014")),
        (r#","cost":0"#, Some("0")),
        (r#","cost":null"#, None),
        (r#","cost":{"total_cost":1}"#, None),
        ("", None),
    ] {
        let add = |text: &str| {
            text.replace(
                r#","completion_tokens":"#,
                &format!("{member}{}", r#","completion_tokens":"#),
            )
        };
        let data: Vec<String> = CALLS.iter().map(|data| add(data)).collect();
        let data: Vec<&str> = data.iter().map(String::as_str).collect();
        let body = decode_body(ProviderApi::OpenAiChat, &add(BODY)).unwrap();
        assert_eq!(stream(&data), body);
        let cost = body.usage.unwrap().cost;
        assert_eq!(cost.map(|cost| cost.to_string()).as_deref(), expected, "{member}");
    }
}

/// Proves: G53, G77
#[test]
fn each_finish_reason_is_distinguished() {
    let call =
        r#""tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]"#;
    for (message, reason, text, finish_reason) in [
        (r#""content":"Hi.""#, r#""stop""#, "Hi.", FinishReason::Stop),
        (r#""content":null"#, r#""stop""#, "", FinishReason::Stop),
        (r#""content":"""#, "null", "", FinishReason::Stop),
        (r#""content":null,"refusal":"I can't.""#, r#""stop""#, "I can't.", FinishReason::Refusal),
        (r#""content":"He""#, r#""content_filter""#, "He", FinishReason::Refusal),
        (r#""content":"Once upon""#, r#""length""#, "Once upon", FinishReason::Length),
        (call, r#""length""#, "", FinishReason::Length),
        (r#""content":"x""#, r#""model_context_window_exceeded""#, "x", FinishReason::ContextFull),
        // The model announces a call that the server lost.
        (r#""content":"x""#, r#""tool_calls""#, "x", FinishReason::ToolCalls),
        (r#""content":"x""#, r#""STOP""#, "x", FinishReason::Stop),
        (r#""content":"x""#, r#""eos_token""#, "x", FinishReason::Stop),
        (r#""content":"x""#, r#""abort""#, "x", FinishReason::Other("abort".to_owned())),
    ] {
        let body =
            format!(r#"{{"choices":[{{"message":{{{message}}},"finish_reason":{reason}}}]}}"#);
        let response = decode_body(ProviderApi::OpenAiChat, &body).unwrap();
        assert_eq!(
            (response.message.visible_text().as_str(), &response.finish_reason),
            (text, &finish_reason),
            "{body}"
        );
        let data = body.replace("message", "delta");
        assert_eq!(stream(&[&data, "[DONE]"]), response, "{data}");
    }
}

#[test]
fn a_call_that_was_cut_keeps_its_text() {
    let data = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"c","function":{"name":"f"}}]},"finish_reason":"length"}]}"#;
    let response = stream(&[data]);
    assert_eq!(calls(&response), [("c", "f", "")]);
    assert_eq!(response.finish_reason, FinishReason::Length);
}

/// Proves: G77
#[test]
fn no_prefix_of_a_stream_gives_another_answer() {
    for data in [CALLS, &CALLS[..CALLS.len() - 1]] {
        let body = sse_events(data);
        let full = decode_stream(ProviderApi::OpenAiChat, &body).unwrap();
        for end in 0..body.len() {
            match decode_chunked(
                ProviderApi::OpenAiChat,
                true,
                &body.as_bytes()[..end],
                &[end.max(1)],
            )
            .0
            {
                Ok(response) => assert_eq!(response.message, full.message, "{end}"),
                Err(ApiError { kind, partial_output, .. }) => {
                    assert_eq!(kind, LlmErrorKind::Connection, "{end}");
                    assert!(
                        full.message.visible_text().starts_with(&partial_output.unwrap()),
                        "{end}"
                    );
                }
            }
        }
    }
}

#[test]
fn the_end_of_a_stream_that_truncates_a_call_is_no_end_of_the_response() {
    let data = r#"{"choices":[{"delta":{"content":"So:","tool_calls":[{"index":0,"id":"c","function":{"name":"f","arguments":"{\"a\":"}}]}}]}"#;
    let ApiError { kind, partial_output, .. } =
        decode_stream(ProviderApi::OpenAiChat, &sse_events(&[data, "[DONE]"])).unwrap_err();
    assert_eq!((kind, partial_output.as_deref()), (LlmErrorKind::Connection, Some("So:")));
    let ApiError { kind, .. } =
        decode_stream(ProviderApi::OpenAiChat, &sse_events(&["[DONE]"])).unwrap_err();
    assert_eq!(kind, LlmErrorKind::Connection);
}

proptest! {
    #[test]
    fn any_bytes_are_an_answer_or_a_failure(
        bytes in proptest::collection::vec(any::<u8>(), 0..600),
        size in 1_usize..40,
        streaming: bool,
    ) {
        drop(decode_chunked(ProviderApi::OpenAiChat, streaming, &bytes, &[size]));
    }

    #[test]
    fn a_stream_with_bytes_of_another_kind_is_an_answer_or_a_failure(
        at in 0_usize..3000,
        bytes in proptest::collection::vec(any::<u8>(), 1..4),
        size in 1_usize..200,
    ) {
        let mut body = sse_events(CALLS).into_bytes();
        let at = at % body.len();
        let end = (at + bytes.len()).min(body.len());
        body.splice(at..end, bytes);
        let (first, pieces) = decode_chunked(ProviderApi::OpenAiChat, true, &body, &[body.len()]);
        let (again, others) = decode_chunked(ProviderApi::OpenAiChat, true, &body, &[size]);
        prop_assert_eq!(&first, &again);
        if first.is_ok() {
            prop_assert_eq!(pieces, others);
        }
    }

    #[test]
    fn json_of_any_shape_is_an_answer_or_a_failure(
        delta in "[{}\\[\\]\":,a0]{0,40}|\\{\"(content|tool_calls|reasoning|reasoning_details)\":(1|\\{\\}|\\[(1|\\{\"(index|id|function|type)\":(1|\"a\"|\\{\\}|\\[\\])\\})\\])\\}",
    ) {
        for data in [
            format!(r#"{{"choices":[{{"delta":{delta},"finish_reason":"stop"}}]}}"#),
            format!(r#"{{"choices":{delta},"usage":{delta},"model":{delta}}}"#),
        ] {
            drop(decode_stream(ProviderApi::OpenAiChat, &sse_events(&[&data, &data, "[DONE]"])));
            drop(decode_body(ProviderApi::OpenAiChat, &data.replace("delta", "message")));
        }
    }
}
