//! The four combinations of eras: a client of each era before a server of each era, with a request
//! of the server in the middle of a call.

use serde_json::{Value, json};

use crate::setup::{TestClient, TestEnv, TestGateway, text};

async fn asking_gateway(test_env: &TestEnv, era: &str) -> TestGateway {
    let server = test_env.fixture("a").with("--era", era).switch("--ask-elicit");
    test_env.gateway([server]).await
}

fn call() -> Value {
    json!({ "name": "a.echo", "arguments": { "message": "hi" } })
}

fn accept() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

async fn legacy_call(client: &mut TestClient) -> Value {
    let id = client.start("tools/call", call()).await;
    let question = client.received("elicitation/create").await;
    client.answer(&question, accept()).await;
    client.response(&id).await
}

#[tokio::test]
async fn a_legacy_client_answers_a_legacy_server() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env, "legacy").await;
    let mut client = gateway.initialized("local", json!({ "elicitation": {} })).await;
    let response = legacy_call(&mut client).await;
    assert!(response["result"]["content"].is_array(), "{response}");
}

#[tokio::test]
async fn a_legacy_client_answers_a_modern_server() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env, "modern").await;
    let mut client = gateway.initialized("local", json!({ "elicitation": {} })).await;
    let response = legacy_call(&mut client).await;
    assert!(response["result"]["content"].is_array(), "{response}");
}

/// Sends the call of a modern client, answers the input requests, and returns all results.
async fn modern_call(client: &mut TestClient) -> (Value, Value) {
    let required = client.request("tools/call", call()).await;
    assert_eq!(required["resultType"], "input_required", "{required}");
    let requests = required["inputRequests"].as_object().unwrap();
    let responses: serde_json::Map<String, Value> =
        requests.keys().map(|key| (key.clone(), accept())).collect();
    let mut params = call();
    params["inputResponses"] = responses.into();
    params["requestState"] = required["requestState"].clone();
    (required, client.request("tools/call", params).await)
}

#[tokio::test]
async fn a_modern_client_answers_a_modern_server_with_its_state() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env, "modern").await;
    let mut client = gateway.modern("local", json!({ "elicitation": {} }));
    let (required, result) = modern_call(&mut client).await;
    assert!(required["requestState"].as_str().unwrap().contains("state"), "of the server");
    assert_eq!(result["resultType"], "complete", "{result}");
    text(&result);
}

#[tokio::test]
async fn a_modern_client_answers_a_legacy_server() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env, "legacy").await;
    let mut client = gateway.modern("local", json!({ "elicitation": {} }));
    let (required, result) = modern_call(&mut client).await;
    let request = required["inputRequests"].as_object().unwrap().values().next().unwrap();
    assert_eq!(request["method"], "elicitation/create");
    assert_eq!(result["resultType"], "complete", "{result}");
}

#[tokio::test]
async fn progress_after_an_answer_has_the_token_of_the_request_with_the_answer() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-elicit").with("--progress", 1);
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.modern("local", json!({ "elicitation": {} }));
    let mut params = call();
    params["_meta"] = json!({ "progressToken": "first" });
    let mut required = client.request("tools/call", params.clone()).await;
    params["_meta"] = json!({ "progressToken": "second" });
    let key = required["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    params["inputResponses"] = json!({ key: accept() });
    params["requestState"] = required["requestState"].take();
    client.request("tools/call", params).await;
    let tokens: Vec<Value> =
        client.waiting.iter().map(|message| message["params"]["progressToken"].clone()).collect();
    assert_eq!(tokens, ["first", "second"]);
}

/// Attack: remote | a client sends the state of a parked call for another tool, as another principal,
/// twice, and changed | no call continues | Own response
#[tokio::test]
async fn a_state_of_a_parked_call_works_once_for_its_own_request_and_principal() {
    let test_env = TestEnv::new();
    let gateway = asking_gateway(&test_env, "legacy").await;
    let capabilities = json!({ "elicitation": {} });
    let mut client = gateway.modern("ada", capabilities.clone());
    let mut other = gateway.modern("bob", capabilities);
    let required = client.request("tools/call", call()).await;
    let key = required["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    let mut params = call();
    params["inputResponses"] = json!({ key: accept() });
    params["requestState"] = required["requestState"].clone();
    let refused = other.respond("tools/call", params.clone()).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("another request"), "{refused}");
    let mut changed = params.clone();
    changed["arguments"]["message"] = "other".into();
    let refused = client.respond("tools/call", changed).await;
    assert!(refused["error"]["message"].as_str().unwrap().contains("another request"), "{refused}");
    let mut forged = params.clone();
    let state = forged["requestState"].as_str().unwrap().replace('A', "B");
    forged["requestState"] = format!("{state}x").into();
    let refused = client.respond("tools/call", forged).await;
    assert_eq!(refused["error"]["code"], -32602, "{refused}");
    let done = client.request("tools/call", params.clone()).await;
    assert_eq!(done["resultType"], "complete");
    let again = client.respond("tools/call", params).await;
    assert_eq!(again["error"]["code"], -32602, "{again}");
}

#[tokio::test]
async fn a_client_without_the_capability_is_not_asked() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let gateway = asking_gateway(&test_env, era).await;
        let mut client = gateway.initialized("local", json!({})).await;
        let id = client.start("tools/call", call()).await;
        client.response(&id).await;
        assert!(client.waiting.is_empty(), "{era}: {:?}", client.waiting);
        let mut client = gateway.modern("local", json!({}));
        let response = client.respond("tools/call", call()).await;
        assert_ne!(response["result"]["resultType"], "input_required", "{era}");
    }
}
