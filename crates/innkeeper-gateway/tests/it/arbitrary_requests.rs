//! A property of all requests: each has a response, and each error says what is wrong.

use std::cell::RefCell;
use std::collections::HashSet;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::FutureExt;
use http::{HeaderName, HeaderValue, Method, Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::{TestCaseError, TestRunner};
use serde_json::Value;
use tokio::time::timeout;
use tower::ServiceExt;

use crate::limits::local_access;
use crate::setup::TestEnv;

/// The id of the open session.
const SESSION: &str = "SESSION";

/// The id of the open stream of HTTP+SSE.
const STREAM: &str = "STREAM";

const METHODS: [&str; 7] = ["POST", "POST", "POST", "GET", "DELETE", "OPTIONS", "BREW"];

const PATHS: [&str; 9] = [
    "/mcp",
    "/mcp",
    "/mcp/",
    "/mcp/other",
    "/sse",
    "/sse/other",
    "/messages?sessionId=STREAM",
    "/messages?sessionId=SESSION",
    "/messages?x&=&sessionId",
];

const HEADERS: [(&str, &str); 20] = [
    ("accept", "application/json, text/event-stream"),
    ("accept", "application/json"),
    ("accept", "text/event-stream;q=0, */*"),
    ("authorization", "Bearer x"),
    ("content-type", "application/json"),
    ("content-type", "application/json; charset=utf-16"),
    ("content-length", "18446744073709551615"),
    ("host", "evil.example"),
    ("host", "[::1"),
    ("last-event-id", "0-0"),
    ("last-event-id", "18446744073709551615-18446744073709551615"),
    ("mcp-method", "tools/list"),
    ("mcp-method", "tools/call"),
    ("mcp-name", "=?base64?////?="),
    ("mcp-protocol-version", "2025-03-26"),
    ("mcp-protocol-version", "2026-07-28"),
    ("mcp-protocol-version", "9999-99-99"),
    ("mcp-session-id", "SESSION"),
    ("mcp-session-id", "guessed"),
    ("origin", "http://127.0.0.1"),
];

const BODIES: [&str; 9] = [
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#,
    r#"{"jsonrpc":"2.0","id":"a","method":"tools/list","params":{"cursor":"AAAA"}}"#,
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"a.b","arguments":{},"_meta":{"progressToken":1,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"a.b","requestState":"AAAA","inputResponses":{},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{}}}}}"#,
    r#"{"jsonrpc":"2.0","id":4,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}"#,
    r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#,
    r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
    r#"[{"jsonrpc":"2.0","id":1,"method":"ping"},{"jsonrpc":"2.0","id":1,"method":"ping"},7]"#,
    r#"{"jsonrpc":"2.0","id":1,"method":"resources/subscribe","params":{"uri":"a:b"}}"#,
];

/// A request before its session is known.
#[derive(Clone, Debug)]
struct ArbitraryRequest {
    method: String,
    path: String,
    headers: Vec<(String, Vec<u8>)>,
    body: Vec<u8>,
}

fn body() -> impl Strategy<Value = Vec<u8>> {
    let edits = vec((any::<prop::sample::Index>(), any::<u8>()), 0..3);
    let changed = (select(&BODIES[..]), edits, any::<prop::sample::Index>(), any::<bool>());
    let changed = changed.prop_map(|(body, edits, end, cut)| {
        let mut body = body.as_bytes().to_vec();
        for (index, byte) in edits {
            let length = body.len();
            body[index.index(length)] = byte;
        }
        if cut {
            body.truncate(end.index(body.len()));
        }
        body
    });
    prop_oneof![
        4 => select(&BODIES[..]).prop_map(|body| body.as_bytes().to_vec()),
        4 => changed,
        1 => vec(any::<u8>(), 0..64),
    ]
}

fn request() -> impl Strategy<Value = ArbitraryRequest> {
    let known =
        select(&HEADERS[..]).prop_map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec()));
    let changed = (select(&HEADERS[..]), vec(any::<u8>(), 0..12))
        .prop_map(|((name, _), value)| (name.to_owned(), value));
    let headers = vec(prop_oneof![6 => known, 1 => changed], 0..8);
    let path =
        prop_oneof![8 => select(&PATHS[..]).prop_map(str::to_owned), 1 => "/[a-z/%?=&]{0,12}"];
    (select(&METHODS[..]), path, any::<bool>(), headers, body()).prop_map(
        |(method, path, complete, mut headers, body)| {
            if complete {
                // Most requests must reach the parsers behind the first checks.
                headers.extend(
                    [HEADERS[0], HEADERS[4], HEADERS[17]]
                        .map(|(name, value)| (name.to_owned(), value.as_bytes().to_vec())),
                );
            }
            ArbitraryRequest { method: method.to_owned(), path, headers, body }
        },
    )
}

