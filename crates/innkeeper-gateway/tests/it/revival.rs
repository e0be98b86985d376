//! Servers that end, stay away or come back under a running gateway.

use std::time::Duration;

use axum::body::Body;
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::ToolFilter;
use innkeeper_host::{Host, HostEvent, ServerState};
use innkeeper_testkit::Journal;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::time::{sleep, timeout};
use tower::ServiceExt;

use crate::http::json as json_body;
use crate::rest::request;
use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, TestGateway};

/// Kills the process of a server and waits until the host knows.
async fn kill_server(host: &Host, server: &str) {
    let mut events = host.events();
    let pid = host.status()[server].pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    let ended =
        async { while !matches!(events.recv().await.unwrap(), HostEvent::Unavailable { .. }) {} };
    timeout(TEST_TIMEOUT, ended).await.expect("the host knows");
}

async fn wait_ready(host: &Host, server: &str) {
    let ready = async {
        while host.status()[server].state != ServerState::Ready {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(TEST_TIMEOUT, ready).await.expect("the server is ready");
}

/// Asserts that a response is the error of the unavailable server `a`.
fn assert_unavailable(response: &Value) {
    let error = &response["error"];
    assert_eq!(error["code"], -32_603, "{response}");
    let message = error["message"].as_str().unwrap();
    assert!(message.starts_with("server `a` is unavailable: process ended"), "{message}");
    let data = json!({"kind": "unavailable", "server": "a", "mayHaveRun": false});
    assert_eq!(error["data"], data, "{response}");
}

/// Starts a gateway whose server `a` stays down after its end.
async fn gateway_with_ended_server(test_env: &TestEnv, builder: GatewayBuilder) -> TestGateway {
    let fixture = test_env.fixture("a").config_key("restart", "never");
    let gateway = test_env.gateway_with(builder, [fixture, test_env.fixture("b")]).await;
    kill_server(&gateway.host, "a").await;
    gateway
}

#[tokio::test]
async fn an_item_of_an_ended_server_is_unavailable_and_not_unknown() {
    let test_env = TestEnv::new();
    let options =
        GatewayOptions { connection_servers: vec!["a".to_owned()], ..GatewayOptions::default() };
    let gateway = gateway_with_ended_server(&test_env, GatewayBuilder::new(options)).await;
    let mut client = gateway.initialized("local", json!({})).await;
    for (method, params) in [
        ("tools/call", json!({"name": "a.echo", "arguments": {}})),
        ("prompts/get", json!({"name": "a.greet"})),
        (
            "completion/complete",
            json!({
                "ref": {"type": "ref/prompt", "name": "a.greet"},
                "argument": {"name": "city", "value": ""},
            }),
        ),
    ] {
        assert_unavailable(&client.respond(method, params).await);
    }
    let unknown = client.respond("tools/call", json!({"name": "c.echo", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32_602, "{unknown}");
    let unknown = client.respond("tools/call", json!({"name": "b.none", "arguments": {}})).await;
    assert_eq!(unknown["error"]["code"], -32_602, "{unknown}");

    let own_names = &mut gateway.connect_to_server("local", "a");
    initialize(own_names).await;
    let call = json!({"name": "echo", "arguments": {}});
    assert_unavailable(&own_names.respond("tools/call", call).await);

    let call = request("POST", "/tools/a.echo").body(Body::from("{}")).unwrap();
    let response = gateway.router().oneshot(call).await.unwrap();
    assert_eq!(response.status(), 502);
    let problem = json_body(response).await;
    assert!(problem.to_string().contains("server `a` is unavailable"), "{problem}");
}

#[tokio::test]
async fn what_a_server_may_offer_later_is_declared_while_it_is_not_ready() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("a").config_key("restart", "never");
    let builder = GatewayBuilder::new(GatewayOptions::default());
    let gateway = test_env.gateway_with(builder, [fixture]).await;
    kill_server(&gateway.host, "a").await;
    let initialized = initialize(&mut gateway.connect_as("local")).await;
    let discovered = gateway.modern("local", json!({})).request("server/discover", json!({})).await;
    for result in [initialized, discovered] {
        for list in ["tools", "prompts", "resources"] {
            assert_eq!(result["capabilities"][list]["listChanged"], true, "{result}");
        }
    }
}

#[tokio::test]
async fn a_resource_of_an_ended_server_is_unavailable_and_not_unknown() {
    let test_env = TestEnv::new();
    let builder = GatewayBuilder::new(GatewayOptions::default());
    let fixture = test_env.fixture("a").config_key("restart", "never");
    let gateway = test_env.gateway_with(builder, [fixture]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    let listed = client.request("resources/list", json!({})).await;
    let uri = listed["resources"][0]["uri"].clone();
    kill_server(&gateway.host, "a").await;
    assert_unavailable(&client.respond("resources/read", json!({ "uri": uri })).await);
    let unknown = client.respond("resources/read", json!({"uri": "no:such"})).await;
    assert_ne!(unknown["error"]["code"], -32_603, "{unknown}");
}

/// Attack: remote | a client asks for a denied tool of an ended server | the response is that of an
/// unknown tool | Isolation
#[tokio::test]
async fn a_denied_tool_of_an_ended_server_is_unknown() {
    let test_env = TestEnv::new();
    let rules = ToolFilter { deny: vec!["a.echo".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("ann"), rules)], ToolFilter::default());
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(policy);
    let gateway = gateway_with_ended_server(&test_env, builder).await;
    let call = json!({"name": "a.echo", "arguments": {}});
    let mut ann = gateway.initialized("ann", json!({})).await;
    assert_eq!(ann.respond("tools/call", call.clone()).await["error"]["code"], -32_602);
    let mut ben = gateway.initialized("ben", json!({})).await;
    assert_unavailable(&ben.respond("tools/call", call).await);
}

#[tokio::test]
async fn clients_go_on_after_a_server_was_restarted_and_no_call_is_repeated() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").journal(&test_env.journal());
    let gateway = test_env.gateway([server]).await;
    let mut client = gateway.initialized("local", json!({})).await;
    for round in 0..3 {
        let message = format!("before {round}");
        assert_eq!(client.call("a.echo", json!({ "message": message })).await, message);
        let cut =
            client.start("tools/call", json!({"name": "a.sleep", "arguments": {"ms": 60_000}}));
        let cut = cut.await;
        wait_for_calls(&test_env, "sleep", round + 1).await;
        kill_server(&gateway.host, "a").await;
        let error = client.response(&cut).await;
        assert_eq!(error["error"]["data"]["mayHaveRun"], true, "{error}");
        client.received("notifications/tools/list_changed").await;
        wait_ready(&gateway.host, "a").await;
        client.received("notifications/tools/list_changed").await;
    }
    assert_eq!(client.call("a.echo", json!({"message": "after"})).await, "after");
    assert_eq!(calls(&test_env, "sleep"), 3, "a call was repeated");
    assert_eq!(calls(&test_env, "echo"), 4);
    test_env.wait_for_processes(1).await;
}

#[tokio::test]
async fn a_server_that_is_not_there_at_the_start_appears_in_open_sessions() {
    let test_env = TestEnv::new();
    let fixture = test_env.fixture("a");
    let flag = test_env.path().join("there");
    let entry = fixture.config_entry();
    let words = entry["args"].as_array().unwrap().iter().map(|word| word.as_str().unwrap());
    let script = r#"test -e "$0" || { echo "no database" >&2; exit 1; }; exec "$@""#;
    let args: Vec<&str> =
        ["-c", script, flag.to_str().unwrap(), entry["command"].as_str().unwrap()]
            .into_iter()
            .chain(words)
            .collect();
    let late = fixture.config_key("command", "sh").config_key("args", json!(args));
    let late = late.config_key("required", false).config_key("initTimeout", 0.5);
    let gateway = test_env.gateway([late]).await;
    let status = &gateway.host.status()["a"];
    assert_eq!(status.state, ServerState::Unavailable);
    assert_eq!(status.stderr.trim(), "no database");
    let mut client = gateway.initialized("local", json!({})).await;
    let error = client.respond("tools/call", json!({"name": "a.echo", "arguments": {}})).await;
    let message = error["error"]["message"].as_str().unwrap();
    assert!(message.contains("server `a` is unavailable"), "{message}");
    std::fs::write(&flag, "").unwrap();
    client.received("notifications/tools/list_changed").await;
    assert_eq!(client.call("a.echo", json!({"message": "hi"})).await, "hi");
}

async fn initialize(client: &mut TestClient) -> Value {
    let info = json!({"name": "test", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    client.request("initialize", params).await
}

/// Returns the number of calls of a tool that reached the server.
fn calls(test_env: &TestEnv, tool: &str) -> usize {
    let journal = Journal::read_unchecked(&test_env.journal());
    journal.params("tools/call").iter().filter(|call| call["name"] == tool).count()
}

async fn wait_for_calls(test_env: &TestEnv, tool: &str, count: usize) {
    let reached = async {
        while calls(test_env, tool) < count {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(TEST_TIMEOUT, reached).await.expect("the call reaches the server");
}
