//! Tests of the generateContent codec.

mod requests;
mod truncation;

use super::*;
use crate::conversation::{ContentPart, PartContent, ToolCall};
use crate::provider::codec::chunking::{self, TEST_GEMINI_MODEL as MODEL, decode_chunked};
use crate::provider::{FinishReason, LlmErrorKind, ProviderApi, Usage};

fn decode_body(body: &str) -> Result<Response, ApiError> {
    chunking::decode_body(ProviderApi::GeminiGenerate, body)
}

fn decode_stream(events: &[&str]) -> Response {
    chunking::decode_stream(ProviderApi::GeminiGenerate, &stream(events)).unwrap()
}

fn stream(events: &[&str]) -> String {
    chunking::sse_events(events).replace('\n', "\r\n")
}

fn candidate(parts: &str, finish: &str) -> String {
    let finish =
        if finish.is_empty() { String::new() } else { format!(r#","finishReason":"{finish}""#) };
    let content = format!(r#"{{"parts":[{parts}],"role":"model"}}"#);
    format!(
        r#"{{"candidates":[{{"content":{content}{finish},"index":0}}],"modelVersion":"{MODEL}"}}"#
    )
}

fn native(part: &ContentPart) -> &str {
    part.provider_block.as_ref().unwrap().json.get()
}

fn calls(response: &Response) -> Vec<&ToolCall> {
    response.message.calls().collect()
}

/// Proves: G53
#[test]
fn streamed_text_equals_unstreamed_text() {
    let text = r#"{"text":"One, two, \u00fcber."}"#;
    let usage = r#""usageMetadata":{"promptTokenCount":9,"candidatesTokenCount":4,"thoughtsTokenCount":30,
        "cachedContentTokenCount":5,"toolUsePromptTokenCount":2,"totalTokenCount":45}"#;
    let body = candidate(text, "STOP");
    let body = format!("{},{usage}}}", &body[..body.len() - 1]);
    let response = decode_body(&body).unwrap();
    let last = candidate(r#"{"text":""}"#, "STOP");
    let last = format!("{},{}}}", &last[..last.len() - 1], usage.replace("\n", ""));
    let streamed = decode_stream(&[
        &candidate(r#"{"text":"One, "}"#, ""),
        &candidate(r#"{"text":"two, "},{"text":"\u00fc"}"#, ""),
        &candidate(r#"{"text":"ber."}"#, ""),
        &last,
    ]);
    assert_eq!(response, streamed);
    assert_eq!(
        response.message,
        crate::conversation::AssistantMessage::from_text("One, two, über.")
    );
    assert_eq!(
        (response.finish_reason, response.model.as_deref()),
        (FinishReason::Stop, Some(MODEL))
    );
    let usage = Usage {
        prompt_tokens: 11,
        completion_tokens: 34,
        cached_tokens: 5,
        reasoning_tokens: 30,
        cost: None,
    };
    assert_eq!(response.usage, Some(usage));
}

/// Proves: G53, G76
#[test]
fn calls_without_ids_come_with_their_arguments_as_written() {
    let first = r#"{"functionCall":{"name":"add","args":{"a": 12345678901234567890123, "b":1.10}},"thoughtSignature":"c2ln"}"#;
    let second = r#"{"functionCall":{"id":"fc2","name":"now"}}"#;
    let response = decode_body(&candidate(&format!("{first},{second}"), "STOP")).unwrap();
    let streamed =
        decode_stream(&[&candidate(first, ""), &candidate(second, ""), &candidate("", "STOP")]);
    assert_eq!(response, streamed);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);
    let actual: Vec<_> =
        calls(&response).iter().map(|call| (&*call.id, &*call.name, &*call.arguments)).collect();
    let arguments = r#"{"a": 12345678901234567890123, "b":1.10}"#;
    assert_eq!(actual, [("", "add", arguments), ("fc2", "now", "{}")]);
    assert_eq!(response.message.parts.iter().map(native).collect::<Vec<_>>(), [first, second]);
}

#[test]
fn thoughts_signatures_and_what_is_not_known_are_kept_apart_from_text() {
    let parts = [
        r#"{"text":"Let me ","thought":true}"#,
        r#"{"text":"see.","thought":true}"#,
        r#"{"text":"Well"}"#,
        r#"{"text":", yes.","thoughtSignature":"QUJD"}"#,
        r#"{"text":"","thoughtSignature":"REVG"}"#,
        r#"{"executableCode":{"code":"1","language":"PYTHON"}}"#,
        r#"{"text":7}"#,
        r#"{"thoughtSignature":"R0hJ"}"#,
        "null",
    ];
    let response = decode_body(&candidate(&parts.join(","), "STOP")).unwrap();
    let events: Vec<_> = parts.iter().map(|part| candidate(part, "")).collect();
    let mut events: Vec<_> = events.iter().map(String::as_str).collect();
    let last = candidate("", "STOP");
    events.push(&last);
    assert_eq!(response, decode_stream(&events));
    let contents: Vec<_> = response.message.parts.iter().map(|part| part.content.clone()).collect();
    let text = |text: &str| PartContent::Text(text.to_owned());
    let mut expected = vec![PartContent::Reasoning("Let me see.".to_owned())];
    expected.extend([text("Well"), text(", yes."), text("")]);
    expected.extend([
        PartContent::Other,
        PartContent::Other,
        PartContent::Other,
        PartContent::Other,
    ]);
    assert_eq!(contents, expected);
    assert_eq!(response.message.parts[0].provider_block, None);
    assert_eq!(response.message.parts[1].provider_block, None);
    let natives: Vec<_> = response.message.parts[2..].iter().map(native).collect();
    assert_eq!(natives, parts[3..]);
}

/// Proves: G53, G77
#[test]
fn every_finish_reason_is_distinguished() {
    let call = r#"{"functionCall":{"name":"now","args":{}}}"#;
    let text = r#"{"text":"so"}"#;
    let table = [
        ("STOP", text, FinishReason::Stop),
        ("STOP", "", FinishReason::Stop),
        ("STOP", call, FinishReason::ToolCalls),
        ("FINISH_REASON_UNSPECIFIED", call, FinishReason::ToolCalls),
        ("MAX_TOKENS", text, FinishReason::Length),
        ("MAX_TOKENS", call, FinishReason::Length),
        ("CONTINUATION", text, FinishReason::Length),
        ("SAFETY", "", FinishReason::Refusal),
        ("RECITATION", text, FinishReason::Refusal),
        ("LANGUAGE", "", FinishReason::Refusal),
        ("BLOCKLIST", "", FinishReason::Refusal),
        ("PROHIBITED_CONTENT", "", FinishReason::Refusal),
        ("SPII", "", FinishReason::Refusal),
        ("MODEL_ARMOR", "", FinishReason::Refusal),
        ("IMAGE_SAFETY", "", FinishReason::Refusal),
        ("MALFORMED_FUNCTION_CALL", "", FinishReason::MalformedToolCall),
        ("UNEXPECTED_TOOL_CALL", call, FinishReason::MalformedToolCall),
        ("MISSING_THOUGHT_SIGNATURE", "", FinishReason::MalformedToolCall),
        ("TOO_MANY_TOOL_CALLS", call, FinishReason::MalformedToolCall),
        ("MALFORMED_RESPONSE", "", FinishReason::MalformedToolCall),
        ("OTHER", text, FinishReason::Other("OTHER".to_owned())),
        ("NEXT_YEARS", text, FinishReason::Other("NEXT_YEARS".to_owned())),
    ];
    for (reason, part, finish_reason) in table {
        let response = decode_body(&candidate(part, reason)).unwrap();
        assert_eq!(response.finish_reason, finish_reason, "{reason}");
        assert_eq!(response, decode_stream(&[&candidate(part, reason)]), "{reason}");
    }
}

#[test]
fn a_prompt_that_is_blocked_is_refused() {
    let body =
        r#"{"promptFeedback":{"blockReason":"SAFETY"},"usageMetadata":{"promptTokenCount":4}}"#;
    let response = decode_body(body).unwrap();
    assert_eq!(response.finish_reason, FinishReason::Refusal);
    assert!(response.message.parts.is_empty());
    assert_eq!(response.usage.map(|usage| usage.prompt_tokens), Some(4));
    assert_eq!(response, decode_stream(&[body]));
}

#[test]
fn a_body_without_a_candidate_is_an_invalid_response() {
    for body in ["{}", r#"{"candidates":[]}"#, r#"{"candidates":[{}]}"#, r#"{"candidates":7}"#] {
        assert_eq!(decode_body(body).unwrap_err().kind, LlmErrorKind::InvalidResponse, "{body}");
        let (response, _) =
            decode_chunked(ProviderApi::GeminiGenerate, true, stream(&[body]).as_bytes(), &[9]);
        assert_eq!(response.unwrap_err().kind, LlmErrorKind::Connection, "{body}");
    }
    for body in ["", "[]", "7", "<html>", "{\"candidates\":[", "\u{0}"] {
        assert_eq!(decode_body(body).unwrap_err().kind, LlmErrorKind::InvalidResponse, "{body}");
    }
    let (response, _) = decode_chunked(ProviderApi::GeminiGenerate, false, b"\xff{}", &[9]);
    assert_eq!(response.unwrap_err().kind, LlmErrorKind::InvalidResponse);
}

#[test]
fn missing_fields_in_a_response_lose_nothing_else() {
    let body = r#"{"candidates":[{"index":1,"content":{"parts":[{"text":"no"}]}},
        {"content":{"parts":[{"text":"yes"},{"functionCall":{"args":"{\"a\":1}"}},
        {"functionCall":7}]}}],"next":{"year":[]}}"#;
    let response = decode_body(body).unwrap();
    assert_eq!(
        (response.message.visible_text().as_str(), &response.finish_reason),
        ("yes", &FinishReason::ToolCalls)
    );
    let actual: Vec<_> =
        calls(&response).iter().map(|call| (&*call.name, &*call.arguments)).collect();
    assert_eq!(actual, [("", r#"{"a":1}"#), ("", "{}")]);
    assert_eq!((response.usage, response.model), (None, None));
}

#[test]
fn an_answer_of_more_parts_than_the_limit_is_refused() {
    use crate::provider::codec::{MAX_CONTENT_PARTS, MAX_LIST_ITEMS};
    let body_with = |part, count: usize| candidate(&vec![part; count].join(","), "STOP");
    let part = r#"{"thoughtSignature":"QQ=="}"#;
    // Consecutive texts become one part without loss.
    for (part, max, parts) in
        [(part, MAX_CONTENT_PARTS, MAX_CONTENT_PARTS), (r#"{"text":"x"}"#, MAX_LIST_ITEMS, 1)]
    {
        assert_eq!(decode_body(&body_with(part, max)).unwrap().message.parts.len(), parts);
        assert_eq!(
            decode_body(&body_with(part, max + 1)).unwrap_err().kind,
            LlmErrorKind::InvalidResponse
        );
    }
    let (half, rest) = (body_with(part, MAX_CONTENT_PARTS), body_with(part, 1));
    let (response, _) = decode_chunked(
        ProviderApi::GeminiGenerate,
        true,
        stream(&[&half, &rest]).as_bytes(),
        &[1 << 16],
    );
    assert_eq!(response.unwrap_err().kind, LlmErrorKind::InvalidResponse);
}

#[test]
fn a_call_that_comes_value_by_value_is_put_together() {
    let parts = [
        r#"{"functionCall":{"id":"p1","name":"look","willContinue":true},"thoughtSignature":"QQ=="}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"the ","willContinue":true}],"willContinue":true}}"#,
        r#"{"functionCall":{"partialArgs":[{"jsonPath":"$.at","stringValue":"sea"},{"jsonPath":"$.n","numberValue":2}],"willContinue":true}}"#,
        r#"{"functionCall":{}}"#,
        r#"{"functionCall":{"name":"now"}}"#,
    ];
    let events: Vec<_> = parts.iter().map(|part| candidate(part, "")).collect();
    let mut events: Vec<_> = events.iter().map(String::as_str).collect();
    let last = candidate("", "STOP");
    events.push(&last);
    let complete_parts = [
        r#"{"functionCall":{"name":"look","args":{"at":"the sea","n":2},"id":"p1"},"thoughtSignature":"QQ=="}"#,
        parts[4],
    ];
    let response = self::decode_body(&candidate(&complete_parts.join(","), "STOP")).unwrap();
    assert_eq!(decode_stream(&events), response);
    assert_eq!(response.finish_reason, FinishReason::ToolCalls);

    // Without its last chunk the call must not run, whatever the finish reason.
    let is_cut = |response: &Response| {
        let mut calls = response.message.calls();
        calls.next().is_some_and(|call| call.id == "p1" && call.is_cut)
    };
    for reason in ["STOP", "MAX_TOKENS"] {
        let last = candidate("", reason);
        let response = decode_stream(&[events[0], events[1], &last]);
        assert!(is_cut(&response) && response.finish_reason == FinishReason::Length);
    }
    assert!(is_cut(&self::decode_body(&candidate(parts[0], "")).unwrap()));
    // Another call ends the open call, which stays incomplete.
    assert!(is_cut(&decode_stream(&[events[0], events[4], &last])));
    // A call that the last chunk repeats is one call.
    let whole = candidate(r#"{"functionCall":{"id":"w","name":"now","args":{}}}"#, "");
    assert_eq!(decode_stream(&[&whole, &whole, &last]).message.calls().count(), 1);
}
