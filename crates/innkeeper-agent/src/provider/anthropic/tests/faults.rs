//! Failures, by what can be done about them.

use super::super::fault;
use super::events;
use crate::provider::codec::cuts;
use crate::provider::{Class, Wire};

const LATER: Class = Class::Later { after: None };

fn told(kind: &str, message: &str) -> String {
    let error = serde_json::json!({"type": kind, "message": message});
    serde_json::json!({"type": "error", "error": error, "request_id": "req_1"}).to_string()
}

#[test]
fn a_failure_is_told_apart_by_its_kind_its_message_and_its_status() {
    for (status, kind, message, class) in [
        (400, "invalid_request_error", "messages: at least one is required", Class::Request),
        (
            400,
            "invalid_request_error",
            "prompt is too long: 210 tokens > 200 maximum",
            Class::TooLong,
        ),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 9 + 9 > 10",
            Class::TooLong,
        ),
        (
            400,
            "invalid_request_error",
            "Your credit balance is too low to access the API",
            Class::Billing,
        ),
        (
            400,
            "invalid_request_error",
            "You have reached your specified API usage limits.",
            Class::Billing,
        ),
        (
            400,
            "invalid_request_error",
            "Output blocked by content filtering policy",
            Class::Refused,
        ),
        (401, "authentication_error", "invalid x-api-key", Class::Key),
        (402, "billing_error", "check your billing", Class::Billing),
        (403, "permission_error", "not allowed", Class::Key),
        (404, "not_found_error", "model: claude-3", Class::NotFound),
        (409, "conflict_error", "again", LATER),
        (413, "request_too_large", "Request exceeds the maximum size", Class::TooLong),
        (429, "rate_limit_error", "too many", LATER),
        (500, "api_error", "Internal server error", LATER),
        (504, "timeout_error", "too slow", Class::TimedOut),
        (529, "overloaded_error", "Overloaded", LATER),
        // llama.cpp's server.
        (400, "exceed_context_size_error", "request (4390 tokens) exceeds it", Class::TooLong),
        (500, "server_error", "Context size has been exceeded.", Class::TooLong),
        (500, "server_error", "tools param requires --jinja flag", Class::NoTools),
        (500, "server_error", "Failed to parse input at pos 12: <tool_call>", Class::Malformed),
        (503, "unavailable_error", "Loading model", LATER),
        (401, "authentication_error", "Invalid API Key", Class::Key),
        (418, "new_error", "?", Class::Request),
    ] {
        let fault = fault(status, told(kind, message).as_bytes());
        assert_eq!((fault.class, fault.message.as_str()), (class, message), "{status} {kind}");
    }
}

#[test]
fn a_limit_on_what_is_spent_is_not_waited_for() {
    let body = r#"{"type":"error","error":{"type":"rate_limit_error","message":"no more","details":{"error_code":"enforced_spend_limit_reached"}}}"#;
    assert_eq!(fault(429, body.as_bytes()).class, Class::Billing);
}

#[test]
fn a_failure_in_other_words_is_told_by_its_status() {
    for (status, body, class, message) in [
        (502, "<html>Bad Gateway</html>", LATER, "<html>Bad Gateway</html>"),
        (401, "", Class::Key, "without a word of why"),
        (404, "{}", Class::NotFound, "without a word of why"),
        (400, r#"{"error":"no such field"}"#, Class::Request, "no such field"),
        (500, r#"{"error":{"code":500,"message":7}}"#, LATER, "without a word of why"),
    ] {
        let fault = fault(status, body.as_bytes());
        assert_eq!((fault.class, fault.message.as_str()), (class, message));
    }
    assert_eq!(fault(500, &[0xff, 0xfe]).class, LATER);
    assert_eq!(fault(500, "x".repeat(5000).as_bytes()).message.len(), 2000);
}

#[test]
fn a_failure_in_the_middle_of_a_stream_has_what_was_written() {
    let start = events(&[
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#,
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"so far"}}"#,
    ]);
    let inner = |kind: &str| format!(r#"{{"code":500,"message":"m","type":"{kind}"}}"#);
    for (end, class) in [
        (format!("event: error\ndata: {}\n\n", told("overloaded_error", "m")), LATER),
        (format!("event: error\ndata: {}\n\n", told("invalid_request_error", "m")), Class::Request),
        (format!("event: error\ndata: {}\n\n", inner("server_error")), LATER),
        (format!("data: {}\n\n", told("authentication_error", "m")), Class::Key),
        (format!("data: {{\"error\":{}}}\n\n", inner("exceed_context_size_error")), Class::TooLong),
    ] {
        let fault = cuts::streamed(Wire::Anthropic, &format!("{start}{end}")).unwrap_err();
        assert_eq!((fault.class, fault.message.as_str()), (class, "m"), "{end}");
        assert_eq!(fault.written.as_deref(), Some("so far"));
    }
    let fault = cuts::whole(Wire::Anthropic, &told("overloaded_error", "m")).unwrap_err();
    assert_eq!(fault.class, LATER);
}
