//! Streamable HTTP of the era without sessions.

use innkeeper_testkit::{Fixture, Journal, Remote, fx};
use serde_json::{Value, json};

use super::http::Http;
use super::{PATIENCE, initialize, request};
use crate::talk::{modern, text};

const VERSION: (&str, &str) = ("MCP-Protocol-Version", "2026-07-28");

fn call(id: u64, tool: &str, arguments: &Value) -> Value {
    let params = json!({"name": tool, "arguments": arguments});
    request(id, "tools/call", &modern(params, &json!({})))
}

async fn post(remote: &Remote, headers: &[(&str, &str)], message: &Value) -> Http {
    super::streamable::post(remote, headers, message).await
}

async fn post_call(remote: &Remote, id: u64, tool: &str, arguments: &Value) -> Http {
    let headers = [VERSION, ("Mcp-Method", "tools/call"), ("Mcp-Name", tool)];
    post(remote, &headers, &call(id, tool, arguments)).await
}

async fn discover(remote: &Remote) -> Http {
    let message = request(1, "server/discover", &modern(json!({}), &json!({})));
    post(remote, &[VERSION, ("Mcp-Method", "server/discover")], &message).await
}

fn fixture() -> Fixture {
    fx("a").with("--era", "modern")
}

#[tokio::test]
async fn discovery_and_calls_need_no_session_and_share_one_server() {
    let remote = Remote::of(fixture()).start().await;
    let mut reply = discover(&remote).await;
    assert_eq!((reply.status, reply.header("mcp-session-id")), (200, None));
    assert_eq!(reply.event().await.message()["result"]["supportedVersions"][0], "2026-07-28");
    let mut reply = post_call(&remote, 2, "echo", &json!({"message": "hello"})).await;
    assert_eq!(text(&reply.event().await.message()), "hello");
    reply.assert_ended().await;
    assert_eq!(remote.pids().len(), 1);
    assert_eq!(Http::ask(&remote, "GET", "/mcp", &[], None).await.status, 405);
    assert_eq!(Http::ask(&remote, "DELETE", "/mcp", &[], None).await.status, 405);
    let remote = Remote::of(fixture()).answers_as_json().start().await;
    let mut reply = post_call(&remote, 2, "echo", &json!({"message": "hello"})).await;
    assert_eq!(text(&reply.json().await), "hello");
}

#[tokio::test]
async fn headers_that_disagree_with_the_message_are_refused() {
    let remote = Remote::of(fixture()).start().await;
    let message = call(2, "echo", &json!({}));
    let method = ("Mcp-Method", "tools/call");
    let name = ("Mcp-Name", "echo");
    for headers in [
        &[method, name][..],
        &[("MCP-Protocol-Version", "2025-11-25"), method, name],
        &[VERSION, name],
        &[VERSION, ("Mcp-Method", "tools/list"), name],
        &[VERSION, method],
        &[VERSION, method, ("Mcp-Name", "add")],
        &[VERSION, method, ("Mcp-Name", "=?base64?YWRk?=")],
        &[VERSION, method, ("Mcp-Name", "=?base64?*?=")],
    ] {
        let mut reply = post(&remote, headers, &message).await;
        assert_eq!(reply.status, 400, "{headers:?}");
        let error = reply.json().await;
        assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32020), &json!(2)));
    }
    assert!(remote.pids().is_empty());
    let encoded = [VERSION, method, ("Mcp-Name", "=?base64?ZWNobw==?=")];
    assert_eq!(post(&remote, &encoded, &message).await.status, 200);
}

#[tokio::test]
async fn an_unknown_method_is_404_and_a_wrong_version_400() {
    let remote = Remote::of(fixture()).start().await;
    let message = request(2, "no/such", &modern(json!({}), &json!({})));
    let mut reply = post(&remote, &[VERSION, ("Mcp-Method", "no/such")], &message).await;
    assert_eq!((reply.status, &reply.json().await["error"]["code"]), (404, &json!(-32601)));
    let mut message = call(3, "echo", &json!({}));
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
    let remote = Remote::of(fx("a").with("--era", "dual")).start().await;
    assert_eq!(discover(&remote).await.status, 200);
    let client = super::streamable::Client::begin(&remote).await;
    assert_eq!(client.post(&super::echo(2, "x")).await.status, 200);
    assert_eq!(remote.pids().len(), 2);
    let remote = Remote::of(fx("a")).start().await;
    let mut reply = discover(&remote).await;
    assert!(![200, 404].contains(&reply.status));
    let error = reply.json().await;
    assert_eq!((&error["error"]["code"], &error["id"]), (&json!(-32000), &Value::Null));
}

#[tokio::test]
async fn a_closed_stream_cancels_its_request() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let fixture = fixture().journal(&journal).with("--log-flood", 1).with("--stall", 60_000);
    let remote = Remote::of(fixture).start().await;
    let mut streamed = post_call(&remote, 7, "echo", &json!({})).await;
    assert_eq!(streamed.event().await.message()["method"], "notifications/message");
    drop(streamed);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 1;
    let seen = Journal::until(&journal, PATIENCE, cancelled).await;
    assert_eq!(seen.params("notifications/cancelled")[0], &json!({"requestId": 7}));
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        VERSION,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "sleep"),
    ];
    let message = call(8, "sleep", &json!({"ms": 60_000}));
    let silent = Http::send(&remote, "POST", "/mcp", &headers, Some(&message)).await;
    remote.until(PATIENCE, |seen| seen.len() == 2).await;
    Journal::until(&journal, PATIENCE, |journal| journal.count("tools/call") == 2).await;
    drop(silent);
    let cancelled = |journal: &Journal| journal.count("notifications/cancelled") == 2;
    Journal::until(&journal, PATIENCE, cancelled).await;
}

#[tokio::test]
async fn a_subscription_stays_open_and_gets_only_its_own() {
    let remote = Remote::of(fixture().switch("--list-changed")).answers_as_json().start().await;
    let wanted = json!({"notifications": {"toolsListChanged": true}});
    let message = request(5, "subscriptions/listen", &modern(wanted, &json!({})));
    let headers = [VERSION, ("Mcp-Method", "subscriptions/listen")];
    let mut stream = post(&remote, &headers, &message).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    let first = stream.event().await.message();
    assert_eq!(first["method"], "notifications/subscriptions/acknowledged");
    let mut call = post_call(&remote, 6, "grow", &json!({})).await;
    assert_eq!(call.json().await["id"], 6);
    let change = stream.event().await.message();
    assert_eq!(change["method"], "notifications/tools/list_changed");
    assert_eq!(change["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 5);
}

#[tokio::test]
async fn a_shared_server_that_crashed_is_started_anew() {
    let remote = Remote::of(fixture().with("--crash-after", 1)).start().await;
    let headers = [
        ("Accept", "application/json, text/event-stream"),
        ("Content-Type", "application/json"),
        VERSION,
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", "echo"),
    ];
    let message = call(1, "echo", &json!({}));
    let mut lost = Http::send(&remote, "POST", "/mcp", &headers, Some(&message)).await;
    assert!(super::http::soon(lost.head()).await.is_err());
    assert_eq!(discover(&remote).await.status, 200);
}
