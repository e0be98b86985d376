//! Notifications to the event streams of connections.

use std::collections::HashMap;
use std::time::Duration;

use innkeeper_gateway::connections::JsonRpcParams;
use serde_json::json;

use super::*;
use crate::http::Events;

impl ServiceClient {
    /// Opens the event stream.
    async fn events(&self) -> Events {
        let request = self.request("GET", &format!("{PREFIX}/events"));
        let response = self.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream");
        Events::new(response)
    }
}

fn params(value: Value) -> Option<JsonRpcParams> {
    match value {
        Value::Object(members) => Some(JsonRpcParams::Named(members)),
        other => panic!("{other}"),
    }
}

/// Returns the event of a notification `job` with this number.
fn event(position: u64, number: u64) -> String {
    let data = format!(r#"{{"jsonrpc":"2.0","method":"job","params":{{"n":{number}}}}}"#);
    format!("id: {position}\nevent: notification\ndata: {data}\n\n")
}

async fn send_jobs(service: &ConnectionService, client: &ServiceClient, numbers: &[u64]) {
    for number in numbers {
        let sent = service.send_notification(
            client.id().parse().unwrap(),
            "job",
            params(json!({ "n": number })),
        );
        assert!(sent.await.unwrap());
    }
}

/// Proves: B5
#[tokio::test]
async fn a_stream_starts_with_the_connection_and_then_has_its_notifications() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    send_jobs(&service, &client, &[1]).await;
    let mut events = client.events().await;
    let connected = events.named("connected").await;
    let connected: Value = serde_json::from_str(&connected).unwrap();
    assert_eq!(connected["connection_id"], client.id());
    assert!(connected["message"].is_string());
    assert_eq!(events.text().await.unwrap(), event(1, 1), "sent before the stream");
    send_jobs(&service, &client, &[2, 3]).await;
    assert_eq!(events.text().await.unwrap(), event(2, 2) + &event(3, 3));
    client.post("shutdown", "").await;
    assert_eq!(events.text().await, None, "the connection is not active any more");
}

/// Proves: B44
#[tokio::test]
async fn only_active_connections_get_notifications() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let first = ServiceClient::active(&gateway).await;
    let second = ServiceClient::active(&gateway).await;
    let mut opening = ServiceClient::new(&gateway);
    opening.initialize(&json!({})).await;
    let ended = ServiceClient::active(&gateway).await;
    ended.post("shutdown", "").await;
    let sent = service.broadcast("job", params(json!({ "n": 1 }))).await.unwrap();
    let ids = [&first, &second].map(|client| (client.id().parse().unwrap(), true));
    assert_eq!(sent, HashMap::from(ids));
    for client in [&first, &second] {
        let mut events = client.events().await;
        events.named("connected").await;
        assert_eq!(events.text().await.unwrap(), event(1, 1));
    }
    for client in [&opening, &ended] {
        let id = client.id().parse().unwrap();
        assert!(!service.send_notification(id, "job", None).await.unwrap());
        let request = client.request("GET", &format!("{PREFIX}/events"));
        let reply = client.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(Reply::read(reply).await.error().1, -32_005);
    }
}

/// Proves: B-b4
#[tokio::test]
async fn a_client_resumes_its_stream_after_the_last_event() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::active(&gateway).await;
    send_jobs(&service, &client, &[1, 2, 3]).await;
    let mut events = client.events().await;
    events.named("connected").await;
    assert_eq!(events.text().await.unwrap(), event(1, 1) + &event(2, 2) + &event(3, 3));
    send_jobs(&service, &client, &[4]).await;
    assert_eq!(events.text().await.unwrap(), event(4, 4));
    drop(events);
    send_jobs(&service, &client, &[5]).await;
    let mut events = client.events().await;
    events.named("connected").await;
    // The first stream ended before anybody knew that the fourth event was sent.
    assert_eq!(events.text().await.unwrap(), event(4, 4) + &event(5, 5));
    client.set_header("last-event-id", "2");
    let mut resumed = client.events().await;
    resumed.named("connected").await;
    assert_eq!(resumed.text().await.unwrap(), event(3, 3) + &event(4, 4) + &event(5, 5));
    assert_eq!(events.text().await, None, "the newer stream replaces the older one");
}

