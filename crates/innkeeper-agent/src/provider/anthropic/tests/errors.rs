//! Tests of error kinds.

use super::super::error::decode_error;
use super::events;
use crate::provider::codec::chunking;
use crate::provider::{LlmErrorKind, ProviderApi};

const RETRY_LATER: LlmErrorKind = LlmErrorKind::RetryLater { after: None };

fn error_json(kind: &str, message: &str) -> String {
    let error = serde_json::json!({"type": kind, "message": message});
    serde_json::json!({"type": "error", "error": error, "request_id": "req_1"}).to_string()
}

#[test]
fn an_error_is_classified_by_its_type_its_message_and_its_status() {
    for (status, kind, message, expected) in [
        (
            400,
            "invalid_request_error",
            "messages: at least one is required",
            LlmErrorKind::InvalidRequest,
        ),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210 tokens > 200 maximum",
            LlmErrorKind::ContextLength,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 9 + 9 > 10",
            LlmErrorKind::ContextLength,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            LlmErrorKind::Billing,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits.",
            LlmErrorKind::Billing,
        ),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            LlmErrorKind::Refusal,
        ),
        (401, "authentication_error", "invalid x-api-key", LlmErrorKind::Authentication),
        (402, "billing_error", "check your billing", LlmErrorKind::Billing),
        (403, "permission_error", "not allowed", LlmErrorKind::Authentication),
        (404, "not_found_error", "model: claude-3", LlmErrorKind::NotFound),
        (409, "conflict_error", "again", RETRY_LATER),
        (413, "request_too_large", "Request exceeds the maximum size", LlmErrorKind::ContextLength),
        (429, "rate_limit_error", "too many", RETRY_LATER),
        (500, "api_error", "Internal server error", RETRY_LATER),
        (504, "timeout_error", "too slow", LlmErrorKind::TimedOut),
        (529, "overloaded_error", "Overloaded", RETRY_LATER),
        // llama.cpp's server.
        (
            400,
            "exceed_context_size_error",
            "request (4390 tokens) exceeds it",
            LlmErrorKind::ContextLength,
        ),
        (500, "server_error", "Context size has been exceeded.", LlmErrorKind::ContextLength),
        (500, "server_error", "tools param requires --jinja flag", LlmErrorKind::ToolsUnsupported),
        (
            500,
            "server_error",
            "Failed to parse input at pos 12: <tool_call>",
            LlmErrorKind::MalformedToolCall,
        ),
        (503, "unavailable_error", "Loading model", RETRY_LATER),
        (401, "authentication_error", "Invalid API Key", LlmErrorKind::Authentication),
        (418, "new_error", "?", LlmErrorKind::InvalidRequest),
    ] {
        let error = decode_error(status, error_json(kind, message).as_bytes());
        assert_eq!((error.kind, error.message.as_str()), (expected, message), "{status} {kind}");
    }
}

#[test]
fn a_spending_limit_is_not_retried() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"no more","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    assert_eq!(decode_error(429, body.as_bytes()).kind, LlmErrorKind::Billing);
}

#[test]
fn an_error_of_another_form_is_classified_by_its_status() {
    for (status, body, kind, message) in [
        (502, "<html>Bad Gateway</html>", RETRY_LATER, "<html>Bad Gateway</html>"),
        (401, "", LlmErrorKind::Authentication, "no error message"),
        (404, "{}", LlmErrorKind::NotFound, "no error message"),
        (400, r#"{"error":"no such field"}"#, LlmErrorKind::InvalidRequest, "no such field"),
        (500, r#"{"error":{"code":500,"message":7}}"#, RETRY_LATER, "no error message"),
    ] {
        let fault = decode_error(status, body.as_bytes());
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message));
    }
    assert_eq!(decode_error(500, &[0xff, 0xfe]).kind, RETRY_LATER);
    assert_eq!(decode_error(500, "x".repeat(5000).as_bytes()).message.len(), 2000);
}

#[test]
fn an_error_in_the_middle_of_a_stream_has_the_partial_output() {
    let start = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}"#,
    ]);
    let inner = |kind: &str| format!(r#"{{"code":500,"message":"m","type":"{kind}"}}"#);
    for (end, expected) in [
        (format!("event: error\ndata: {}\n\n", error_json("overloaded_error", "m")), RETRY_LATER),
        (
            format!("event: error\ndata: {}\n\n", error_json("invalid_request_error", "m")),
            LlmErrorKind::InvalidRequest,
        ),
        (format!("event: error\ndata: {}\n\n", inner("server_error")), RETRY_LATER),
        (
            format!("data: {}\n\n", error_json("authentication_error", "m")),
            LlmErrorKind::Authentication,
        ),
        (
            format!("data: {{\"error\":{}}}\n\n", inner("exceed_context_size_error")),
            LlmErrorKind::ContextLength,
        ),
    ] {
        let error =
            chunking::decode_stream(ProviderApi::Anthropic, &format!("{start}{end}")).unwrap_err();
        assert_eq!((error.kind, error.message.as_str()), (expected, "m"), "{end}");
        assert_eq!(error.partial_output.as_deref(), Some("so far"));
    }
    let error = chunking::decode_body(ProviderApi::Anthropic, &error_json("overloaded_error", "m"))
        .unwrap_err();
    assert_eq!(error.kind, RETRY_LATER);
}
