//! HTTP+SSE of 2024-11-05: a stream for each client, and a POST for each message.

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions};
use innkeeper_host::config::{NameStyle, Rate, RateConfig};
use innkeeper_testkit::Journal;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::http::{Events, call, initialize, json};
use crate::limits::{access_with_keys, as_client, local_access};
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

/// A client with an open stream.
struct SseClient {
    router: Router,
    /// Path for messages.
    path: String,
    events: Events,
}

fn get(path: &str) -> Request<Body> {
    let request = Request::builder().uri(format!("http://127.0.0.1{path}"));
    let request = request.header("host", "127.0.0.1").header("accept", "text/event-stream");
    request.body(Body::empty()).unwrap()
}

fn post(path: &str, message: &Value) -> Request<Body> {
    let request = Request::builder().method("POST").uri(format!("http://127.0.0.1{path}"));
    let request = request.header("host", "127.0.0.1").header("content-type", "application/json");
    request.body(Body::from(message.to_string())).unwrap()
}

async fn send(router: &Router, request: Request<Body>) -> Response<Body> {
    router.clone().oneshot(request).await.unwrap()
}

impl SseClient {
    async fn open(gateway: &TestGateway, stream: &str) -> Self {
        Self::with(gateway.gateway.router(local_access()), get(stream)).await
    }

    async fn with(router: Router, request: Request<Body>) -> Self {
        let mut events = Events::new(send(&router, request).await);
        let path = events.named("endpoint").await;
        Self { router, path, events }
    }

    async fn post(&self, message: &Value) -> StatusCode {
        send(&self.router, post(&self.path, message)).await.status()
    }

    /// Sends a request and returns the next message of the stream.
    async fn request(&mut self, message: &Value) -> Value {
        assert_eq!(self.post(message).await, StatusCode::ACCEPTED);
        self.events.next().await.unwrap().1
    }

    async fn initialize(&mut self, capabilities: &Value) {
        let mut message = initialize(capabilities);
        message["params"]["protocolVersion"] = "2024-11-05".into();
        let response = self.request(&message).await;
        assert_eq!(response["result"]["protocolVersion"], "2024-11-05");
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        assert_eq!(self.post(&initialized).await, StatusCode::ACCEPTED);
    }
}

#[tokio::test]
async fn responses_and_requests_of_servers_arrive_on_the_stream() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a").switch("--ask-elicit")]).await;
    let mut client = SseClient::open(&gateway, "/sse").await;
    client.initialize(&json!({ "elicitation": {} })).await;
    let question = client.request(&call(1)).await;
    assert_eq!(question["method"], "elicitation/create");
    let decline =
        json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "decline" } });
    let result = client.request(&decline).await;
    assert_eq!(result["id"], 1, "{result}");
}

#[tokio::test]
async fn a_named_endpoint_has_a_stream_of_its_own() {
    let test_env = TestEnv::new();
    let flat = EndpointOptions { names: NameStyle::Flat, ..EndpointOptions::default() };
    let named_endpoints = vec![("flat".to_owned(), flat)];
    let options = GatewayOptions { named_endpoints, ..GatewayOptions::default() };
    let builder = GatewayBuilder::new(options);
    let gateway = test_env.gateway_with(builder, [test_env.fixture("a")]).await;
    let mut client = SseClient::open(&gateway, "/sse/flat").await;
    client.initialize(&json!({})).await;
    let tools = client.request(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    assert_eq!(tools["result"]["tools"][0]["name"], "echo");
    let unknown = send(&client.router, get("/sse/other")).await;
    assert_eq!(unknown.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn the_end_of_the_stream_ends_the_session_and_cancels_its_calls() {
    let test_env = TestEnv::new();
    let journal = test_env.path().join("journal");
    let server = test_env.fixture("a").journal(&journal);
    let received =
        |method| Journal::wait_for(&journal, TEST_TIMEOUT, move |all| all.count(method) > 0);
    let mut options = GatewayOptions::default();
    options.limits.max_sessions = 1;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut client = SseClient::open(&gateway, "/sse").await;
    client.initialize(&json!({})).await;
    let full = send(&client.router, get("/sse")).await;
    assert_eq!(full.status(), StatusCode::SERVICE_UNAVAILABLE, "a stream is a session");
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 60_000 } });
    let slow = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert_eq!(client.post(&slow).await, StatusCode::ACCEPTED);
    received("tools/call").await;
    let SseClient { router, path, events } = client;
    drop(events);
    received("notifications/cancelled").await;
    let late = send(&router, post(&path, &call(2))).await;
    assert_eq!(late.status(), StatusCode::NOT_FOUND);
    SseClient::with(router, get("/sse")).await.initialize(&json!({})).await;
}

