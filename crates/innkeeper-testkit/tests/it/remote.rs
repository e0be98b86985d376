//! Tests of remote transports: variants and faults.

mod faults;
pub(crate) mod http;
mod modern;
mod sse;
mod streamable;
mod unix;
mod websocket;

use std::time::Duration;

use innkeeper_testkit::{Fault, ProcessTag, RemoteServer, fixture, wait_gone};
use serde_json::{Value, json};

use http::HttpExchange;

/// Maximum wait on a loaded machine.
pub(crate) const RECEIVE_TIMEOUT: Duration = Duration::from_secs(20);

pub(crate) fn request(id: u64, method: &str, params: &Value) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})
}

pub(crate) fn initialize() -> Value {
    let params = json!({
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    });
    request(1, "initialize", &params)
}

pub(crate) fn initialized() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/initialized"})
}

pub(crate) fn echo_call(id: u64, text: &str) -> Value {
    request(id, "tools/call", &json!({"name": "echo", "arguments": {"message": text}}))
}

#[tokio::test]
async fn a_recorder_remembers_every_request_with_its_headers() {
    let remote = RemoteServer::request_recorder().start().await;
    let body = json!({"a": 1});
    let reply = HttpExchange::request(
        &remote,
        "POST",
        "/any?x=1",
        &[("Authorization", "Bearer s")],
        Some(&body),
    )
    .await;
    assert_eq!(reply.status, 200);
    let requests = remote
        .wait_for(RECEIVE_TIMEOUT, |requests| {
            requests.iter().any(|recorded| recorded.status.is_some())
        })
        .await;
    assert_eq!(requests.len(), 1);
    assert_eq!((requests[0].method.as_str(), requests[0].path.as_str()), ("POST", "/any?x=1"));
    assert_eq!(requests[0].header("authorization"), Some("Bearer s"));
    assert_eq!((&requests[0].body, requests[0].status), (&body, Some(200)));
}

#[tokio::test]
async fn an_entry_has_the_address_the_headers_and_the_keys() {
    let server = fixture("a").config_key("timeout", 5);
    let remote =
        RemoteServer::for_fixture(server).header("Authorization", "Bearer s").start().await;
    let expected = json!({
        "type": "http", "url": remote.url(), "headers": {"Authorization": "Bearer s"}, "timeout": 5,
    });
    assert_eq!(remote.config_entry(), expected);
    assert!(remote.url().ends_with("/mcp") && remote.url().starts_with("http://127.0.0.1:"));
    assert_eq!(
        RemoteServer::for_fixture(fixture("a")).sse().start().await.config_entry()["type"],
        "sse"
    );
    assert_eq!(
        RemoteServer::for_fixture(fixture("a"))
            .sse()
            .with_type_name("http")
            .start()
            .await
            .config_entry()["type"],
        "http"
    );
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process_and_no_listener() {
    let tag = ProcessTag::new();
    let fixture = fixture("a").process_tag(&tag).switch("--grandchild").switch("--ignore-eof");
    let remote = RemoteServer::for_fixture(fixture).start().await;
    let _ = streamable::SessionClient::start_session(&remote).await;
    let origin = remote.origin().to_owned();
    assert_eq!(remote.pids().len(), 1);
    drop(remote);
    assert!(wait_gone(&tag, RECEIVE_TIMEOUT).is_ok());
    let address = origin.trim_start_matches("http://");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stopped_server_has_reaped_its_children_and_left_no_task() {
    let stall = Fault::stall().on_rpc_method("tools/call");
    let remote =
        RemoteServer::for_fixture(fixture("a")).with_event_ids().fault(stall).start().await;
    let client = streamable::SessionClient::start_session(&remote).await;
    let _streams = (client.get(None).await, client.post(&echo_call(2, "x")).await);
    let pid = remote.pids()[0];
    remote.stop().await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
#[should_panic(expected = "is not supported by")]
async fn a_fault_of_another_transport_fails_where_the_server_is_started() {
    let fault = Fault::binary_frame();
    let _ = RemoteServer::for_fixture(fixture("a")).fault(fault).start().await;
}
