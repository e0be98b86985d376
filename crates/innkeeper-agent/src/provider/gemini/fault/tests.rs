//! Failures in the words of the provider, and their classes.

use super::*;

fn of(status: u16, word: &str, message: &str, details: &str) -> Fault {
    let body = format!(
        r#"{{"error":{{"code":{status},"message":"{message}","status":"{word}","details":[{details}]}}}}"#
    );
    let fault = super::fault(status, body.as_bytes());
    assert_eq!(fault.message, message);
    // The same in a list, as answers in pieces have it.
    let listed = super::fault(status, format!("[{body}\n]").as_bytes());
    assert_eq!((listed.class, &listed.message), (fault.class, &fault.message));
    fault
}

/// Proves: G79
#[test]
fn every_failure_has_the_class_that_says_what_to_do() {
    let later = Class::Later { after: None };
    let key = r#"{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}"#;
    let unbilled = r#"{"reason":"BILLING_DISABLED","domain":"googleapis.com"}"#;
    let long = "The input token count (1300000) exceeds the maximum number of tokens allowed (9).";
    let table = [
        (401, "UNAUTHENTICATED", "Request had invalid authentication credentials.", "", Class::Key),
        (
            400,
            "INVALID_ARGUMENT",
            "API key not valid. Please pass a valid API key.",
            key,
            Class::Key,
        ),
        (400, "INVALID_ARGUMENT", "Not valid.", key, Class::Key),
        (403, "PERMISSION_DENIED", "The caller does not have permission", "", Class::Key),
        (403, "PERMISSION_DENIED", "This API method requires billing", unbilled, Class::Billing),
        (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", "", later),
        (429, "RESOURCE_EXHAUSTED", "Your prepayment credits are depleted.", "", Class::Billing),
        (400, "INVALID_ARGUMENT", long, "", Class::TooLong),
        (400, "INVALID_ARGUMENT", "Invalid value at 'contents'", "", Class::Request),
        (
            400,
            "INVALID_ARGUMENT",
            "Function calling is not enabled for models/gemma-3-27b-it",
            "",
            Class::NoTools,
        ),
        (404, "NOT_FOUND", "models/none is not found for API version v1beta", "", Class::NotFound),
        (400, "FAILED_PRECONDITION", "User location is not supported", "", Class::Request),
        (400, "FAILED_PRECONDITION", "Please enable billing on project", "", Class::Billing),
        (503, "UNAVAILABLE", "The model is overloaded.", "", later),
        (500, "INTERNAL", "An internal error has occurred.", "", later),
        (504, "DEADLINE_EXCEEDED", "The request timed out.", "", Class::TimedOut),
        (499, "SOMETHING_NEW", "who knows", "", Class::Request),
        (502, "SOMETHING_NEW", "who knows", "", later),
    ];
    for (status, word, message, details, class) in table {
        assert_eq!(of(status, word, message, details).class, class, "{word}: {message}");
    }
}

#[test]
fn how_long_to_wait_is_told_in_the_details() {
    let table = [
        ("34s", Some(Duration::from_secs(34))),
        ("34.5s", Some(Duration::from_millis(34_500))),
        ("0s", Some(Duration::ZERO)),
        ("-1s", None),
        ("1e300s", None),
        ("nans", None),
        ("soon", None),
    ];
    for (told, after) in table {
        let quota = r#"{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{}]}"#;
        let details = format!(
            r#"{quota},{{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"{told}"}}"#
        );
        let fault = of(429, "RESOURCE_EXHAUSTED", "quota", &details);
        assert_eq!(fault.class, Class::Later { after }, "{told}");
    }
}

#[test]
fn failures_of_the_newer_interface_have_words_for_codes() {
    let table = [
        (429, "too_many_requests", Class::Later { after: None }),
        (400, "invalid_request", Class::Request),
        (404, "not_found", Class::NotFound),
        (503, "https://errors.example/service_unavailable", Class::Later { after: None }),
        (504, "gateway_timeout", Class::TimedOut),
    ];
    for (status, code, class) in table {
        let body = format!(r#"{{"error":{{"message":"no","code":"{code}"}}}}"#);
        let fault = super::fault(status, body.as_bytes());
        assert_eq!((fault.class, fault.message.as_str()), (class, "no"), "{code}");
    }
}

#[test]
fn what_is_no_failure_of_the_provider_is_classed_by_its_status() {
    let later = Class::Later { after: None };
    let table: [(u16, &[u8], Class, &str); 8] = [
        (502, b"<html>Bad Gateway</html>", later, "<html>Bad Gateway</html>"),
        (401, b"", Class::Key, "status 401, and not a word"),
        (413, b" ", Class::TooLong, "status 413, and not a word"),
        (500, b"\xff\xfe", later, "\u{fffd}\u{fffd}"),
        (400, b"[]", Class::Request, "[]"),
        (400, b"{}", Class::Request, "status 400, and not a word"),
        (400, br#"{"error":"no"}"#, Class::Request, "no"),
        (400, br#"{"error":{"status":"NOT_FOUND"}}"#, Class::NotFound, "NOT_FOUND"),
    ];
    for (status, body, class, message) in table {
        let fault = super::fault(status, body);
        assert_eq!((fault.class, fault.message.as_str()), (class, message), "{status}");
    }
}
