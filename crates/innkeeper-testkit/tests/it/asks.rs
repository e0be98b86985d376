//! What a fixture server asks of its client during a call.

use innkeeper_testkit::fx;
use serde_json::{Value, json};

use crate::talk::{Talk, modern, text};

#[test]
fn a_legacy_call_waits_for_the_answer_and_hands_it_back() {
    for (switch, method) in [
        ("--ask-roots", "roots/list"),
        ("--ask-sampling", "sampling/createMessage"),
        ("--ask-elicit", "elicitation/create"),
    ] {
        let mut talk = Talk::legacy(&fx("a").switch(switch));
        let question = talk.call(40, "a.b", &json!({}));
        assert_eq!((&question["method"], &question["id"]), (&json!(method), &json!(1)));
        talk.assert_silent();
        talk.send(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}));
        let answer = talk.message();
        assert_eq!(answer["id"], 40);
        let answers: Value = serde_json::from_str(text(&answer)).unwrap();
        assert_eq!(answers[0]["method"], method);
        assert_eq!(answers[0]["error"]["message"], "no");
    }
}

#[test]
fn a_question_can_carry_the_id_of_its_call() {
    let mut talk = Talk::legacy(&fx("a").switch("--ask-sampling").switch("--same-request-id"));
    assert_eq!(talk.call(40, "a.b", &json!({}))["id"], 40);
    talk.send(&json!({"jsonrpc": "2.0", "id": 40, "result": {"model": "m"}}));
    let answer = talk.message();
    assert_eq!((&answer["id"], text(&answer).contains(r#""model":"m""#)), (&json!(40), true));
}

#[test]
fn many_questions_are_all_waited_for() {
    let mut talk = Talk::legacy(&fx("a").switch("--ask-roots").with("--ask-count", 50));
    talk.post_call(1, "a.b", &json!({}));
    let ids: Vec<Value> = (0..50).map(|_| talk.message()["id"].clone()).collect();
    for id in &ids[1..] {
        talk.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}));
    }
    talk.assert_silent();
    talk.send(&json!({"jsonrpc": "2.0", "id": ids[0], "result": {"roots": []}}));
    let answers: Vec<Value> = serde_json::from_str(text(&talk.message())).unwrap();
    assert_eq!(answers.len(), 50);
}

#[test]
fn a_modern_call_asks_in_rounds() {
    let fixture = fx("a").with("--era", "modern").switch("--ask-elicit").switch("--ask-roots");
    let mut talk = Talk::start(&fixture.with("--rounds", 2).with("--state-bytes", 10));
    let able = json!({"elicitation": {}, "roots": {}});
    let mut params = modern(json!({"name": "a.b"}), &able);
    for round in 0..2 {
        let result = talk.request(round, "tools/call", &params)["result"].clone();
        assert_eq!(result["resultType"], "input_required");
        let state = result["requestState"].as_str().unwrap();
        assert!(state.ends_with(".........."), "{state}");
        let mut responses = json!({});
        for (key, question) in result["inputRequests"].as_object().unwrap() {
            assert!(question["method"].is_string());
            responses[key] = json!({"round": round});
        }
        assert_eq!(responses.as_object().unwrap().len(), 2);
        params["requestState"] = json!(state);
        let mut silent = params.clone();
        silent.as_object_mut().unwrap().remove("inputResponses");
        assert_eq!(talk.request(8, "tools/call", &silent)["error"]["code"], -32602);
        params["inputResponses"] = responses;
    }
    let answer = talk.request(9, "tools/call", &params);
    assert_eq!(answer["result"]["resultType"], "complete");
    assert!(text(&answer).contains(r#""elicitation/create-1":{"round":1}"#));
}

#[test]
fn a_modern_client_without_the_capability_is_told_so() {
    let fixture = fx("a").with("--era", "modern").switch("--ask-sampling");
    let params = modern(json!({"name": "a.b"}), &json!({}));
    let answer = Talk::start(&fixture).request(1, "tools/call", &params);
    assert_eq!(answer["error"]["code"], -32021);
    assert_eq!(answer["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    let rude = fixture.switch("--ask-anyway");
    let answer = Talk::start(&rude).request(1, "tools/call", &params);
    assert_eq!(answer["result"]["resultType"], "input_required");
}
