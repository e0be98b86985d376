//! Tests of results that require input.

use super::raw;
use crate::view::{InputRequiredResult, MAX_INPUT_REQUESTS, MAX_REQUEST_STATE_BYTES};

fn error_pointer(json: &str) -> String {
    InputRequiredResult::from_raw(&raw(json)).unwrap_err().pointer
}

#[test]
fn requests_are_kept_in_their_order_and_as_they_were_sent() {
    let result =
        InputRequiredResult::from_raw(&raw(r#"{"resultType":"input_required","inputRequests":{
            "b":{"method":"elicitation/create","params":{"x": 1e999}},
            "a\u0022":{"method":"roots/list"},
            "":{"method":"vendor/odd","params":null,"z":1}},"requestState":"AE\u0041D \ud83d"}"#))
        .unwrap();
    let requests: Vec<_> = result
        .input_requests
        .iter()
        .map(|request| {
            (
                request.key.as_str(),
                request.method.as_str(),
                request.params.as_ref().map(|raw| raw.get()),
            )
        })
        .collect();
    let expected = [
        ("b", "elicitation/create", Some(r#"{"x": 1e999}"#)),
        ("a\"", "roots/list", None),
        ("", "vendor/odd", None),
    ];
    assert_eq!(requests, expected);
    assert_eq!(result.request_state.unwrap().get(), r#""AE\u0041D \ud83d""#);
}

#[test]
fn either_requests_or_a_state_are_enough_and_neither_is_not() {
    let read = |json: &str| InputRequiredResult::from_raw(&raw(json)).unwrap();
    let state = read(r#"{"requestState":"x"}"#);
    assert!(state.input_requests.is_empty() && state.request_state.is_some());
    let requests = read(r#"{"inputRequests":{"a":{"method":"roots/list"}},"requestState":null}"#);
    assert!(requests.input_requests.len() == 1 && requests.request_state.is_none());
    assert!(read(r#"{"inputRequests":{}}"#).input_requests.is_empty());
    let error =
        InputRequiredResult::from_raw(&raw(r#"{"resultType":"input_required"}"#)).unwrap_err();
    let expected = "expected `inputRequests` or `requestState` at `/inputRequests`, found nothing";
    assert_eq!(error.to_string(), expected);
}

/// Proves: FR7.5
#[test]
fn a_request_that_is_none_is_an_error_that_says_where() {
    assert_eq!(error_pointer("[]"), "");
    assert_eq!(error_pointer(r#"{"inputRequests":[],"requestState":"x"}"#), "/inputRequests");
    assert_eq!(error_pointer(r#"{"inputRequests":{"a":5}}"#), "/inputRequests/a");
    assert_eq!(error_pointer(r#"{"inputRequests":{"a/b":{}}}"#), "/inputRequests/a~1b/method");
    assert_eq!(error_pointer(r#"{"inputRequests":{"a":{"method":1}}}"#), "/inputRequests/a/method");
    let duplicate_key = r#"{"inputRequests":{"a":{"method":"x"},"\u0061":{"method":"y"}}}"#;
    assert_eq!(error_pointer(duplicate_key), "/inputRequests/a");
    assert_eq!(error_pointer(r#"{"inputRequests":{"\ud83d":{"method":"x"}}}"#), "/inputRequests");
}

#[test]
fn requests_at_the_limit_are_kept_and_one_past_it_is_an_error() {
    let read = |count: usize| {
        let requests: Vec<_> = (0..count).map(|at| format!(r#""{at}":{{"method":"x"}}"#)).collect();
        let json = format!(r#"{{"inputRequests":{{{}}}}}"#, requests.join(","));
        InputRequiredResult::from_raw(&raw(&json)).map(|result| result.input_requests.len())
    };
    assert_eq!(read(MAX_INPUT_REQUESTS), Ok(MAX_INPUT_REQUESTS));
    let error = read(MAX_INPUT_REQUESTS + 1).unwrap_err();
    let limit = format!("at most {MAX_INPUT_REQUESTS} requests");
    assert_eq!((error.expected, error.found), (limit.as_str(), "more"));
}

#[test]
fn a_state_at_the_limit_is_kept_and_one_past_it_is_an_error() {
    let read = |length: usize| {
        let json = format!(r#"{{"requestState":"{}"}}"#, "x".repeat(length - 2));
        InputRequiredResult::from_raw(&raw(&json))
            .map(|result| result.request_state.unwrap().get().len())
    };
    assert_eq!(read(MAX_REQUEST_STATE_BYTES), Ok(MAX_REQUEST_STATE_BYTES));
    let error = read(MAX_REQUEST_STATE_BYTES + 1).unwrap_err();
    let limit = format!("at most {} KiB", MAX_REQUEST_STATE_BYTES / 1024);
    assert_eq!((error.pointer.as_str(), error.expected), ("/requestState", limit.as_str()));
}
