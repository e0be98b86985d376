//! Tests of requests to the client during a call.

use innkeeper_testkit::fixture;
use serde_json::{Value, json};

use crate::stdio_client::{StdioClient, result_text, with_modern_meta};

#[test]
fn a_legacy_call_waits_for_the_answer_and_hands_it_back() {
    for (switch, method) in [
        ("--ask-roots", "roots/list"),
        ("--ask-sampling", "sampling/createMessage"),
        ("--ask-elicit", "elicitation/create"),
    ] {
        let mut client = StdioClient::start_legacy(&fixture("a").switch(switch));
        let server_request = client.call(40, "a.b", &json!({}));
        assert_eq!((&server_request["method"], &server_request["id"]), (&json!(method), &json!(1)));
        client.assert_silent();
        client.send(&json!({"jsonrpc": "2.0", "id": 1, "error": {"code": -1, "message": "no"}}));
        let response = client.next_message();
        assert_eq!(response["id"], 40);
        let received: Value = serde_json::from_str(result_text(&response)).unwrap();
        assert_eq!(received[0]["method"], method);
        assert_eq!(received[0]["error"]["message"], "no");
    }
}

#[test]
fn a_question_can_carry_the_id_of_its_call() {
    let mut client = StdioClient::start_legacy(
        &fixture("a").switch("--ask-sampling").switch("--same-request-id"),
    );
    assert_eq!(client.call(40, "a.b", &json!({}))["id"], 40);
    client.send(&json!({"jsonrpc": "2.0", "id": 40, "result": {"model": "m"}}));
    let response = client.next_message();
    assert_eq!(
        (&response["id"], result_text(&response).contains(r#""model":"m""#)),
        (&json!(40), true)
    );
}

#[test]
fn many_questions_are_all_waited_for() {
    let mut client =
        StdioClient::start_legacy(&fixture("a").switch("--ask-roots").with("--ask-count", 50));
    client.post_call(1, "a.b", &json!({}));
    let ids: Vec<Value> = (0..50).map(|_| client.next_message()["id"].clone()).collect();
    for id in &ids[1..] {
        client.send(&json!({"jsonrpc": "2.0", "id": id, "result": {"roots": []}}));
    }
    client.assert_silent();
    client.send(&json!({"jsonrpc": "2.0", "id": ids[0], "result": {"roots": []}}));
    let received: Vec<Value> = serde_json::from_str(result_text(&client.next_message())).unwrap();
    assert_eq!(received.len(), 50);
}

#[test]
fn a_modern_call_asks_in_rounds() {
    let fixture = fixture("a").with("--era", "modern").switch("--ask-elicit").switch("--ask-roots");
    let mut client = StdioClient::start(&fixture.with("--rounds", 2).with("--state-bytes", 10));
    let capabilities = json!({"elicitation": {}, "roots": {}});
    let mut params = with_modern_meta(json!({"name": "a.b"}), &capabilities);
    for round in 0..2 {
        let result = client.request(round, "tools/call", &params)["result"].clone();
        assert_eq!(result["resultType"], "input_required");
        let state = result["requestState"].as_str().unwrap();
        assert!(state.ends_with(".........."), "{state}");
        let mut responses = json!({});
        for (key, input_request) in result["inputRequests"].as_object().unwrap() {
            assert!(input_request["method"].is_string());
            responses[key] = json!({"round": round});
        }
        assert_eq!(responses.as_object().unwrap().len(), 2);
        params["requestState"] = json!(state);
        let mut silent = params.clone();
        silent.as_object_mut().unwrap().remove("inputResponses");
        assert_eq!(client.request(8, "tools/call", &silent)["error"]["code"], -32602);
        params["inputResponses"] = responses;
    }
    let response = client.request(9, "tools/call", &params);
    assert_eq!(response["result"]["resultType"], "complete");
    assert!(result_text(&response).contains(r#""elicitation/create-1":{"round":1}"#));
}

#[test]
fn a_modern_client_without_the_capability_is_told_so() {
    let fixture = fixture("a").with("--era", "modern").switch("--ask-sampling");
    let params = with_modern_meta(json!({"name": "a.b"}), &json!({}));
    let response = StdioClient::start(&fixture).request(1, "tools/call", &params);
    assert_eq!(response["error"]["code"], -32021);
    assert_eq!(response["error"]["data"]["requiredCapabilities"], json!({"sampling": {}}));
    let rude = fixture.switch("--ask-anyway");
    let response = StdioClient::start(&rude).request(1, "tools/call", &params);
    assert_eq!(response["result"]["resultType"], "input_required");
}
