//! Tests of the kinds of Gemini's errors.

use super::*;

fn decode(status: u16, status_name: &str, message: &str, details: &str) -> ApiError {
    let body = format!(
        r#"{{"error":{{"code":{status},"message":"{message}","status":"{status_name}","details":[{details}]}}}}"#
    );
    let fault = super::decode_error(status, body.as_bytes());
    assert_eq!(fault.message, message);
    // The same error in a list, as a streaming request gets it.
    let in_list = super::decode_error(status, format!("[{body}\n]").as_bytes());
    assert_eq!((in_list.kind, &in_list.message), (fault.kind, &fault.message));
    fault
}

/// Proves: G79
#[test]
fn every_error_has_its_kind() {
    let retry_later = LlmErrorKind::RetryLater { after: None };
    let key = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#;
    let unbilled = r#"{"reason":"BILLING_DISABLED","domain":"googleapis.com"}"#;
    let long = "The input token count (1300000) exceeds the maximum number of tokens allowed (9).";
    let table = [
        (
            401,
            "UNAUTHENTICATED",
            "Request had invalid authentication credentials.",
            "",
            LlmErrorKind::Authentication,
        ),
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            key,
            LlmErrorKind::Authentication,
        ),
        (400, "INVALID_ARGUMENT", "Not valid.", key, LlmErrorKind::Authentication),
        (
            403,
            "PERMISSION_DENIED",
            "The caller does not have permission",
            "",
            LlmErrorKind::Authentication,
        ),
        (
            403,
            "PERMISSION_DENIED",
            "This API method requires billing",
            unbilled,
            LlmErrorKind::Billing,
        ),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", "", retry_later),
        (
            429,
            "RESOURCE_EXHAUSTED",
            "Your prepayment credits are depleted.",
            "",
            LlmErrorKind::Billing,
        ),
        (400, "INVALID_ARGUMENT", long, "", LlmErrorKind::ContextLength),
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", "", LlmErrorKind::InvalidRequest),
        (
            400,
            "INVALID_ARGUMENT",
            "Function calling is not enabled for models/gemma-3-27b-it",
            "",
            LlmErrorKind::ToolsUnsupported,
        ),
        (
            404,
            "NOT_FOUND",
            "models/none is not found for API version v1beta",
            "",
            LlmErrorKind::NotFound,
        ),
        (
            400,
            "FAILED_PRECONDITION",
            "User location is not supported",
            "",
            LlmErrorKind::InvalidRequest,
        ),
        (400, "FAILED_PRECONDITION", "Please enable billing on project", "", LlmErrorKind::Billing),
        (503, "UNAVAILABLE", "The model is overloaded.", "", retry_later),
        (500, "INTERNAL", "An internal error has occurred.", "", retry_later),
        (504, "DEADLINE_EXCEEDED", "The request timed out.", "", LlmErrorKind::TimedOut),
        (499, "SOMETHING_NEW", "who knows", "", LlmErrorKind::InvalidRequest),
        (502, "SOMETHING_NEW", "who knows", "", retry_later),
    ];
    for (status, status_name, message, details, kind) in table {
        assert_eq!(
            decode(status, status_name, message, details).kind,
            kind,
            "{status_name}: {message}"
        );
    }
}

#[test]
fn the_retry_delay_is_read_from_the_details() {
    let table = [
        ("34s", Some(Duration::from_secs(34))),
        ("34.5s", Some(Duration::from_millis(34_500))),
        ("0s", Some(Duration::ZERO)),
        ("-1s", None),
        ("1e300s", None),
        ("nans", None),
        ("soon", None),
    ];
    for (delay, after) in table {
        let quota = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{}]}"#;
        let details = format!(
            r#"{quota},{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{delay}"}}"#
        );
        let error = decode(429, "RESOURCE_EXHAUSTED", "quota", &details);
        assert_eq!(error.kind, LlmErrorKind::RetryLater { after }, "{delay}");
    }
}

#[test]
fn errors_of_interactions_have_words_for_codes() {
    let table = [
        (429, "too_many_requests", LlmErrorKind::RetryLater { after: None }),
        (400, "invalid_request", LlmErrorKind::InvalidRequest),
        (404, "not_found", LlmErrorKind::NotFound),
        (
            503,
            "https://errors.example/service_unavailable",
            LlmErrorKind::RetryLater { after: None },
        ),
        (504, "gateway_timeout", LlmErrorKind::TimedOut),
    ];
    for (status, code, kind) in table {
        let body = format!(r#"{{"error":{{"message":"no","code":"{code}"}}}}"#);
        let error = super::decode_error(status, body.as_bytes());
        assert_eq!((error.kind, error.message.as_str()), (kind, "no"), "{code}");
    }
}

#[test]
fn a_body_that_is_no_provider_error_is_classified_by_its_status() {
    let retry_later = LlmErrorKind::RetryLater { after: None };
    let table: [(u16, &[u8], LlmErrorKind, &str); 8] = [
        (502, b"<html>Bad Gateway</html>", retry_later, "<html>Bad Gateway</html>"),
        (401, b"", LlmErrorKind::Authentication, "status 401 without an error message"),
        (413, b" ", LlmErrorKind::ContextLength, "status 413 without an error message"),
        (500, b"\xff\xfe", retry_later, "\u{fffd}\u{fffd}"),
        (400, b"[]", LlmErrorKind::InvalidRequest, "[]"),
        (400, b"{}", LlmErrorKind::InvalidRequest, "status 400 without an error message"),
        (400, br#"{"error":"no"}"#, LlmErrorKind::InvalidRequest, "no"),
        (400, br#"{"error":{"status":"NOT_FOUND"}}"#, LlmErrorKind::NotFound, "NOT_FOUND"),
    ];
    for (status, body, kind, message) in table {
        let fault = super::decode_error(status, body);
        assert_eq!((fault.kind, fault.message.as_str()), (kind, message), "{status}");
    }
}
