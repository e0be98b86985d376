//! Requests of clients that use HTTP in their own way.

use axum::Router;
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::http::{call, initialize, json as read_json};
use crate::rest::request;
use crate::setup::TestEnv;

async fn post(
    router: &Router,
    path: &str,
    headers: &[(&str, &str)],
    body: Vec<u8>,
) -> Response<Body> {
    let request = headers
        .iter()
        .fold(request("POST", path), |request, (name, value)| request.header(*name, *value));
    router.clone().oneshot(request.body(Body::from(body)).unwrap()).await.unwrap()
}

fn first() -> Vec<u8> {
    initialize(&json!({})).to_string().into_bytes()
}

/// Opens a session of 2025-03-26, whose clients send batches.
async fn session(router: &Router) -> String {
    let mut message = initialize(&json!({}));
    message["params"]["protocolVersion"] = "2025-03-26".into();
    let opened = post(router, "/mcp", &[], message.to_string().into_bytes()).await;
    opened.headers()["mcp-session-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn media_types_have_any_case_and_a_quality_of_zero_excludes_one() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--progress", 2).with("--progress-delay", 50);
    let router = test_env.gateway([server]).await.router();
    let any_case = [("accept", "Application/Json, Text/Event-Stream")];
    assert_eq!(post(&router, "/mcp", &any_case, first()).await.status(), StatusCode::OK);
    let session = session(&router).await;
    let session = ("mcp-session-id", session.as_str());
    for (accept, kind) in [
        ("application/json, text/event-stream;q=0", "application/json"),
        ("*/*, text/event-stream; q=0.0", "application/json"),
        ("application/json, text/event-stream;q=0.1", "text/event-stream"),
    ] {
        let body = call(1).to_string().into_bytes();
        let response = post(&router, "/mcp", &[("accept", accept), session], body).await;
        assert_eq!(response.headers()["content-type"], kind, "{accept}");
    }
    let none = [("accept", "application/json;q=0, text/event-stream")];
    assert_eq!(post(&router, "/mcp", &none, first()).await.status(), StatusCode::NOT_ACCEPTABLE);
}

#[tokio::test]
async fn a_stream_needs_no_accept_and_a_browser_learns_what_the_url_is_for() {
    let test_env = TestEnv::new();
    let router = test_env.gateway([test_env.fixture("a")]).await.router();
    let session = session(&router).await;
    let stream = request("GET", "/mcp").header("mcp-session-id", &session);
    let stream = router.clone().oneshot(stream.body(Body::empty()).unwrap()).await.unwrap();
    assert_eq!(stream.status(), StatusCode::OK);
    for accept in ["text/html", "text/event-stream"] {
        let page = request("GET", "/mcp").header("accept", accept).body(Body::empty()).unwrap();
        let page = router.clone().oneshot(page).await.unwrap();
        assert_eq!(page.status(), StatusCode::METHOD_NOT_ALLOWED);
        assert_eq!(page.headers()["allow"], "POST");
        let body = read_json(page).await;
        assert!(body["error"]["message"].as_str().unwrap().contains("MCP clients"), "{body}");
    }
}

#[tokio::test]
async fn a_slash_at_the_end_and_a_byte_order_mark_change_nothing_and_a_coding_is_refused() {
    let test_env = TestEnv::new();
    let router = test_env.gateway([test_env.fixture("a")]).await.router();
    assert_eq!(post(&router, "/mcp/", &[], first()).await.status(), StatusCode::OK);
    let with_mark = [b"\xef\xbb\xbf".as_slice(), &first()].concat();
    assert_eq!(post(&router, "/mcp", &[], with_mark).await.status(), StatusCode::OK);
    let coded = post(&router, "/mcp", &[("content-encoding", "gzip")], first()).await;
    assert_eq!(coded.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE);
    assert_eq!(coded.headers()["accept-encoding"], "identity");
}

#[tokio::test]
async fn the_valid_messages_of_a_batch_run() {
    let test_env = TestEnv::new();
    let router = test_env.gateway([test_env.fixture("a")]).await.router();
    let session = session(&router).await;
    let headers = [("mcp-session-id", session.as_str())];
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let batch = json!([ping, { "foo": 1 }]).to_string().into_bytes();
    let response = post(&router, "/mcp", &headers, batch).await;
    assert_eq!(response.status(), StatusCode::OK);
    let replies = read_json(response).await;
    let replies: &Vec<Value> = replies.as_array().unwrap();
    assert_eq!(replies.len(), 2, "{replies:?}");
    assert!(replies.iter().any(|reply| reply["error"]["code"] == -32600), "{replies:?}");
    assert!(replies.iter().any(|reply| reply["id"] == 1 && reply["result"].is_object()));
    let invalid = post(&router, "/mcp", &headers, b"[{}]".to_vec()).await;
    assert_eq!(invalid.status(), StatusCode::BAD_REQUEST);
}

#[tokio::test]
async fn the_refusal_of_a_call_without_a_session_has_the_id_of_the_call() {
    let test_env = TestEnv::new();
    let router = test_env.gateway([test_env.fixture("a")]).await.router();
    let response = post(&router, "/mcp", &[], call(7).to_string().into_bytes()).await;
    assert_eq!(response.status(), StatusCode::BAD_REQUEST);
    let refusal = read_json(response).await;
    assert_eq!(refusal["id"], 7, "{refusal}");
    assert!(refusal["error"]["message"].as_str().unwrap().contains("send `initialize` first"));
}

#[tokio::test]
async fn an_empty_cursor_is_the_first_page() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([test_env.fixture("a")]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    for list in ["tools", "prompts", "resources"] {
        let listed = client.request(&format!("{list}/list"), json!({ "cursor": "" })).await;
        assert!(listed[list].is_array(), "{listed}");
    }
}
