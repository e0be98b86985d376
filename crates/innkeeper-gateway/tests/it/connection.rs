//! Clients on connections with lines.

use std::time::Duration;

use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::setup::{TestEnv, text};

fn calls() -> Value {
    json!({ "name": "a.echo", "arguments": { "message": "hi" } })
}

#[tokio::test]
async fn a_client_lists_calls_reads_and_completes() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--completions", r#"{"topic":["tea"]}"#);
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let tools = client.request("tools/list", json!({})).await;
    assert_eq!(tools["tools"][0]["name"], "a.echo");
    assert_eq!(client.call("a.echo", json!({ "message": "hi" })).await, "hi");
    let prompts = client.request("prompts/list", json!({})).await;
    let prompt = prompts["prompts"][0]["name"].as_str().unwrap().to_owned();
    assert!(prompt.starts_with("a."), "{prompt}");
    let resources = client.request("resources/list", json!({})).await;
    let uri = resources["resources"][0]["uri"].clone();
    let contents = client.request("resources/read", json!({ "uri": uri })).await;
    assert_eq!(contents["contents"][0]["uri"], uri);
    assert_eq!(client.request("ping", json!({})).await, json!({}));
    client.close().await.unwrap();
}

#[tokio::test]
async fn requests_of_one_connection_run_at_the_same_time_and_end_in_any_order() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--out-of-order", 2);
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let first = client.start("tools/call", calls()).await;
    let second = client.start("tools/call", calls()).await;
    let received = [client.receive().await["id"].clone(), client.receive().await["id"].clone()];
    assert_eq!(received, [second, first]);
}

#[tokio::test]
async fn a_cancelled_request_has_no_response_and_is_cancelled_at_the_server() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 10_000 } });
    let slow = client.start("tools/call", params).await;
    client.notify("notifications/cancelled", json!({ "requestId": slow })).await;
    let pong = client.respond("ping", json!({})).await;
    assert_eq!(pong["result"], json!({}));
    assert!(client.waiting.is_empty(), "{:?}", client.waiting);
}

#[tokio::test]
async fn a_request_can_be_cancelled_by_the_next_message() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({ "elicitation": {} })).await;
    let id = "slow";
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 60_000 } });
    let call = json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params });
    let cancelled = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": id } });
    // Both messages arrive at once.
    client.send_line(&format!("{call}\n{cancelled}")).await;
    // The server runs one call of such a client at a time.
    let params = json!({ "name": "a.echo", "arguments": { "message": "next" } });
    let response = client.respond("tools/call", params).await;
    assert_eq!(text(&response["result"]), "next");
    assert!(client.waiting.is_empty(), "{:?}", client.waiting);
}

#[tokio::test]
async fn progress_has_the_token_of_the_client_and_precedes_the_result() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").with("--progress", 3)]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let mut params = calls();
    params["_meta"] = json!({ "progressToken": "my token" });
    client.request("tools/call", params).await;
    let progress: Vec<Value> = client.waiting.drain(..).collect();
    assert_eq!(progress.len(), 3, "{progress:?}");
    for notification in progress {
        assert_eq!(notification["method"], "notifications/progress");
        assert_eq!(notification["params"]["progressToken"], "my token");
    }
}

#[tokio::test]
async fn a_client_learns_of_changed_lists_and_updated_resources() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--list-changed").switch("--touch");
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    client.call("a.grow", json!({ "what": "tools" })).await;
    client.received("notifications/tools/list_changed").await;
    let resources = client.request("resources/list", json!({})).await;
    let uri = resources["resources"][0]["uri"].clone();
    client.request("resources/subscribe", json!({ "uri": uri })).await;
    client.call("a.touch", json!({ "uri": uri })).await;
    let updated = client.received("notifications/resources/updated").await;
    assert_eq!(updated["params"]["uri"], uri);
    client.request("resources/unsubscribe", json!({ "uri": uri })).await;
}

