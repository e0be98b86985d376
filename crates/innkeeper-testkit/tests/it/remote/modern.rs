//! Tests of Streamable HTTP without sessions.

use innkeeper_testkit::{Fixture, Journal, RemoteServer, fixture};
use serde_json::{Value, json};

use super::http::HttpExchange;
use super::{RECEIVE_TIMEOUT, initialize, request};
use crate::stdio_client::{result_text, with_modern_meta};

const PROTOCOL_VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn tool_call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    request(id, "tools/call", &with_modern_meta(params, &json!({})))
}

async fn post(remote: &RemoteServer, headers: &[(&str, &str)], message: &Value) -> HttpExchange {
    super::streamable::post(remote, headers, message).await
}

async fn post_call(remote: &RemoteServer, id: u64, tool: &str, arguments: &Value) -> HttpExchange {
    let headers = [PROTOCOL_VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    post(remote, &headers, &tool_call(id, tool, arguments)).await
}

async fn discover(remote: &RemoteServer) -> HttpExchange {
    let message = request(1, "server/discover", &with_modern_meta(json!({}), &json!({})));
    post(remote, &[PROTOCOL_VERSION, ("Mcp-Method", "server/discover")], &message).await
}

fn modern_fixture() -> Fixture {
    fixture("a").with("--era", "modern")
}

#[tokio::test]
async fn discovery_and_calls_need_no_session_and_share_one_server() {
    let remote = RemoteServer::for_fixture(modern_fixture()).start().await;
    let mut reply = discover(&remote).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(
        reply.expect_event().await.message()["result"]["supportedVersions"][0],
        "2026-07-28"
    );
    let mut reply = post_call(&remote, 2, "echo", &json!({"message": "hello"})).await;
    assert_eq!(result_text(&reply.expect_event().await.message()), "hello");
    reply.assert_ended().await;
    assert_eq!(remote.pids().len(), 1);
    assert_eq!(HttpExchange::request(&remote, "GET", "/mcp", &[], None).await.status, 405);
    assert_eq!(HttpExchange::request(&remote, "DELETE", "/mcp", &[], None).await.status, 405);
    let remote = RemoteServer::for_fixture(modern_fixture()).with_json_responses().start().await;
    let mut reply = post_call(&remote, 2, "echo", &json!({"message": "hello"})).await;
    assert_eq!(result_text(&reply.json().await), "hello");
}

#[tokio::test]
async fn headers_that_disagree_with_the_message_are_refused() {
    let remote = RemoteServer::for_fixture(modern_fixture()).start().await;
    let message = tool_call(2, "echo", &json!({}));
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "echo");
    for headers in [
        &[method, name][..],
        &[("MCP-Protocol-Version", "2025-11-25"), method, name],
        &[PROTOCOL_VERSION, name],
        &[PROTOCOL_VERSION, ("Mcp-Method", "tools/list"), name],
        &[PROTOCOL_VERSION, method],
        &[PROTOCOL_VERSION, method, ("Mcp-Name", "add")],
        &[PROTOCOL_VERSION, method, ("Mcp-Name", "=?base64?YWRk?=")],
        &[PROTOCOL_VERSION, method, ("Mcp-Name", "=?base64?*?=")],
    ] {
        let mut reply = post(&remote, headers, &message).await;
        assert_eq!(reply.status, 400, "{headers:?}");
        let error = reply.json().await;
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32020), &json!(2)));
    }
    assert!(remote.pids().is_empty());
    let encoded = [PROTOCOL_VERSION, method, ("Mcp-Name", "=?base64?ZWNobw==?=")];
    assert_eq!(post(&remote, &encoded, &message).await.status, 200);
}

