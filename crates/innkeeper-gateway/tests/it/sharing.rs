//! Sharing of servers: by all clients, by the clients of a principal, by a session; idle servers.

use std::time::Duration;

use axum::Router;
use axum::body::Body;
use futures_util::future::join_all;
use http::Request;
use http_body_util::BodyExt;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use innkeeper_host::ServerState;
use innkeeper_testkit::Fixture;
use serde_json::{Value, json};
use tower::ServiceExt;

use crate::setup::{TestClient, TestEnv, TestGateway, text};

/// A server that keeps notes in memory, shared as `share` says.
fn notes_server(test_env: &TestEnv, share: &str) -> Fixture {
    test_env.fixture("n").switch("--notes").config_key("share", share)
}

async fn note(client: &mut TestClient, text: &str) {
    client.call("n.note", json!({ "text": text })).await;
}

async fn notes(client: &mut TestClient) -> Vec<String> {
    serde_json::from_str(&client.call("n.notes", json!({})).await).unwrap()
}

/// Proof of the page on sharing: who sees the note of whom.
///
/// Attack: remote | a client reads what a client of another principal kept in a server with
/// `share: principal` or `share: session` | each principal, or each session, has a process of its
/// own | Isolation
#[tokio::test]
async fn a_note_is_seen_by_the_clients_that_share_the_server_and_by_no_other() {
    // Processes, and what the second session of ada and what bob see of ada's note.
    let expectations = [
        ("process", 1, vec!["canary"], vec!["canary"]),
        ("principal", 2, vec!["canary"], vec![]),
        ("session", 3, vec![], vec![]),
    ];
    for (share, processes, same_principal, other_principal) in expectations {
        let test_env = TestEnv::new();
        let gateway = test_env.gateway([notes_server(&test_env, share)]).await;
        let mut ada = gateway.initialized("ada", json!({})).await;
        let mut ada_again = gateway.initialized("ada", json!({})).await;
        let mut bob = gateway.initialized("bob", json!({})).await;
        note(&mut ada, "canary").await;
        assert_eq!(notes(&mut ada).await, ["canary"], "{share}");
        assert_eq!(notes(&mut ada_again).await, same_principal, "{share}");
        assert_eq!(notes(&mut bob).await, other_principal, "{share}");
        assert_eq!(test_env.process_count(), processes, "{share}");
        gateway.gateway.shut_down_private_servers().await;
        gateway.host.shutdown().await;
        assert_eq!(test_env.process_count(), 0, "{share}");
    }
}

#[tokio::test]
async fn the_process_of_a_session_ends_with_the_session() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([notes_server(&test_env, "session")]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    assert_eq!(test_env.process_count(), 0, "`initialize` starts nothing");
    note(&mut ada, "of ada").await;
    note(&mut bob, "of bob").await;
    assert_eq!(test_env.process_count(), 2);
    ada.close().await.unwrap();
    test_env.wait_for_processes(1).await;
}

#[tokio::test]
async fn private_servers_start_once_for_requests_at_the_same_time() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([notes_server(&test_env, "principal")]).await;
    assert_eq!(test_env.process_count(), 0, "nobody needs the server yet");
    let mut clients: Vec<_> = (0..8).map(|_| gateway.modern("ada", json!({}))).collect();
    let lists = clients.iter_mut().map(|client| client.request("tools/list", json!({})));
    for list in join_all(lists).await {
        assert!(list["tools"].to_string().contains("n.note"), "{list}");
    }
    assert_eq!(test_env.process_count(), 1);
}

/// A client of the modern era over HTTP, whose requests have no session.
struct StatelessClient(Router);

impl StatelessClient {
    async fn call(&self, name: &str, arguments: Value) -> String {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientCapabilities": {},
            "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        });
        let params = json!({ "name": name, "arguments": arguments, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params });
        let request = Request::builder()
            .method("POST")
            .uri("http://127.0.0.1/mcp")
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", name)
            .body(Body::from(body.to_string()))
            .unwrap();
        let response = self.0.clone().oneshot(request).await.unwrap();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        let message: Value = serde_json::from_slice(&body).unwrap();
        text(&message["result"])
    }
}

#[tokio::test]
async fn requests_without_a_session_are_those_of_one_session_of_their_principal() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([notes_server(&test_env, "session")]).await;
    let mut connected = gateway.initialized("local", json!({})).await;
    note(&mut connected, "of the connection").await;
    let stateless = StatelessClient(gateway.router());
    stateless.call("n.note", json!({ "text": "first" })).await;
    assert_eq!(stateless.call("n.notes", json!({})).await, r#"["first"]"#);
    assert_eq!(notes(&mut connected).await, ["of the connection"]);
    assert_eq!(test_env.process_count(), 2);
}