#[tokio::test]
async fn a_modern_client_gets_the_notifications_that_it_requested() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--list-changed");
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.modern("local", json!({}));
    let params = json!({ "notifications": { "toolsListChanged": true } });
    let subscription = client.start("subscriptions/listen", params).await;
    let acknowledged = client.received("notifications/subscriptions/acknowledged").await;
    let id_of = |message: &Value| {
        message["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"].clone()
    };
    assert_eq!(id_of(&acknowledged), subscription);
    assert_eq!(acknowledged["params"]["notifications"], json!({ "toolsListChanged": true }));
    for what in ["prompts", "tools"] {
        client.call("a.grow", json!({ "what": what })).await;
    }
    let changed = client.received("notifications/tools/list_changed").await;
    assert_eq!(id_of(&changed), subscription);
    let other = client.waiting.iter().find(|message| message.get("method").is_some());
    assert_eq!(other, None, "it did not request others");
}

#[tokio::test]
async fn a_client_with_a_subscription_that_ends_its_input_ends_the_connection() {
    let test_env = TestEnv::new();
    let drain_timeout = Duration::from_hours(1);
    let options = GatewayOptions { drain_timeout, ..GatewayOptions::default() };
    let server = test_env.fixture("a").switch("--list-changed");
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut client = gateway.modern("local", json!({}));
    let params = json!({ "notifications": { "toolsListChanged": true } });
    client.start("subscriptions/listen", params).await;
    client.received("notifications/subscriptions/acknowledged").await;
    client.close().await.unwrap();
}

/// Attack: remote | a client sends bytes that are no message, ids twice and lines over the limit |
/// each gets an error with its id, and the next request works | Own response
#[tokio::test]
async fn each_malformed_message_gets_an_error_and_the_connection_goes_on() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let unknown = client.respond("tools/call", json!({ "name": "a.missing" })).await;
    assert_eq!(unknown["error"]["code"], -32602, "{unknown}");
    let unknown = client.respond("weather/today", json!({})).await;
    assert_eq!(unknown["error"]["code"], -32601, "{unknown}");
    for (message, code) in [(json!([]), -32600), (json!({ "jsonrpc": "2.0", "id": 77 }), -32600)] {
        client.send(&message).await;
        let error = client.receive().await;
        assert_eq!(error["error"]["code"], code, "{message}: {error}");
    }
    assert_eq!(client.call("a.echo", json!({ "message": "still" })).await, "still");
}

#[tokio::test]
async fn the_end_of_the_input_ends_the_connection_after_the_responses() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 200 } });
    let slow = client.start("tools/call", params).await;
    let mut closing = client;
    let id = slow;
    // The response arrives although the input has ended.
    let response = {
        closing.finish_input().await;
        closing.response(&id).await
    };
    assert!(response.get("result").is_some(), "{response}");
}

/// Attack: remote | a client sends a batch above the limit, and requests without reading the responses |
/// no message of the batch is used; the gateway reads no further, and no response is lost |
/// No unbounded memory
#[tokio::test]
async fn a_client_that_does_not_read_is_read_no_further_and_loses_no_response() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.connect_as("local");
    let batch: Vec<Value> =
        (0..1_025).map(|id| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" })).collect();
    client.send(&batch.into()).await;
    assert_eq!(client.receive().await["error"]["code"], -32600, "one error for the batch");
    // The buffers of the connection have room for 1 MiB in each direction.
    let filler = "x".repeat(4 << 10);
    let mut sent = 0_u64;
    let request =
        |id: u64| json!({ "jsonrpc": "2.0", "id": format!("{id}-{filler}"), "method": "ping" });
    while timeout(Duration::from_millis(500), client.send(&request(sent))).await.is_ok() {
        sent += 1;
        assert!(sent < 10_000, "the gateway reads on");
    }
    for _ in 0..sent {
        assert!(client.receive().await["id"].is_string());
    }
}

#[tokio::test]
async fn subscriptions_are_declared_if_one_server_accepts_them() {
    for subscribe in [false, true] {
        let test_env = TestEnv::new();
        let mut servers = vec![test_env.fixture("plain")];
        if subscribe {
            servers.push(test_env.fixture("a").switch("--touch"));
        }
        let gateway = test_env.gateway(servers).await;
        let mut client = gateway.modern("ada", json!({}));
        let capabilities =
            client.request("server/discover", json!({})).await["capabilities"].take();
        assert_eq!(capabilities["resources"]["subscribe"], subscribe, "{capabilities}");
    }
}
