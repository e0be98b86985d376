//! The orders in which a replay may ask.

use serde_json::json;

use super::*;

/// A golden with these requests, `(body, begin, end)`, and these calls, `(query, begin)`.
fn golden(is_agent: bool, requests: &[(&str, u64, u64)], calls: &[(u64, u64)]) -> Golden {
    let exchange = |(body, begin, end): &(&str, u64, u64)| {
        json!({"iteration": 1,
            "request": {"method": "POST", "url": "https://h/v1", "body": body, "begin_ms": begin},
            "response": {"http": {"status": 200, "ms": 0, "headers": [], "chunks": [],
                "end": {"complete": {"ms": end - begin}}}}})
    };
    let call = |(query, begin): &(u64, u64)| {
        let round = requests.iter().filter(|(_, begin_ms, _)| begin_ms < begin).count();
        json!({"name": "find", "arguments": {"q": query}, "round": round, "begin_ms": begin,
            "end_ms": begin + 1, "outcome": {"result": {}}})
    };
    let mut golden = json!({
        "version": 1, "test_name": "t", "origin": "recorded", "program": "p",
        "recorded_at": "2026-11-29T05:40:00Z",
        "input": {"server_config": {}, "system_prompt": "", "provider": "", "model": "", "api": "",
            "base_url": "", "user_prompt": "", "namespace": "", "streaming": false, "settings": {}},
        "golden_output": {},
        "provider_responses": requests.iter().map(exchange).collect::<Vec<_>>(),
        "tool_calls": calls.iter().map(call).collect::<Vec<_>>(),
    });
    if is_agent {
        golden["input"]["agent"] = json!({"command": ["agent"], "base_urls": {}});
    }
    Golden::from_json(&golden.to_string()).unwrap()
}

fn ask(script: &mut Script, body: &str) -> Result<(), String> {
    let body = to_raw_value(body).unwrap();
    let request = SentRequest { method: "POST", url: "https://h/v1", body: Some(&body) };
    script.take_reply(request).map(drop).map_err(|miss| miss.to_string())
}

fn call(script: &mut Script, query: u64) -> Result<usize, String> {
    let arguments = to_raw_value(&json!({"q": query})).unwrap();
    let call = SentCall { name: "find", arguments: &arguments, served: 0, params: None };
    script.take_call(call).map(|(at, _)| at).map_err(|miss| miss.to_string())
}

/// Proves: G67
#[test]
fn an_agent_may_ask_for_anything_that_it_has_not_had() {
    let golden = golden(true, &[("a", 0, 10), ("b", 5, 20)], &[(1, 12), (2, 12)]);
    let mut script = Script::new(&golden);
    assert_eq!(ask(&mut script, "b"), Ok(()));
    let error = ask(&mut script, "b").unwrap_err();
    assert!(error.contains("the nearest is request 1"), "{error}");
    assert_eq!(call(&mut script, 2), Ok(1));
    let wrong = call(&mut script, 3).unwrap_err();
    assert!(wrong.ends_with("the nearest is call 1 (`find`): `/arguments/q` was 1, is now 3"));
    assert_eq!(call(&mut script, 1), Ok(0));
    assert!(call(&mut script, 1).is_err());
    assert_eq!((script.begun_calls(), script.unused()), (2, vec!["request 1".to_owned()]));
}

#[test]
fn the_requests_of_an_own_run_come_in_their_order() {
    let golden = golden(false, &[("a", 0, 10), ("b", 5, 20)], &[]);
    let mut script = Script::new(&golden);
    let error = ask(&mut script, "b").unwrap_err();
    assert!(error.contains("the nearest is request 2"), "{error}");
    assert_eq!(script.unused(), ["request 1 (iteration 1)", "request 2 (iteration 1)"]);
}

/// Proves: G67
#[test]
fn a_repeated_request_gets_the_answers_in_their_order() {
    let mut golden = golden(true, &[("a", 0, 10), ("a", 10, 20)], &[]);
    let ReplyRecord::Http(first) = &mut golden.provider_responses[0].response else { panic!() };
    first.status = 429;
    let mut script = Script::new(&golden);
    let body = to_raw_value("a").unwrap();
    let request = SentRequest { method: "POST", url: "https://h/v1", body: Some(&body) };
    let statuses: Vec<_> = (0..2)
        .map(|_| match script.take_reply(request) {
            Ok((_, ReplyRecord::Http(response))) => response.status,
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(statuses, [429, 200]);
}

#[test]
fn a_call_with_other_parameters_or_of_another_server_is_another_call() {
    let golden = golden(true, &[], &[(1, 5)]);
    let mut script = Script::new(&golden);
    let arguments = to_raw_value(&json!({"q": 1})).unwrap();
    let params = to_raw_value(&json!({"requestState": "s"})).unwrap();
    let sent = SentCall { name: "find", arguments: &arguments, served: 0, params: None };
    let answered = SentCall { params: Some(&params), ..sent };
    let miss = script.take_call(answered).unwrap_err().to_string();
    assert!(miss.contains("`/params` is new: {\"requestState\":\"s\"}"), "{miss}");
    assert!(script.take_call(SentCall { served: 1, ..sent }).is_err());
    assert!(script.take_call(sent).is_ok());
}
