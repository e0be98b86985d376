//! The shares of one client: of the memory of unread responses, and of the connections.

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use innkeeper_testkit::Journal;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::limits::{KEYS, ServedGateway, access_with_keys, as_client, request};
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

/// The result of each call.
const RESULT_BYTES: usize = 20 << 10;

/// What one client may leave unread: the errors of a batch of 40, and some results.
const SHARE_BYTES: usize = 10 * RESULT_BYTES;

/// Starts a gateway whose calls have large results.
async fn gateway(test_env: &TestEnv, progress: bool) -> TestGateway {
    let text = "x".repeat(RESULT_BYTES);
    let result = json!({ "content": [{ "type": "text", "text": text }] }).to_string();
    let server = test_env.fixture("a").with("--call-result-text", result);
    let server = if progress { server.with("--progress", 1) } else { server };
    let mut options = GatewayOptions::default();
    options.limits.max_response_bytes = 2 * SHARE_BYTES;
    let server = server.journal(&test_env.journal());
    test_env.gateway_with(GatewayBuilder::new(options), [server]).await
}

fn call(id: usize) -> Value {
    let params = json!({ "name": "a.echo", "arguments": { "message": "hi" },
        "_meta": { "progressToken": id } });
    json!({ "jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params })
}

async fn send(router: &Router, client: usize, request: Request<Body>) -> Response<Body> {
    let response = timeout(TEST_TIMEOUT, router.clone().oneshot(as_client(client, request))).await;
    response.expect("a response in time").unwrap()
}

async fn session(router: &Router, client: usize) -> String {
    let params = json!({ "protocolVersion": "2025-03-26", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" } });
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params });
    let response = send(router, client, request(None, message.to_string())).await;
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

async fn text(response: Response<Body>) -> String {
    let body = timeout(TEST_TIMEOUT, response.into_body().collect()).await.unwrap().unwrap();
    String::from_utf8(body.to_bytes().to_vec()).unwrap()
}

/// Attack: remote | a client sends a batch of calls with large results and does not read the response |
/// the batch stops when the results fill the share of the client: each further call has an error that
/// says whether it ran; calls of another client go on | No unbounded memory
#[tokio::test]
async fn a_batch_stops_when_its_responses_fill_the_share_of_the_client() {
    let test_env = TestEnv::new();
    let gateway = gateway(&test_env, false).await;
    let router = gateway.gateway.router(access_with_keys());
    let (ann, ben) = (session(&router, 0).await, session(&router, 1).await);
    let batch: Vec<Value> = (0..40).map(call).collect();
    let unread = send(&router, 0, request(Some(&ann), json!(batch).to_string())).await;
    assert_eq!(unread.status(), StatusCode::OK);
    let mut singles = Vec::new();
    for id in 50..54 {
        singles.push(send(&router, 0, request(Some(&ann), call(id).to_string())).await);
    }
    let last = text(singles.pop().unwrap()).await;
    assert!(last.contains("was dropped"), "{last}");
    let of_other = send(&router, 1, request(Some(&ben), call(1).to_string())).await;
    assert!(text(of_other).await.len() > RESULT_BYTES);
    let body = text(unread).await;
    assert!(body.len() <= SHARE_BYTES, "{}", body.len());
    let responses: Vec<Value> = serde_json::from_str(&body).unwrap();
    let ids: Vec<_> = responses.iter().map(|response| response["id"].as_u64().unwrap()).collect();
    assert_eq!(ids, (0..40).collect::<Vec<_>>());
    let (mut results, mut dropped, mut not_run) = (0, 0, 0);
    for response in &responses {
        let error = &response["error"];
        let message = error["message"].as_str().unwrap_or_default();
        if error.is_null() {
            results += 1;
        } else if error["data"] == json!({ "kind": "unreadResponses", "mayHaveRun": true }) {
            assert!(message.starts_with("the request ran, but its response of 20"), "{message}");
            dropped += 1;
        } else {
            assert_eq!(error["data"], json!({ "kind": "unreadResponses", "mayHaveRun": false }));
            assert!(message.starts_with("the request did not run: "), "{message}");
            not_run += 1;
        }
    }
    println!("{results} results, {dropped} dropped, {not_run} not run");
    assert!((5..=9).contains(&results) && dropped <= 16 && not_run >= 10);
    // And the single calls.
    let calls = Journal::read(&test_env.journal()).count("tools/call");
    assert_eq!(calls, results + dropped + 5);
    drop(singles);
    let after = send(&router, 0, request(Some(&ann), call(60).to_string())).await;
    assert!(text(after).await.len() > RESULT_BYTES, "the client has read the batch");
}

/// Attack: remote | a client makes calls over many connections and reads no result, as JSON and as
/// events | results above its share are dropped with status 503 or an error that says so, and another
/// client gets its result | No unbounded memory
#[tokio::test]
async fn results_that_nobody_reads_have_a_maximum() {
    for events in [false, true] {
        let test_env = TestEnv::new();
        let gateway = gateway(&test_env, events).await;
        let router = gateway.gateway.router(access_with_keys());
        let plain = || {
            let mut call = request(None, r#"{"message":"hi"}"#);
            *call.uri_mut() = "/tools/a.echo".parse().unwrap();
            call
        };
        let session = session(&router, 0).await;
        let mut unread = Vec::new();
        for id in 0..12 {
            let call = match events {
                true => request(Some(&session), call(id).to_string()),
                false => plain(),
            };
            unread.push(send(&router, 0, call).await);
        }
        let of_other = send(&router, 1, plain()).await;
        assert_eq!(of_other.status(), StatusCode::OK);
        assert!(text(of_other).await.len() > RESULT_BYTES);
        let mut results = 0;
        for response in unread {
            let is_ok = response.status() == StatusCode::OK;
            assert_eq!(events, response.headers()["content-type"] == "text/event-stream");
            assert!(is_ok || response.status() == StatusCode::SERVICE_UNAVAILABLE);
            let text = text(response).await;
            match text.len() > RESULT_BYTES {
                true => results += 1,
                false => assert!(text.contains("was dropped: unread responses of this"), "{text}"),
            }
        }
        assert!((5..=9).contains(&results), "{results}");
    }
}

impl ServedGateway {
    /// Opens a connection, sends a request of a client and returns the start of the response.
    async fn connect(&self, client: usize) -> (TcpStream, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let response = self.list_tools(&mut stream, client).await;
        (stream, response)
    }

    async fn list_tools(&self, stream: &mut TcpStream, client: usize) -> String {
        let (address, key) = (self.address, KEYS[client]);
        let request = format!(
            "GET /tools HTTP/1.1\r\nhost: {address}\r\nauthorization: Bearer {key}\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut read = vec![0; 64 << 10];
        let count = timeout(TEST_TIMEOUT, stream.read(&mut read)).await.unwrap().unwrap();
        String::from_utf8_lossy(&read[..count]).into_owned()
    }
}

/// Attack: remote | a client opens more than half of the connections | its request over one more has
/// status 503 and the connection ends; another client connects | Isolation
#[tokio::test]
async fn one_client_has_at_most_half_of_the_connections() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.limits.max_connections = 4;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), []).await;
    let served = ServedGateway::start(&gateway).await;
    let mut own = Vec::new();
    for _ in 0..2 {
        let (stream, response) = served.connect(0).await;
        assert!(response.starts_with("HTTP/1.1 200"), "{response}");
        own.push(stream);
    }
    let (mut third, response) = served.connect(0).await;
    assert!(response.starts_with("HTTP/1.1 503"), "{response}");
    assert!(response.contains("connection: close"), "{response}");
    assert!(response.contains("2 open connections"), "{response}");
    let end = timeout(TEST_TIMEOUT, third.read_to_end(&mut Vec::new())).await;
    end.expect("the gateway ends the connection").unwrap();
    let (_other, response) = served.connect(1).await;
    assert!(response.starts_with("HTTP/1.1 200"), "{response}");
    let again = served.list_tools(&mut own[0], 0).await;
    assert!(again.starts_with("HTTP/1.1 200"), "its other connections go on: {again}");
    drop(own);
    let reconnecting = async { while !served.connect(0).await.1.starts_with("HTTP/1.1 200") {} };
    timeout(TEST_TIMEOUT, reconnecting).await.expect("a place is free again");
}
