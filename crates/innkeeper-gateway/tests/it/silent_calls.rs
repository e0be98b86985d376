//! Calls that send nothing for some seconds, and calls whose client loses its connection.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use innkeeper_testkit::Journal;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::http::{HttpClient, initialize, modern, modern_meta};
use crate::rest;
use crate::setup::{TEST_TIMEOUT, TestEnv, TestGateway};

/// The time without a message after which a response starts.
const SILENCE: Duration = Duration::from_secs(5);

/// Time that the tool takes after its call has arrived.
const CALL_MS: u64 = 500;

struct Silent {
    test_env: TestEnv,
    gateway: TestGateway,
}

impl Silent {
    async fn new() -> Self {
        Self::with_timeout(Duration::from_mins(10)).await
    }

    /// Starts a server whose calls have this time.
    async fn with_timeout(timeout: Duration) -> Self {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").journal(&test_env.journal());
        let server = server.with("--slow", CALL_MS).config_key("timeout", timeout.as_secs());
        let gateway = test_env.gateway([server]).await;
        Self { test_env, gateway }
    }

    async fn wait_for(&self, method: &str) {
        let received = |journal: &Journal| journal.count(method) == 1;
        Journal::wait_for(&self.test_env.journal(), TEST_TIMEOUT, received).await;
    }

    /// Sends a call, and lets the silence pass while the tool works.
    async fn response(&self, router: &Router, request: Request<Body>) -> Response<Body> {
        let passing = async {
            self.wait_for("tools/call").await;
            tokio::time::pause();
            tokio::time::advance(SILENCE).await;
            std::future::pending::<()>().await;
        };
        let response = tokio::select! {
            biased;
            response = router.clone().oneshot(request) => response.unwrap(),
            () = passing => unreachable!(),
        };
        // The tool works on in the time of its process.
        tokio::time::resume();
        response
    }
}

fn slow_call() -> Value {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "a.sleep", "arguments": { "ms": 0 },
    }})
}

async fn body(response: Response<Body>) -> String {
    let bytes = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Opens a session of a revision. Returns the request for a slow call.
async fn session_call(router: &Router, revision: &str, accept: &str) -> Request<Body> {
    let mut message = initialize(&json!({}));
    message["params"]["protocolVersion"] = revision.into();
    let request = rest::request("POST", "/mcp").header("accept", accept);
    let opened = router.clone().oneshot(request.body(Body::from(message.to_string())).unwrap());
    let opened = opened.await.unwrap();
    rest::request("POST", "/mcp")
        .header("accept", accept)
        .header("mcp-session-id", &opened.headers()["mcp-session-id"])
        .body(Body::from(slow_call().to_string()))
        .unwrap()
}

#[tokio::test]
async fn the_stream_of_a_silent_call_starts_after_some_seconds_in_both_eras() {
    let both = "application/json, text/event-stream";
    for (revision, start) in
        [("2025-11-25", "id: 1-0\ndata: \n\n"), ("2025-06-18", ":\n"), ("2026-07-28", ":\n")]
    {
        let silent = Silent::new().await;
        let router = silent.gateway.router();
        let request = match revision {
            "2026-07-28" => {
                let client = HttpClient::new(&silent.gateway);
                let (parts, _) = modern(&client, "a.sleep", &json!({})).into_parts();
                let mut message = slow_call();
                message["params"]["_meta"] = modern_meta(&json!({}));
                Request::from_parts(parts, Body::from(message.to_string()))
            }
            _ => session_call(&router, revision, both).await,
        };
        let response = silent.response(&router, request).await;
        assert_eq!(response.status(), StatusCode::OK);
        assert_eq!(response.headers()["content-type"], "text/event-stream", "{revision}");
        let text = body(response).await;
        assert!(text.starts_with(start), "{revision}: {text:?}");
        assert!(text.contains("\"id\":7"), "{revision}: {text:?}");
    }
}

#[tokio::test]
async fn without_replicas_a_call_of_less_than_some_seconds_is_answered_with_json() {
    let silent = Silent::new().await;
    let router = silent.gateway.router();
    let both = "application/json, text/event-stream";
    for revision in ["2025-11-25", "2025-06-18"] {
        let request = session_call(&router, revision, both).await;
        let response = router.clone().oneshot(request).await.unwrap();
        assert_eq!(response.headers()["content-type"], "application/json", "{revision}");
    }
}

#[tokio::test]
async fn a_client_that_reads_json_gets_white_space_and_then_the_response() {
    let silent = Silent::new().await;
    let router = silent.gateway.router();
    let request = session_call(&router, "2025-11-25", "application/json").await;
    let response = silent.response(&router, request).await;
    assert_eq!(response.headers()["content-type"], "application/json");
    let text = body(response).await;
    assert!(text.starts_with('\n'), "{text:?}");
    let response: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(response["id"], 7);
}

#[tokio::test]
async fn a_silent_call_over_plain_http_is_answered_and_a_late_error_is_a_result() {
    for is_late in [false, true] {
        // The silence is a part of the time.
        let timeout = if is_late { SILENCE + Duration::from_secs(1) } else { 10 * SILENCE };
        let silent = Silent::with_timeout(timeout).await;
        let router = silent.gateway.router();
        let request = rest::request("POST", "/tools/a.sleep");
        let arguments = json!({ "ms": if is_late { 60_000 } else { 0 } });
        let request = request.body(Body::from(arguments.to_string())).unwrap();
        let response = silent.response(&router, request).await;
        assert_eq!(response.status(), StatusCode::OK);
        let text = body(response).await;
        assert!(text.starts_with('\n'), "{text:?}");
        let result: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(result["isError"] == true, is_late, "{result}");
        assert_eq!(result["problem"]["status"] == 504, is_late, "{result}");
    }
}

#[tokio::test]
async fn a_lost_connection_cancels_no_call_of_a_session() {
    for accept in ["application/json, text/event-stream", "application/json"] {
        let silent = Silent::new().await;
        let router = silent.gateway.router();
        let request = session_call(&router, "2025-06-18", accept).await;
        let leaving = silent.wait_for("tools/call");
        tokio::select! {
            biased;
            _ = router.clone().oneshot(request) => panic!("answered"),
            () = leaving => {}
        }
        let finished = async {
            loop {
                let request = rest::request("GET", "/metrics").body(Body::empty()).unwrap();
                let metrics = body(router.clone().oneshot(request).await.unwrap()).await;
                let line = r#"{transport="http",method="tools/call",outcome="ok"} 1"#;
                if metrics.contains(line) {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(TEST_TIMEOUT, finished).await.expect("the call ends");
        let journal = Journal::read(&silent.test_env.journal());
        assert_eq!(journal.count("notifications/cancelled"), 0, "{accept}");
    }
}
