//! Limits over HTTP: sizes, malformed messages, numbers of sessions, and clients beside a client that
//! floods or stalls.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::auth::{ApiKey, AuthSettings, Authenticator};
use innkeeper_gateway::origin::{OriginCheck, OriginSettings};
use innkeeper_gateway::rate_limits::RateLimits;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions, HttpAccess};
use innkeeper_host::Environment;
use innkeeper_host::config::{Rate, RateConfig};
use innkeeper_testkit::{Journal, rss_kib};
use ring::digest::{SHA256, digest};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::http::call;
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

/// The keys of two clients.
pub(crate) const KEYS: [&str; 2] =
    ["0123456789abcdef0123456789abcdef", "fedcba9876543210fedcba9876543210"];

pub(crate) fn local_access() -> HttpAccess {
    let origin = OriginCheck::new(IpAddr::V4(Ipv4Addr::LOCALHOST), OriginSettings::default());
    HttpAccess { authenticator: Authenticator::local_user(), origin }
}

/// A message for `/mcp`, of a session or for a new one.
pub(crate) fn request(session: Option<&str>, body: impl Into<Body>) -> Request<Body> {
    let request = Request::builder()
        .method("POST")
        .uri("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream");
    let request = match session {
        Some(session) => request.header("mcp-session-id", session),
        None => request,
    };
    request.body(body.into()).unwrap()
}

fn initialize(version: &str, filler: &str) -> String {
    let capabilities = json!({ "experimental": { "filler": filler } });
    let params = json!({ "protocolVersion": version, "capabilities": capabilities,
        "clientInfo": { "name": "test", "version": "1" } });
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params }).to_string()
}

async fn send(router: &Router, request: Request<Body>) -> (StatusCode, Value) {
    let response = timeout(TEST_TIMEOUT, router.clone().oneshot(request)).await;
    body(response.expect("a response in time").unwrap()).await
}

async fn body(response: Response<Body>) -> (StatusCode, Value) {
    let status = response.status();
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    (status, serde_json::from_slice(&bytes).unwrap_or_default())
}