/// Attack: remote | a client posts to a stream of another client, with a guessed id, and bodies that
/// are no message | each is rejected, and the other client receives nothing | Own response
#[tokio::test]
async fn a_stream_takes_messages_of_its_own_client_only() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let router = gateway.gateway.router(access_with_keys());
    let unauthenticated = send(&router, get("/sse")).await;
    assert_eq!(unauthenticated.status(), StatusCode::UNAUTHORIZED);
    let client = SseClient::with(router, as_client(0, get("/sse"))).await;
    let path = &client.path;
    let other = if path.ends_with('A') { 'B' } else { 'A' };
    let guessed = format!("{}{other}", &path[..path.len() - 1]);
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let mut foreign_origin = as_client(0, post(path, &ping));
    foreign_origin.headers_mut().insert("origin", "https://evil.example".parse().unwrap());
    let mut text = as_client(0, post(path, &ping));
    text.headers_mut().insert("content-type", "text/plain".parse().unwrap());
    let cases = [
        (post(path, &ping), 401),
        (as_client(1, post(path, &ping)), 404),
        (as_client(0, post(&guessed, &ping)), 404),
        (as_client(0, post("/messages", &ping)), 404),
        (as_client(0, get(path)), 405),
        (as_client(0, post("/sse", &ping)), 405),
        (as_client(0, post(path, &json!({}))), 400),
        (as_client(0, post(path, &json!("x".repeat(8 << 20)))), 413),
        (foreign_origin, 403),
        (text, 415),
        (as_client(0, post(path, &ping)), 202),
    ];
    for (number, (request, status)) in cases.into_iter().enumerate() {
        let response = send(&client.router, request).await;
        assert_eq!(response.status().as_u16(), status, "case {number}");
        if status != 202 {
            assert!(json(response).await["error"]["message"].is_string(), "case {number}");
        }
    }
    let mut events = client.events;
    let (_, pong) = events.next().await.unwrap();
    assert_eq!(pong, json!({ "jsonrpc": "2.0", "id": 1, "result": {} }));
}

/// Attack: remote | a client hides calls from its rate in one batch for its stream | each message counts,
/// and what is above the rate has an error with its own id | Isolation
#[tokio::test]
async fn each_message_of_a_batch_counts_for_the_rate() {
    let test_env = TestEnv::new();
    let rate = Some(Rate { per_minute: 1, burst: 5 });
    let rates = RateLimits::new(RateConfig { requests: rate, ..RateConfig::default() }, []);
    let builder = GatewayBuilder::new(GatewayOptions::default()).rate_limits(rates);
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway_with(builder, [server]).await;
    // The stream is the first request.
    let mut client = SseClient::open(&gateway, "/sse").await;
    let batch: Vec<Value> = (0..10).map(call).collect();
    assert_eq!(client.post(&batch.into()).await, StatusCode::ACCEPTED);
    let mut refused = Vec::new();
    for _ in 0..10 {
        let (_, response) = client.events.next().await.unwrap();
        if response["error"]["data"]["kind"] == "rate" {
            refused.push(response["id"].as_u64().unwrap());
        }
    }
    refused.sort_unstable();
    assert_eq!(refused, [4, 5, 6, 7, 8, 9]);
    assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), 4);
}

#[tokio::test]
async fn a_closing_gateway_ends_streams_after_their_responses() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = SseClient::open(&gateway, "/sse").await;
    client.initialize(&json!({})).await;
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 200 } });
    let slow = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    assert_eq!(client.post(&slow).await, StatusCode::ACCEPTED);
    gateway.gateway.close();
    let (_, response) = client.events.next().await.unwrap();
    assert_eq!((&response["id"], client.events.next().await), (&json!(1), None));
}