/// Proves: B39
#[tokio::test]
async fn events_that_are_not_stored_any_more_are_a_transport_error() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let mut client = ServiceClient::active(&gateway).await;
    let numbers: Vec<u64> = (1..=257).collect();
    send_jobs(&service, &client, &numbers).await;
    for (id, status) in [("0", 410), ("258", 410), ("x", 410), ("1", 200), ("257", 200), ("", 200)]
    {
        client.set_header("last-event-id", id);
        let request = client.request("GET", &format!("{PREFIX}/events"));
        let response = client.send(request.body(Body::empty()).unwrap()).await;
        assert_eq!(response.status().as_u16(), status, "{id}");
        if status == 410 {
            assert_eq!(Reply::read(response).await.error().1, -32_100);
        }
    }
    // A reader that is too slow learns that it missed events.
    client.set_header("last-event-id", "257");
    let mut events = client.events().await;
    events.named("connected").await;
    send_jobs(&service, &client, &numbers).await;
    let error: Value = serde_json::from_str(&events.named("error").await).unwrap();
    assert_eq!(error["code"], -32_100);
    assert_eq!(events.text().await, None);
}

#[tokio::test]
async fn an_open_stream_keeps_its_connection() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    tokio::time::pause();
    let mut events = client.events().await;
    events.named("connected").await;
    for _ in 0..1_000 {
        tokio::time::advance(Duration::from_secs(15)).await;
        assert_eq!(events.text().await.unwrap(), ":\n");
    }
    assert!(client.call("echo", json!({})).await.status.is_success());
}

/// A stream with an event every second for an hour: no moment is quiet enough for a keep-alive.
#[tokio::test]
async fn an_open_stream_with_many_events_keeps_its_connection() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    tokio::time::pause();
    let mut events = client.events().await;
    events.named("connected").await;
    for number in 1..=3_600 {
        tokio::time::advance(Duration::from_secs(1)).await;
        send_jobs(&service, &client, &[number]).await;
        assert_eq!(events.next().await.unwrap().1["params"]["n"], number);
    }
    assert!(client.call("echo", json!({})).await.status.is_success());
}

#[tokio::test]
async fn an_open_stream_keeps_a_connection_with_an_expiry_below_the_time_of_a_keep_alive() {
    let expiry = Duration::from_secs(1);
    let store = MemoryStore::new(StoreOptions { expiry, ..StoreOptions::default() });
    let options = ConnectionOptions { expiry, ..ConnectionOptions::default() };
    let registry = CapabilityRegistry::with_core_features();
    let service = ConnectionServiceBuilder::new(options, registry, Arc::new(store)).build();
    let test_env = TestEnv::new();
    let gateway = start(&test_env, &service).await;
    tokio::time::pause();
    let client = ServiceClient::active(&gateway).await;
    let mut events = client.events().await;
    events.named("connected").await;
    for _ in 0..10 {
        assert_eq!(events.text().await.as_deref(), Some(":\n"), "the stream is open");
    }
    assert_eq!(client.call("tools/list", json!({})).await.status, StatusCode::OK);
}

#[tokio::test]
async fn a_stream_ends_with_the_gateway_and_the_notifications_stay() {
    let (test_env, service) = (TestEnv::new(), service());
    let gateway = start(&test_env, &service).await;
    let client = ServiceClient::active(&gateway).await;
    let mut events = client.events().await;
    events.named("connected").await;
    gateway.gateway.close();
    assert_eq!(events.text().await, None);
    send_jobs(&service, &client, &[1]).await;
}

#[tokio::test]
async fn a_stream_has_the_changes_of_the_lists_that_the_connection_can_use() {
    let (test_env, service) = (TestEnv::new(), service());
    let builder = GatewayBuilder::new(GatewayOptions::default()).connections(service.clone());
    let server = test_env.fixture("a").switch("--list-changed");
    let gateway = test_env.gateway_with(builder, [server]).await;
    let mut without_tools = ServiceClient::new(&gateway);
    without_tools.initialize(&json!({ "tools": false })).await;
    without_tools.post("initialized", "").await;
    let client = ServiceClient::active(&gateway).await;
    let mut events = client.events().await;
    let mut other_events = without_tools.events().await;
    events.named("connected").await;
    other_events.named("connected").await;
    client.call("tools/call", json!({ "name": "a.grow", "arguments": { "what": "tools" } })).await;
    let data = r#"{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}"#;
    let expected = format!("id: 1\nevent: notification\ndata: {data}\n\n");
    assert_eq!(events.text().await.unwrap(), expected);
    send_jobs(&service, &without_tools, &[1]).await;
    assert_eq!(other_events.text().await.unwrap(), event(1, 1), "no change of tools before it");
}