#[tokio::test]
async fn a_question_and_a_change_of_a_private_server_reach_only_its_client() {
    let test_env = TestEnv::new();
    let asking = test_env.fixture("n").switch("--ask-elicit");
    let changing = test_env.fixture("m").switch("--list-changed");
    let servers = [asking, changing].map(|server| server.config_key("share", "principal"));
    let gateway = test_env.gateway(servers).await;
    let mut ada = gateway.initialized("ada", json!({ "elicitation": {} })).await;
    let mut bob = gateway.initialized("bob", json!({ "elicitation": {} })).await;
    let call = ada.start("tools/call", json!({ "name": "n.pid", "arguments": {} })).await;
    let question = ada.received("elicitation/create").await;
    ada.answer(&question, json!({ "action": "accept", "content": { "name": "ada" } })).await;
    let response = ada.response(&call).await;
    assert!(response["result"].to_string().contains("ada"), "{response}");
    ada.call("m.grow", json!({})).await;
    ada.received("notifications/tools/list_changed").await;
    let count = |list: &Value| list["tools"].as_array().unwrap().len();
    let changed = count(&ada.request("tools/list", json!({})).await);
    let unchanged = count(&bob.request("tools/list", json!({})).await);
    assert_eq!(changed, unchanged + 1, "ada's server has a further tool");
    // His own servers started at his first request.
    let own_change = |message: &Value| message["method"] == "notifications/resources/list_changed";
    assert!(bob.waiting.iter().all(own_change), "{:?}", bob.waiting);
}

/// A gateway whose servers stop after 50 ms without a use.
async fn idle_gateway(
    test_env: &TestEnv,
    options: GatewayOptions,
    servers: impl IntoIterator<Item = Fixture>,
) -> TestGateway {
    let servers = servers.into_iter().map(|server| server.config_key("idleTimeout", 0.05));
    test_env.gateway_with(GatewayBuilder::new(options), servers).await
}

#[tokio::test]
async fn fifty_idle_servers_have_no_process_until_the_first_call() {
    let test_env = TestEnv::new();
    let servers = (0..50).map(|number| test_env.fixture(&format!("s{number}")).switch("--notes"));
    let gateway = idle_gateway(&test_env, GatewayOptions::default(), servers).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    let before = client.request("tools/list", json!({})).await;
    test_env.wait_for_processes(0).await;
    let at_rest = client.request("tools/list", json!({})).await;
    assert_eq!(at_rest, before, "the definitions stay, in their order");
    assert_eq!(test_env.process_count(), 0, "a list starts no server");
    // Calls at the same time start the server once.
    let mut calls = Vec::new();
    for number in 0..10 {
        let params = json!({ "name": "s7.note", "arguments": { "text": number.to_string() } });
        calls.push(client.start("tools/call", params).await);
    }
    for call in calls {
        let response = client.response(&call).await;
        assert_eq!(text(&response["result"]), "noted", "{response}");
    }
    let kept = client.call("s7.notes", json!({})).await;
    let mut kept: Vec<String> = serde_json::from_str(&kept).unwrap();
    kept.sort();
    let expected: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    assert_eq!(kept, expected, "one process got all calls");
    test_env.wait_for_processes(0).await;
    let changes = client.waiting.iter().filter(|message| {
        message["method"].as_str().is_some_and(|method| method.ends_with("list_changed"))
    });
    assert_eq!(changes.count(), 0, "a stop and a start change no list");
    assert_eq!(client.call("s7.notes", json!({})).await, "[]", "the next process is new");
}

#[tokio::test]
async fn a_server_in_use_does_not_stop() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--touch");
    let gateway = idle_gateway(&test_env, GatewayOptions::default(), [server]).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    let slept = client.call("a.sleep", json!({ "ms": 400 })).await;
    assert_eq!(slept, "slept", "a call of several idle timeouts");
    client.request("resources/subscribe", json!({ "uri": "fx://a/static" })).await;
    let pid = client.call("a.pid", json!({})).await;
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(client.call("a.pid", json!({})).await, pid, "a subscribed resource is a use");
    client.request("resources/unsubscribe", json!({ "uri": "fx://a/static" })).await;
    test_env.wait_for_processes(0).await;
}

#[tokio::test]
async fn the_dependencies_of_an_idle_server_start_first_and_stop_last() {
    let test_env = TestEnv::new();
    let dependent = test_env.fixture("b").config_key("dependencies", json!(["a"]));
    let servers = [test_env.fixture("a"), dependent];
    let gateway = idle_gateway(&test_env, GatewayOptions::default(), servers).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    test_env.wait_for_processes(0).await;
    let slept =
        client.start("tools/call", json!({ "name": "b.sleep", "arguments": { "ms": 300 } }));
    let slept = slept.await;
    test_env.wait_for_processes(2).await;
    client.response(&slept).await;
    assert_eq!(test_env.process_count(), 2, "the dependent runs");
    test_env.wait_for_processes(0).await;
}