/// Starts a session and returns its id.
async fn session(router: &Router, version: &str) -> String {
    let request = request(None, initialize(version, ""));
    let response = router.clone().oneshot(request).await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn gateway(test_env: &TestEnv, options: GatewayOptions) -> TestGateway {
    test_env.gateway_with(GatewayBuilder::new(options), [test_env.fixture("a")]).await
}

fn ping(id: usize) -> String {
    json!({ "jsonrpc": "2.0", "id": id, "method": "ping" }).to_string()
}

fn nested(depth: usize) -> String {
    let value = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    format!(r#"{{"jsonrpc":"2.0","id":1,"method":"ping","params":{{"x":{value}}}}}"#)
}

/// Attack: remote | a client sends bodies that are no JSON-RPC message: cut off, not UTF-8, nested too
/// deeply, with wrong members | each has status 400 and an error that says what is wrong, and the
/// session goes on | Own response
#[tokio::test]
async fn each_malformed_body_has_an_error_that_says_what_is_wrong() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(local_access());
    let session = session(&router, "2025-11-25").await;
    let (parse_error, invalid) = (-32700, -32600);
    let cases: Vec<(Vec<u8>, i64)> = vec![
        (b"".to_vec(), parse_error),
        (b"{".to_vec(), parse_error),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping""#.to_vec(), parse_error),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping"} {}"#.to_vec(), parse_error),
        (br#"{"jsonrpc":"2.0","id":01,"method":"ping"}"#.to_vec(), parse_error),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"p\xff\"}".to_vec(), parse_error),
        (b"\xff\xfe{\0}\0".to_vec(), parse_error),
        (b"\"ping\"".to_vec(), invalid),
        (b"7".to_vec(), invalid),
        (b"null".to_vec(), invalid),
        (b"[]".to_vec(), invalid),
        (b"{}".to_vec(), invalid),
        (br#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#.to_vec(), invalid),
        (br#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#.to_vec(), invalid),
        (br#"{"jsonrpc":"2.0","id":1,"method":7}"#.to_vec(), invalid),
        (br#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#.to_vec(), invalid),
        (br#"{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}"#.to_vec(), invalid),
        (br#"{"jsonrpc":"2.0","id":1}"#.to_vec(), invalid),
        (nested(126).into_bytes(), invalid),
        (nested(1_000_000).into_bytes(), invalid),
        ("[".repeat(1_000_000).into_bytes(), invalid),
    ];
    for (body, code) in cases {
        let text = String::from_utf8_lossy(&body[..body.len().min(60)]).into_owned();
        let (status, error) = send(&router, request(Some(&session), body)).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{text}: {error}");
        assert_eq!(error["error"]["code"], code, "{text}: {error}");
        assert!(!error["error"]["message"].as_str().unwrap().is_empty(), "{text}: {error}");
    }
    let (status, result) = send(&router, request(Some(&session), nested(125))).await;
    assert_eq!((status, &result["result"]), (StatusCode::OK, &json!({})), "at the limit");
}

/// Attack: remote | a client sends requests without a method, path or type that the gateway has | each
/// has a status and an error that names the next step | Own response
#[tokio::test]
async fn each_rejection_is_a_json_rpc_error_with_the_next_step() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(local_access());
    let session = session(&router, "2025-11-25").await;
    let changed = |change: &dyn Fn(&mut Request<Body>)| {
        let mut request = request(Some(&session), ping(1));
        change(&mut request);
        request
    };
    let header = |name: &'static str, value: &'static str| {
        changed(&|request| drop(request.headers_mut().insert(name, value.parse().unwrap())))
    };
    let cases = [
        (header("content-type", "text/plain"), 415, "application/json"),
        (header("content-type", "application/jsonp"), 415, "application/json"),
        (header("accept", "text/html"), 406, "text/event-stream"),
        (header("mcp-session-id", "guessed"), 404, "initialize"),
        (header("mcp-protocol-version", "1999-01-01"), 400, "1999-01-01"),
        (changed(&|request| *request.method_mut() = "PUT".parse().unwrap()), 405, "POST"),
        (changed(&|request| *request.uri_mut() = "/unknown".parse().unwrap()), 404, "/mcp"),
        (changed(&|request| *request.uri_mut() = "/mcp/other".parse().unwrap()), 404, "endpoints"),
        (changed(&|request| *request.body_mut() = vec![b' '; 10_000_000].into()), 413, "8388608"),
    ];
    for (number, (request, status, text)) in cases.into_iter().enumerate() {
        let (found, error) = send(&router, request).await;
        assert_eq!(found.as_u16(), status, "case {number}: {error}");
        let message = error["error"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "case {number}: {error}");
        assert_eq!((&error["jsonrpc"], &error["id"]), (&json!("2.0"), &Value::Null));
    }
    let unknown = json!({ "jsonrpc": "2.0", "id": 4, "method": "weather/today" }).to_string();
    let (status, error) = send(&router, request(Some(&session), unknown)).await;
    assert_eq!((status, &error["id"]), (StatusCode::OK, &json!(4)));
    assert_eq!(error["error"]["code"], -32601, "{error}");
}

fn batch(messages: usize) -> String {
    format!("[{}]", (0..messages).map(ping).collect::<Vec<_>>().join(","))
}

/// Attack: remote | a client sends batches of the maximum size and larger ones, and batches in
/// revisions without batches | the larger ones have one error, and none of their messages is used |
/// No unbounded memory
#[tokio::test]
async fn a_batch_has_a_maximum_number_of_messages_and_only_one_revision_has_batches() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(local_access());
    let with_batches = session(&router, "2025-03-26").await;
    let (status, responses) = send(&router, request(Some(&with_batches), batch(1_024))).await;
    assert_eq!(status, StatusCode::OK);
    let ids: Vec<_> = responses.as_array().unwrap().iter().map(|one| one["id"].clone()).collect();
    assert_eq!(ids, (0..1_024).map(Value::from).collect::<Vec<_>>());
    let one = send(&router, request(Some(&with_batches), batch(1))).await.1;
    assert_eq!(one, json!([{ "jsonrpc": "2.0", "id": 0, "result": {} }]), "a batch of one");
    for messages in [1_025, 10_000] {
        let (status, error) = send(&router, request(Some(&with_batches), batch(messages))).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{messages}");
        assert_eq!(error["error"]["code"], -32600, "{messages}: {error}");
    }
    let twice = format!("[{},{}]", initialize("2025-03-26", ""), ping(1));
    let (_, responses) = send(&router, request(Some(&with_batches), twice)).await;
    assert_eq!(responses[0]["error"]["code"], -32600, "{responses}");
    let without = session(&router, "2025-06-18").await;
    let (status, error) = send(&router, request(Some(&without), batch(2))).await;
    assert_eq!(status, StatusCode::BAD_REQUEST, "{error}");
    let mut modern = request(None, batch(2));
    modern.headers_mut().insert("mcp-protocol-version", "2026-07-28".parse().unwrap());
    let (status, error) = send(&router, modern).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert!(error["error"]["message"].as_str().unwrap().contains("one message"), "{error}");
}

/// Attack: remote | a client hides calls from its rate, and from the rate of a tool, in one batch | each
/// message counts, what is above a rate has an error with its own id, and the rest runs | Isolation
#[tokio::test]
async fn each_message_of_a_batch_counts_for_the_rates() {
    let rate = |burst| Rate { per_minute: 1, burst };
    let requests = RateConfig { requests: Some(rate(10)), ..RateConfig::default() };
    let tools = [("a.echo".to_owned(), rate(3))].into_iter().collect();
    let calls = RateConfig { requests: None, tools };
    // `initialize` is the first request, and the HTTP request counts for the first message.
    for (rates, permitted) in [(requests, 9), (calls, 3)] {
        let test_env = TestEnv::new();
        let builder = GatewayBuilder::new(GatewayOptions::default());
        let builder = builder.rate_limits(RateLimits::new(rates, []));
        let server = test_env.fixture("a").journal(&test_env.journal());
        let gateway = test_env.gateway_with(builder, [server]).await;
        let router = gateway.gateway.router(local_access());
        let session = session(&router, "2025-03-26").await;
        let calls: Vec<String> = (0..20).map(|id| call(id).to_string()).collect();
        let batch = format!("[{}]", calls.join(","));
        let (status, responses) = send(&router, request(Some(&session), batch)).await;
        assert_eq!(status, StatusCode::OK, "{responses}");
        let responses = responses.as_array().unwrap();
        let ids: Vec<&Value> = responses.iter().map(|response| &response["id"]).collect();
        assert_eq!(ids, (0..20).map(Value::from).collect::<Vec<_>>().iter().collect::<Vec<_>>());
        let refused = |response: &&Value| response["error"]["data"]["kind"] == "rate";
        assert_eq!(responses.iter().filter(refused).count(), 20 - permitted);
        assert_eq!(Journal::read(&test_env.journal()).count("tools/call"), permitted);
    }
}

/// A message above the rate that starts no work is accepted: a cancellation must not be lost.
#[tokio::test]
async fn a_cancellation_in_a_batch_above_the_rate_ends_its_call() {
    let requests = Some(Rate { per_minute: 1, burst: 3 });
    let rates = RateConfig { requests, ..RateConfig::default() };
    let builder = GatewayBuilder::new(GatewayOptions::default());
    let builder = builder.rate_limits(RateLimits::new(rates, []));
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway_with(builder, [server]).await;
    let router = gateway.gateway.router(local_access());
    let session = session(&router, "2025-03-26").await;
    let params = json!({ "name": "a.sleep", "arguments": { "ms": 60_000 } });
    let slow = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
    let calling = router.clone().oneshot(request(Some(&session), slow.to_string()));
    let mut tasks = JoinSet::new();
    tasks.spawn(calling);
    let journal = test_env.journal();
    let received =
        |method| Journal::wait_for(&journal, TEST_TIMEOUT, move |all| all.count(method) > 0);
    received("tools/call").await;
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled",
        "params": { "requestId": 1 } });
    let batch = format!("[{},{},{cancel}]", ping(2), ping(3));
    let (_, responses) = send(&router, request(Some(&session), batch)).await;
    assert_eq!(responses[1]["error"]["data"]["kind"], "rate", "{responses}");
    received("notifications/cancelled").await;
    tasks.join_next().await.unwrap().unwrap().unwrap();
}

#[tokio::test]
async fn a_batch_with_progress_gets_all_responses_on_its_stream() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--progress", 1);
    let gateway = test_env.gateway([server]).await;
    let router = gateway.gateway.router(local_access());
    let session = session(&router, "2025-03-26").await;
    let call = json!({ "jsonrpc": "2.0", "id": "call", "method": "tools/call", "params": {
        "name": "a.echo", "arguments": { "message": "hi" }, "_meta": { "progressToken": 1 } } });
    let pings: Vec<String> = (0..600).map(ping).collect();
    let batch = format!("[{call},{}]", pings.join(","));
    let response = router.clone().oneshot(request(Some(&session), batch)).await.unwrap();
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let body = timeout(TEST_TIMEOUT, response.into_body().collect()).await.unwrap().unwrap();
    let text = String::from_utf8(body.to_bytes().to_vec()).unwrap();
    let last = text.lines().rev().find_map(|line| line.strip_prefix("data: ")).unwrap();
    let responses: Value = serde_json::from_str(last).unwrap();
    assert_eq!(responses.as_array().map(Vec::len), Some(601));
}

/// Attack: remote | a client opens sessions until the limit, and declares large capabilities in each |
/// further sessions and larger parameters are refused with the next step | No unbounded memory
#[tokio::test]
async fn sessions_have_a_maximum_number_and_a_maximum_size() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.limits.max_sessions = 2;
    let gateway = gateway(&test_env, options).await;
    let router = gateway.gateway.router(local_access());
    let first = session(&router, "2025-11-25").await;
    session(&router, "2025-11-25").await;
    let third = request(None, initialize("2025-11-25", ""));
    let refused = router.clone().oneshot(third).await.unwrap();
    assert_eq!(refused.headers()["retry-after"], "10");
    let (status, error) = body(refused).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("serve.limits.sessions"), "{error}");
    let mut delete = request(Some(&first), Body::empty());
    *delete.method_mut() = "DELETE".parse().unwrap();
    assert_eq!(send(&router, delete).await.0, StatusCode::NO_CONTENT);
    // `initialize` that fails leaves no session.
    let frame = initialize("2025-11-25", "").split_once("\"params\":").unwrap().1.len() - 1;
    let large = initialize("2025-11-25", &"x".repeat((64 << 10) - frame + 1));
    let (status, error) = send(&router, request(None, large)).await;
    assert_eq!(status, StatusCode::BAD_REQUEST);
    assert_eq!(error["error"]["code"], -32602, "{error}");
    let largest = initialize("2025-11-25", &"x".repeat((64 << 10) - frame));
    assert_eq!(send(&router, request(None, largest)).await.0, StatusCode::OK);
}

/// Access with an API key for each of two clients.
pub(crate) fn access_with_keys() -> HttpAccess {
    let api_keys = [("ann", KEYS[0]), ("ben", KEYS[1])].map(|(principal, key)| ApiKey {
        principal: principal.into(),
        sha256: digest(&SHA256, key.as_bytes()).as_ref().try_into().unwrap(),
    });
    let settings = AuthSettings { api_keys: api_keys.into(), oauth: None };
    let authenticator = Authenticator::new(settings, &Environment::default()).unwrap();
    HttpAccess { authenticator, ..local_access() }
}

/// Adds the key of a client to a request.
pub(crate) fn as_client(number: usize, mut request: Request<Body>) -> Request<Body> {
    let credential = format!("Bearer {}", KEYS[number]).parse().unwrap();
    request.headers_mut().insert("authorization", credential);
    request
}

/// A gateway that serves two clients on a port.
pub(crate) struct ServedGateway {
    pub(crate) address: SocketAddr,
    _serving: JoinSet<std::io::Result<()>>,
}

impl ServedGateway {
    pub(crate) async fn start(gateway: &TestGateway) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let address = listener.local_addr().unwrap();
        let gateway = gateway.gateway.clone();
        let mut serving = JoinSet::new();
        serving.spawn(async move { gateway.serve_http(listener, access_with_keys()).await });
        Self { address, _serving: serving }
    }

    /// Opens a connection and sends a call of a modern client, with a length that may be larger than
    /// the body.
    async fn send(&self, key: &str, message: &str, missing: usize) -> TcpStream {
        let params = json!({ "name": "a.echo", "arguments": { "message": message }, "_meta": {
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
        }});
        let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let body = call.to_string();
        let length = body.len() + missing;
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!(
            "POST /mcp HTTP/1.1\r\nhost: {}\r\nauthorization: Bearer {key}\r\n\
             content-type: application/json\r\naccept: application/json, text/event-stream\r\n\
             mcp-protocol-version: 2026-07-28\r\nmcp-method: tools/call\r\nmcp-name: a.echo\r\n\
             connection: close\r\ncontent-length: {length}\r\n\r\n{body}",
            self.address
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        stream
    }

    /// Calls a tool and returns the response as text.
    async fn call(&self, key: &str, message: &str) -> String {
        let mut stream = self.send(key, message, 0).await;
        let mut response = String::new();
        let reading = timeout(TEST_TIMEOUT, stream.read_to_string(&mut response));
        reading.await.expect("a response in time").unwrap();
        response
    }
}

/// Attack: remote | a client leaves bodies unfinished, does not read large responses, and sends
/// requests without a pause | the calls of another client go on | Isolation
#[tokio::test(flavor = "multi_thread")]
async fn a_client_that_floods_and_stalls_does_not_stop_the_calls_of_another() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let served = Arc::new(ServedGateway::start(&gateway).await);
    let mut stalled = Vec::new();
    for _ in 0..50 {
        // Below the limit of a body, so that the gateway waits for the rest.
        stalled.push(served.send(KEYS[0], "unfinished", 1 << 20).await);
    }
    let large = "x".repeat(1 << 20);
    for _ in 0..8 {
        stalled.push(served.send(KEYS[0], &large, 0).await);
    }
    let mut flood = JoinSet::new();
    for _ in 0..8 {
        let served = served.clone();
        flood.spawn(async move {
            loop {
                served.call(KEYS[0], "flood").await;
            }
        });
    }
    for number in 0..10 {
        let message = format!("call {number}");
        let response = served.call(KEYS[1], &message).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        assert!(response.contains(&message), "{response}");
    }
    flood.abort_all();
    assert!(flood.join_next().await.unwrap().unwrap_err().is_cancelled(), "it went on");
    for unfinished in &stalled[..50] {
        let read = unfinished.try_read(&mut [0; 1]);
        assert_eq!(read.unwrap_err().kind(), std::io::ErrorKind::WouldBlock, "it is unfinished");
    }
}

