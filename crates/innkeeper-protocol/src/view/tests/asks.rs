//! Results that ask for input.

use super::raw;
use crate::view::{INPUT_REQUEST_LIMIT, INPUT_STATE_LIMIT, InputRequired};

fn pointer(json: &str) -> String {
    InputRequired::read(&raw(json)).unwrap_err().pointer
}

#[test]
fn requests_are_kept_in_their_order_and_as_they_were_sent() {
    let asks = InputRequired::read(&raw(r#"{"resultType":"input_required","inputRequests":{
            "b":{"method":"elicitation/create","params":{"x": 1e999}},
            "a\u0022":{"method":"roots/list"},
            "":{"method":"vendor/odd","params":null,"z":1}},"requestState":"AE\u0041D \ud83d"}"#))
    .unwrap();
    let requests: Vec<_> = asks
        .requests
        .iter()
        .map(|it| (it.key.as_str(), it.method.as_str(), it.params.as_ref().map(|raw| raw.get())))
        .collect();
    let expected = [
        ("b", "elicitation/create", Some(r#"{"x": 1e999}"#)),
        ("a\"", "roots/list", None),
        ("", "vendor/odd", None),
    ];
    assert_eq!(requests, expected);
    assert_eq!(asks.state.unwrap().get(), r#""AE\u0041D \ud83d""#);
}

#[test]
fn either_requests_or_a_state_are_enough_and_neither_is_not() {
    let read = |json: &str| InputRequired::read(&raw(json)).unwrap();
    let state = read(r#"{"requestState":"x"}"#);
    assert!(state.requests.is_empty() && state.state.is_some());
    let requests = read(r#"{"inputRequests":{"a":{"method":"roots/list"}},"requestState":null}"#);
    assert!(requests.requests.len() == 1 && requests.state.is_none());
    assert!(read(r#"{"inputRequests":{}}"#).requests.is_empty());
    let error = InputRequired::read(&raw(r#"{"resultType":"input_required"}"#)).unwrap_err();
    let says = "expected an object, or a state at `/inputRequests`, found nothing";
    assert_eq!(error.to_string(), says);
}

/// Proves: FR7.5
#[test]
fn a_request_that_is_none_is_an_error_that_says_where() {
    assert_eq!(pointer("[]"), "");
    assert_eq!(pointer(r#"{"inputRequests":[],"requestState":"x"}"#), "/inputRequests");
    assert_eq!(pointer(r#"{"inputRequests":{"a":5}}"#), "/inputRequests/a");
    assert_eq!(pointer(r#"{"inputRequests":{"a/b":{}}}"#), "/inputRequests/a~1b/method");
    assert_eq!(pointer(r#"{"inputRequests":{"a":{"method":1}}}"#), "/inputRequests/a/method");
    let twice = r#"{"inputRequests":{"a":{"method":"x"},"\u0061":{"method":"y"}}}"#;
    assert_eq!(pointer(twice), "/inputRequests/a");
    assert_eq!(pointer(r#"{"inputRequests":{"\ud83d":{"method":"x"}}}"#), "/inputRequests");
}

#[test]
fn requests_at_the_limit_are_kept_and_one_past_it_is_an_error() {
    let read = |count: usize| {
        let requests: Vec<_> = (0..count).map(|at| format!(r#""{at}":{{"method":"x"}}"#)).collect();
        let json = format!(r#"{{"inputRequests":{{{}}}}}"#, requests.join(","));
        InputRequired::read(&raw(&json)).map(|asks| asks.requests.len())
    };
    assert_eq!(read(INPUT_REQUEST_LIMIT), Ok(INPUT_REQUEST_LIMIT));
    let error = read(INPUT_REQUEST_LIMIT + 1).unwrap_err();
    let limit = format!("at most {INPUT_REQUEST_LIMIT} requests");
    assert_eq!((error.expected, error.found), (limit.as_str(), "more"));
}

#[test]
fn a_state_at_the_limit_is_kept_and_one_past_it_is_an_error() {
    let read = |length: usize| {
        let json = format!(r#"{{"requestState":"{}"}}"#, "x".repeat(length - 2));
        InputRequired::read(&raw(&json)).map(|asks| asks.state.unwrap().get().len())
    };
    assert_eq!(read(INPUT_STATE_LIMIT), Ok(INPUT_STATE_LIMIT));
    let error = read(INPUT_STATE_LIMIT + 1).unwrap_err();
    let limit = format!("at most {} KiB", INPUT_STATE_LIMIT / 1024);
    assert_eq!((error.pointer.as_str(), error.expected), ("/requestState", limit.as_str()));
}