#[tokio::test]
async fn an_idle_server_that_does_not_start_again_has_an_error_that_says_so() {
    let test_env = TestEnv::new();
    let directory = tempfile::tempdir().unwrap();
    let gate = directory.path().join("gate");
    std::fs::write(&gate, "").unwrap();
    // The working directory of the server disappears.
    let server = test_env.fixture("a").config_key("cwd", directory.path().to_str().unwrap());
    let gateway = idle_gateway(&test_env, GatewayOptions::default(), [server]).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    test_env.wait_for_processes(0).await;
    let path = directory.path().to_owned();
    directory.close().unwrap();
    let params = json!({ "name": "a.pid", "arguments": {} });
    let response = client.respond("tools/call", params.clone()).await;
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.starts_with("server `a` did not start: "), "{message}");
    assert_eq!(message.matches("server `a`").count(), 1, "{message}");
    assert_eq!(response["error"]["data"]["mayHaveRun"], false);
    std::fs::create_dir(&path).unwrap();
    let again = client.request("tools/call", params).await;
    assert!(again["content"].is_array(), "the next call starts it again: {again}");
    std::fs::remove_dir_all(&path).unwrap();
}

#[tokio::test]
async fn the_maximum_number_of_processes_ends_what_nobody_uses_and_then_rejects() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 2;
    let server = notes_server(&test_env, "principal");
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    let mut eve = gateway.initialized("eve", json!({})).await;
    note(&mut ada, "of ada").await;
    note(&mut bob, "kept").await;
    let call = json!({ "name": "n.notes", "arguments": {} });
    let response = eve.respond("tools/call", call.clone()).await;
    assert_eq!(
        response["error"]["message"],
        "server `n` did not start: all clients together have too many server processes: \
         `serve.limits.processes` permits 2; end a session, or try again later"
    );
    let listed = eve.request("tools/list", json!({})).await;
    assert_eq!(listed, json!({ "tools": [] }), "the rest of the list");
    assert_eq!(test_env.process_count(), 2);
    // The end of ada's connection leaves her server, which the next principal needs.
    ada.close().await.unwrap();
    assert_eq!(text(&eve.request("tools/call", call).await), "[]");
    eve.received("notifications/tools/list_changed").await;
    assert_eq!(test_env.process_count(), 2);
    assert_eq!(notes(&mut bob).await, ["kept"]);
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn servers_over_the_maximum_of_memory_stop_and_start_again() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.server_limits.max_memory = Some(100 << 20);
    // Each call allocates 64 MiB and frees nothing.
    let servers = ["a", "b"].map(|name| test_env.fixture(name).with("--alloc", 64 << 20));
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), servers).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    let first = client.call("a.pid", json!({})).await;
    client.call("b.pid", json!({})).await;
    // `a` was used before `b`.
    while gateway.host.status()["a"].state != ServerState::Shutdown {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(gateway.host.status()["b"].state, ServerState::Ready);
    client.call("b.pid", json!({})).await;
    test_env.wait_for_processes(0).await;
    assert_ne!(client.call("a.pid", json!({})).await, first, "the next call starts it again");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_call_whose_server_stops_for_its_memory_has_an_error_that_names_the_limit() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.server_limits.max_memory = Some(100 << 20);
    // The call allocates before its response waits for the answer of the client.
    let server = test_env.fixture("a").with("--alloc", 128 << 20).with("--stall", 60_000);
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    let response = client.respond("tools/call", json!({ "name": "a.pid", "arguments": {} })).await;
    assert_eq!(
        response["error"]["message"],
        "server `a` was stopped during the call: the server processes exceeded \
         `serve.limits.memory`"
    );
    assert_eq!(response["error"]["data"]["mayHaveRun"], true);
    test_env.wait_for_processes(0).await;
}

#[tokio::test]
async fn a_host_over_the_maximum_of_processes_leaves_none_for_private_servers() {
    let test_env = TestEnv::new();
    let shared = ["a", "b"].map(|name| test_env.fixture(name));
    let private = test_env.fixture("n").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 1;
    let servers = shared.into_iter().chain([private]);
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), servers).await;
    let mut client = gateway.modern("ada", json!({}));
    let call = json!({ "name": "n.pid", "arguments": {} });
    let refused = client.respond("tools/call", call).await;
    let message = refused["error"]["message"].as_str().unwrap_or_default();
    assert!(message.contains("`serve.limits.processes`"), "{refused}");
    client.call("a.pid", json!({})).await;
    let listed = client.request("tools/list", json!({})).await["tools"].to_string();
    assert!(listed.contains("b.pid") && !listed.contains("n.pid"), "{listed}");
    assert_eq!(test_env.process_count(), 2);
}
