//! Fixture servers behind remote transports: each transport, each quirk, each fault.

mod faults;
pub(crate) mod http;
mod modern;
mod sse;
mod streamable;
mod unix;
mod websocket;

use std::time::Duration;

use innkeeper_testkit::{Fault, Nonce, Remote, fx, wait_gone};
use serde_json::{Value, json};

use http::Http;

/// How long a loaded machine may take for anything.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

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

pub(crate) fn echo(id: u64, text: &str) -> Value {
    request(id, "tools/call", &json!({"name": "echo", "arguments": {"message": text}}))
}

#[tokio::test]
async fn a_recorder_remembers_every_request_with_its_headers() {
    let remote = Remote::recorder().start().await;
    let body = json!({"a": 1});
    let reply =
        Http::ask(&remote, "POST", "/any?x=1", &[("Authorization", "Bearer s")], Some(&body)).await;
    assert_eq!(reply.status, 200);
    let seen = remote.until(PATIENCE, |seen| seen.iter().any(|one| one.status.is_some())).await;
    assert_eq!(seen.len(), 1);
    assert_eq!((seen[0].method.as_str(), seen[0].path.as_str()), ("POST", "/any?x=1"));
    assert_eq!(seen[0].header("authorization"), Some("Bearer s"));
    assert_eq!((&seen[0].body, seen[0].status), (&body, Some(200)));
}

#[tokio::test]
async fn an_entry_has_the_address_the_headers_and_the_keys() {
    let fixture = fx("a").key("timeout", 5);
    let remote = Remote::of(fixture).header("Authorization", "Bearer s").start().await;
    let wanted = json!({
        "type": "http", "url": remote.url(), "headers": {"Authorization": "Bearer s"}, "timeout": 5,
    });
    assert_eq!(remote.entry(), wanted);
    assert!(remote.url().ends_with("/mcp") && remote.url().starts_with("http://127.0.0.1:"));
    assert_eq!(Remote::of(fx("a")).sse().start().await.entry()["type"], "sse");
    assert_eq!(Remote::of(fx("a")).sse().typed("http").start().await.entry()["type"], "http");
}

#[tokio::test]
async fn a_dropped_server_leaves_no_process_and_no_listener() {
    let nonce = Nonce::new();
    let fixture = fx("a").nonce(&nonce).switch("--grandchild").switch("--ignore-eof");
    let remote = Remote::of(fixture).start().await;
    drop(streamable::Client::begin(&remote).await);
    let origin = remote.origin().to_owned();
    assert_eq!(remote.pids().len(), 1);
    drop(remote);
    assert!(wait_gone(&nonce, PATIENCE).is_ok());
    let address = origin.trim_start_matches("http://");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    assert!(tokio::net::TcpStream::connect(address).await.is_err());
}

#[tokio::test]
async fn a_stopped_server_has_reaped_its_children_and_left_no_task() {
    let stall = Fault::stall().on("tools/call");
    let remote = Remote::of(fx("a")).with_event_ids().fault(stall).start().await;
    let client = streamable::Client::begin(&remote).await;
    let _streams = (client.get(None).await, client.post(&echo(2, "x")).await);
    let pid = remote.pids()[0];
    remote.stop().await;
    assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
    assert_eq!(tokio::runtime::Handle::current().metrics().num_alive_tasks(), 0);
}

#[tokio::test]
#[should_panic(expected = "is no fault of")]
async fn a_fault_of_another_transport_fails_where_the_server_is_started() {
    let fault = Fault::binary();
    drop(Remote::of(fx("a")).fault(fault).start().await);
}