/// Attack: remote | a client opens sessions until its share | another client gets a session |
/// Isolation
#[tokio::test]
async fn one_client_has_at_most_half_of_the_sessions() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.limits.max_sessions = 4;
    let gateway = gateway(&test_env, options).await;
    let router = gateway.gateway.router(access_with_keys());
    let mut statuses = Vec::new();
    for client in [0, 0, 0, 1, 1, 1] {
        let request = as_client(client, request(None, initialize("2025-11-25", "")));
        statuses.push(send(&router, request).await.0.as_u16());
    }
    assert_eq!(statuses, [200, 200, 503, 200, 200, 503]);
    let (status, _) = send(&router, request(None, initialize("2025-11-25", ""))).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let mut unknown = request(None, ping(1));
    *unknown.uri_mut() = "/mcp/unknown".parse().unwrap();
    let status = send(&router, unknown).await.0;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "only a client learns which endpoints exist");
}

/// Attack: remote | a client uses the session id of another client, to call, to listen and to end the
/// session | each answer is that to an unknown id, and the session goes on | Isolation
#[tokio::test]
async fn a_session_belongs_to_the_client_that_opened_it() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(access_with_keys());
    let opened = as_client(0, request(None, initialize("2025-11-25", "")));
    let response = router.clone().oneshot(opened).await.unwrap();
    let session = response.headers()["mcp-session-id"].to_str().unwrap().to_owned();
    let unknown = "0".repeat(session.len());
    for method in ["POST", "GET", "DELETE"] {
        let mut answers = Vec::new();
        for id in [&session, &unknown] {
            let mut used = as_client(1, request(Some(id), ping(1)));
            *used.method_mut() = method.parse().unwrap();
            answers.push(send(&router, used).await);
        }
        assert_eq!(answers[0], answers[1], "{method}");
        assert_eq!(answers[0].0, StatusCode::NOT_FOUND, "{method}");
    }
    let own = send(&router, as_client(0, request(Some(&session), ping(2)))).await;
    assert_eq!(own.0, StatusCode::OK);
}