impl ArbitraryRequest {
    /// Returns the request with an open session and stream, or `None` if HTTP cannot contain it.
    fn build(self, session: &str, stream: &str) -> Option<Request<Body>> {
        let path = self.path.replace(SESSION, session).replace(STREAM, stream);
        let uri = format!("http://127.0.0.1{path}").parse::<http::Uri>().ok()?;
        let method = Method::from_bytes(self.method.as_bytes()).ok()?;
        let mut request = Request::builder().method(method).uri(uri).body(self.body.into()).ok()?;
        for (name, value) in self.headers {
            let is_session = value == SESSION.as_bytes();
            let value = if is_session { session.as_bytes() } else { &value[..] };
            let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
            request.headers_mut().insert(name, HeaderValue::from_bytes(value).ok()?);
        }
        let local = HeaderValue::from_static("127.0.0.1");
        request.headers_mut().entry("host").or_insert(local);
        Some(request)
    }
}

fn is_error(body: &[u8]) -> bool {
    let error = serde_json::from_slice::<Value>(body).unwrap_or_default();
    error["error"]["code"].is_i64()
        && error["error"]["message"].as_str().is_some_and(|message| !message.is_empty())
}

/// Opens a session, and returns its id.
async fn open_session(router: &Router) -> String {
    let request = Request::post("http://127.0.0.1/mcp")
        .header("host", "127.0.0.1")
        .header("content-type", "application/json")
        .body(Body::from(BODIES[0]));
    let response = router.clone().oneshot(request.unwrap()).await.unwrap();
    response.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

/// Opens a stream of HTTP+SSE, and returns its id and its events.
async fn open_stream(router: &Router) -> (String, Body) {
    let request = Request::get("http://127.0.0.1/sse")
        .header("host", "127.0.0.1")
        .header("accept", "text/event-stream")
        .body(Body::empty());
    let mut events = router.clone().oneshot(request.unwrap()).await.unwrap().into_body();
    let first = events.frame().await.unwrap().unwrap().into_data().unwrap();
    let first = std::str::from_utf8(&first).unwrap();
    (first.trim().rsplit('=').next().unwrap().to_owned(), events)
}

/// Checks a response and returns its status.
async fn check(response: Response<Body>) -> Result<u16, TestCaseError> {
    let status = response.status();
    let kind = response.headers().get("content-type").cloned();
    let kind = kind.as_ref().and_then(|kind| kind.to_str().ok());
    if kind == Some("text/event-stream") {
        prop_assert_eq!(status, StatusCode::OK);
        return Ok(200);
    }
    let body = response.into_body().collect().await.unwrap().to_bytes();
    let is_failure = status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE;
    prop_assert!(!is_failure, "{}", status);
    if status.is_client_error() || status.is_server_error() {
        prop_assert!(is_error(&body), "{}: {:?}", status, body);
    } else if kind == Some("application/json") {
        prop_assert!(serde_json::from_slice::<Value>(&body).is_ok(), "{:?}", body);
    }
    Ok(status.as_u16())
}

/// Minimum number of requests, so that each common status occurs.
const MIN_REQUESTS: u32 = 2_000;

/// Attack: remote | a client sends any request: method, path, headers and body | each has a response in
/// time, and each rejection says what is wrong | No unbounded wait
#[test]
fn every_request_has_a_response_and_every_rejection_says_what_is_wrong() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let _entered = runtime.enter();
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.limits.max_sessions = 16;
    let gateway = runtime.block_on(test_env.gateway_with(GatewayBuilder::new(options), []));
    let router = gateway.gateway.router(local_access());
    let session = runtime.block_on(open_session(&router));
    let (stream, events) = runtime.block_on(open_stream(&router));
    let (events, statuses) = (RefCell::new(events), RefCell::new(HashSet::new()));
    let config = ProptestConfig::default();
    let cases = config.cases.max(MIN_REQUESTS);
    let mut runner = TestRunner::new(ProptestConfig { cases, failure_persistence: None, ..config });
    let outcome = runner.run(&request(), |request| {
        let Some(request) = request.build(&session, &stream) else { return Ok(()) };
        if request.method() == Method::DELETE {
            // The other requests need the session.
            return Ok(());
        }
        let response = runtime.block_on(async {
            let sending = router.clone().oneshot(request);
            timeout(Duration::from_secs(10), sending).await.expect("a response in time").unwrap()
        });
        let status = runtime.block_on(check(response))?;
        statuses.borrow_mut().insert(status);
        // A stream that nobody reads takes no more messages.
        while events.borrow_mut().frame().now_or_never().flatten().is_some() {}
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let statuses = statuses.into_inner();
    for status in [200, 202, 400, 403, 404, 405, 406, 415] {
        assert!(statuses.contains(&status), "no request had the status {status}");
    }
}