#[tokio::test]
async fn an_unknown_method_is_404_and_a_wrong_version_400() {
    let remote = RemoteServer::for_fixture(modern_fixture()).start().await;
    let message = request(2, "no/such", &with_modern_meta(json!({}), &json!({})));
    let mut reply = post(&remote, &[PROTOCOL_VERSION, ("Mcp-Method", "no/such")], &message).await;
    assert_eq!((reply.status, &reply.json().await["error"]["code"]), (404, &json!(-32601)));
    let mut message = tool_call(3, "echo", &json!({}));
    message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = json!("2027-01-01");
    let other = ("MCP-Protocol-Version", "2027-01-01");
    let headers = [other, ("Mcp-Method", "tools/call"), ("Mcp-Name", "echo")];
    let mut reply = post(&remote, &headers, &message).await;
    assert_eq!((reply.status, &reply.json().await["error"]["code"]), (400, &json!(-32022)));
    let mut reply = post(&remote, &[], &initialize()).await;
    assert_eq!((reply.status, &reply.json().await["error"]["code"]), (400, &json!(-32022)));
}

#[tokio::test]
async fn a_dual_server_takes_both_eras_and_a_legacy_one_refuses_discovery() {
    let remote = RemoteServer::for_fixture(fixture("a").with("--era", "dual")).start().await;
    assert_eq!(discover(&remote).await.status, 200);
    let client = super::streamable::SessionClient::start_session(&remote).await;
    assert_eq!(client.post(&super::echo_call(2, "x")).await.status, 200);
    assert_eq!(remote.pids().len(), 2);
    let remote = RemoteServer::for_fixture(fixture("a")).start().await;
    let mut reply = discover(&remote).await;
    assert!(![200, 404].contains(&reply.status));
    let error = reply.json().await;
    assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32000), &Value::Null));
}

#[tokio::test]
async fn a_closed_stream_cancels_its_request() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let fixture = modern_fixture().journal(&journal).with("--log-flood", 1).with("--stall", 60_000);
    let remote = RemoteServer::for_fixture(fixture).start().await;
    let mut streamed = post_call(&remote, 7, "echo", &json!({})).await;
    assert_eq!(streamed.expect_event().await.message()["method"], "notifications/message");
    drop(streamed);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    let entries = Journal::wait_for(&journal, RECEIVE_TIMEOUT, cancelled).await;
    assert_eq!(entries.params("notifications/cancelled")[0], &json!({"requestId": 7}));
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        PROTOCOL_VERSION,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "sleep"),
    ];
    let message = tool_call(8, "sleep", &json!({"ms": 60_000}));
    let silent = HttpExchange::send(&remote, "POST", "/mcp", &headers, Some(&message)).await;
    remote.wait_for(RECEIVE_TIMEOUT, |requests| requests.len() == 2).await;
    Journal::wait_for(&journal, RECEIVE_TIMEOUT, |journal| journal.count("tools/call") == 2).await;
    drop(silent);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 2;
    Journal::wait_for(&journal, RECEIVE_TIMEOUT, cancelled).await;
}

#[tokio::test]
async fn a_subscription_stays_open_and_gets_only_its_own() {
    let remote = RemoteServer::for_fixture(modern_fixture().switch("--list-changed"))
        .with_json_responses()
        .start()
        .await;
    let filter = json!({"notifications": {"toolsListChanged": true}});
    let message = request(5, "subscriptions/listen", &with_modern_meta(filter, &json!({})));
    let headers = [PROTOCOL_VERSION, ("Mcp-Method", "subscriptions/listen")];
    let mut stream = post(&remote, &headers, &message).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let first = stream.expect_event().await.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let mut call = post_call(&remote, 6, "grow", &json!({})).await;
    assert_eq!(call.json().await["id"], 6);
    let change = stream.expect_event().await.message();
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
}

#[tokio::test]
async fn a_shared_server_that_crashed_is_started_anew() {
    let remote = RemoteServer::for_fixture(modern_fixture().with("--crash-after", 1)).start().await;
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        PROTOCOL_VERSION,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let message = tool_call(1, "echo", &json!({}));
    let mut disconnected =
        HttpExchange::send(&remote, "POST", "/mcp", &headers, Some(&message)).await;
    assert!(super::http::within_timeout(disconnected.read_head()).await.is_err());
    assert_eq!(discover(&remote).await.status, 200);
}