/// Attack: remote | a client without a key tries every route, and paths that other products leave
/// open, with a call as its body | only health and sign-in metadata answer, and nothing is called |
/// Complete checks
#[tokio::test]
async fn only_health_and_metadata_answer_without_a_key() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(access_with_keys());
    let call = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "a.echo", "arguments": {} } });
    let paths = "/mcp /mcp/a /mcp/ /tools /tools/a.echo /openapi.json /endpoints/a/tools \
        /endpoints/a/tools/a.echo /endpoints/a/openapi.json /metrics /sse /sse/a \
        /.well-known/x /.well-known/oauth-protected-resource/mcp /healthz /readyz /health /docs \
        /mcp/../tools /mcp;x /mcp%2f /MCP //mcp";
    for path in paths.split_whitespace() {
        for method in ["GET", "POST", "PUT", "DELETE", "OPTIONS"] {
            let mut tried = request(None, call.to_string());
            *tried.method_mut() = method.parse().unwrap();
            *tried.uri_mut() = path.parse().unwrap();
            let (status, body) = send(&router, tried).await;
            let is_open = method == "GET" && ["/healthz", "/readyz"].contains(&path);
            assert!(is_open == status.is_success(), "{method} {path}: {status} {body}");
            assert!(body.get("result").is_none(), "{method} {path}: {body}");
        }
    }
}

/// Opens sessions and returns the memory of each in bytes.
async fn memory_of_idle_sessions(count: usize) -> u64 {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, GatewayOptions::default()).await;
    let router = gateway.gateway.router(local_access());
    session(&router, "2025-11-25").await;
    let before = rss_kib();
    for _ in 0..count {
        session(&router, "2025-11-25").await;
    }
    (rss_kib() - before) * 1024 / count as u64
}

/// Maximum memory of an idle session.
const MAX_IDLE_SESSION_BYTES: u64 = 4 << 10;

/// Attack: remote | a client opens many sessions and uses none | each costs little memory |
/// No unbounded memory
#[tokio::test]
async fn an_idle_session_costs_little_memory() {
    let bytes = memory_of_idle_sessions(5_000).await;
    println!("{bytes} bytes for each session");
    assert!(bytes <= MAX_IDLE_SESSION_BYTES, "{bytes}");
}
