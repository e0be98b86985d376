//! Attacks on the sharing of servers: dropped connections, cancelled requests, other principals.

use std::time::Duration;

use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::{Binding, Bindings, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::ToolFilter;
use innkeeper_testkit::read_call_log;
use serde_json::{Value, json};
use tokio::time::timeout;
use tower::ServiceExt;

use crate::setup::{TEST_TIMEOUT, TestClient, TestEnv, text};

/// Attack: remote | a client closes its session while its first call starts the server | the session and
/// its server end, and the next session has the process | No orphan
#[tokio::test]
async fn the_server_of_a_session_ends_if_the_client_leaves_during_its_start() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").with("--init-delay", 300).config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 1;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    for _ in 0..2 {
        let mut ada = gateway.initialized("ada", json!({})).await;
        ada.start("tools/call", json!({ "name": "n.pid", "arguments": {} })).await;
        test_env.wait_for_processes(1).await;
        drop(ada);
        test_env.wait_for_processes(0).await;
    }
    let mut bob = gateway.initialized("bob", json!({})).await;
    bob.call("n.pid", json!({})).await;
}

/// Attack: remote | a client leaves while its first request starts the servers of its principal |
/// the process ends when another principal needs it | No unbounded memory
#[tokio::test]
async fn servers_whose_client_left_during_their_start_make_room() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").with("--init-delay", 300).config_key("share", "principal");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 1;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut ada = gateway.modern("ada", json!({}));
    let call = ada.start("tools/list", json!({})).await;
    test_env.wait_for_processes(1).await;
    ada.notify("notifications/cancelled", json!({ "requestId": call })).await;
    ada.close().await.unwrap();
    let mut bob = gateway.modern("bob", json!({}));
    // Until ada's server has started, there is no process for bob.
    let served = timeout(TEST_TIMEOUT, async {
        while bob.request("tools/list", json!({})).await["tools"].as_array().unwrap().is_empty() {}
    });
    assert!(served.await.is_ok(), "ada's server keeps its process");
}

#[tokio::test]
async fn a_private_server_starts_after_its_idle_dependency() {
    let test_env = TestEnv::new();
    let dependency = test_env.fixture("a").config_key("idleTimeout", 0.05);
    let dependent = test_env
        .fixture("b")
        .config_key("share", "session")
        .config_key("dependencies", json!(["a"]));
    let gateway = test_env.gateway([dependency, dependent]).await;
    test_env.wait_for_processes(0).await;
    let mut client = gateway.initialized("ada", json!({})).await;
    client.call("b.pid", json!({})).await;
    assert_eq!(test_env.process_count(), 2, "the dependency runs while the dependent runs");
    client.close().await.unwrap();
    test_env.wait_for_processes(0).await;
}

/// Attack: remote | a client cancels a subscription before the server has it, and leaves | the
/// subscription of another client remains | Isolation
#[tokio::test]
async fn the_end_of_a_cancelled_subscription_takes_none_from_another_client() {
    let test_env = TestEnv::new();
    let server = test_env
        .fixture("a")
        .switch("--touch")
        .with("--init-delay", 300)
        .config_key("idleTimeout", 0.05);
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    test_env.wait_for_processes(0).await;
    let uri = json!({ "uri": "fx://a/static" });
    let subscribing = ada.start("resources/subscribe", uri.clone()).await;
    test_env.wait_for_processes(1).await;
    ada.notify("notifications/cancelled", json!({ "requestId": subscribing })).await;
    ada.request("ping", json!({})).await;
    bob.request("resources/subscribe", uri.clone()).await;
    ada.request("resources/unsubscribe", uri).await;
    ada.close().await.unwrap();
    bob.call("a.touch", json!({ "uri": "fx://a/static" })).await;
    let received =
        timeout(Duration::from_secs(3), bob.received("notifications/resources/updated")).await;
    assert!(received.is_ok(), "bob's subscription has ended");
}

/// Attack: remote | a log message of calls of one principal belongs to no call, while only a client
/// of another principal listens | nobody gets the message | Isolation
#[tokio::test]
async fn a_log_message_without_a_call_does_not_reach_a_principal_that_did_not_call() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--log-flood", 1).with("--slow", 50);
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut bob = gateway.modern("bob", json!({}));
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(bob.start("tools/call", json!({ "name": "a.pid", "arguments": {} })).await);
    }
    for call in calls {
        bob.response(&call).await;
    }
    ada.request("ping", json!({})).await;
    assert!(ada.waiting.is_empty(), "{:?}", ada.waiting);
}

#[tokio::test]
async fn log_messages_without_a_call_reach_the_only_principal() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--log-flood", 1).with("--slow", 50);
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let mut calls = Vec::new();
    for _ in 0..4 {
        calls.push(ada.start("tools/call", json!({ "name": "a.pid", "arguments": {} })).await);
    }
    for call in calls {
        ada.response(&call).await;
    }
    ada.request("ping", json!({})).await;
    let is_log = |message: &&Value| message["method"] == "notifications/message";
    assert_eq!(ada.waiting.iter().filter(is_log).count(), 4, "{:?}", ada.waiting);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_around_idle_stops_run_exactly_once() {
    let test_env = TestEnv::new();
    let directory = tempfile::tempdir().unwrap();
    let servers = ["a", "b"].map(|name| {
        let tally = directory.path().join(name);
        let server = test_env.fixture(name).with("--tally", tally.display());
        let server = server.config_key("idleTimeout", 0.01);
        if name == "b" { server.config_key("dependencies", json!(["a"])) } else { server }
    });
    let gateway = test_env.gateway(servers).await;
    let mut clients = tokio::task::JoinSet::new();
    for number in 0..8_u64 {
        let mut client = gateway.initialized(&format!("p{}", number % 3), json!({})).await;
        clients.spawn(async move {
            let mut expected = Vec::new();
            for round in 0..40_u64 {
                let key = number * 1000 + round;
                let name = if (number + round) % 2 == 0 { "a.tally" } else { "b.tally" };
                let params = json!({ "name": name, "arguments": { "id": key } });
                let id = client.start("tools/call", params).await;
                if (number + round) % 5 == 0 {
                    client.notify("notifications/cancelled", json!({ "requestId": id })).await;
                } else {
                    let response = client.response(&id).await;
                    assert!(response["result"].is_object(), "{response}");
                    expected.push(key);
                }
                tokio::time::sleep(Duration::from_millis((number * 7 + round * 13) % 60)).await;
            }
            expected
        });
    }
    let mut expected = Vec::new();
    while let Some(done) = clients.join_next().await {
        expected.extend(done.unwrap());
    }
    test_env.wait_for_processes(0).await;
    let logs = ["a", "b"].map(|name| read_call_log(&directory.path().join(name))).concat();
    for key in expected {
        let count = logs.iter().filter(|id| **id == key).count();
        assert_eq!(count, 1, "{key}");
    }
}

#[tokio::test]
async fn a_client_that_dies_with_a_subscription_does_not_keep_the_server() {
    let test_env = TestEnv::new();
    let server = test_env
        .fixture("a")
        .with("--progress", 50)
        .with("--progress-delay", 20)
        .config_key("idleTimeout", 0.05);
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    ada.request("resources/subscribe", json!({ "uri": "fx://a/static" })).await;
    let params = json!({ "name": "a.pid", "arguments": {}, "_meta": { "progressToken": "t" } });
    ada.start("tools/call", params).await;
    ada.received("notifications/progress").await;
    drop(ada);
    test_env.wait_for_processes(0).await;
}

#[tokio::test]
async fn a_subscription_outlives_a_crash_of_its_server() {
    let test_env = TestEnv::new();
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let server = test_env
        .fixture("a")
        .switch("--touch")
        .journal(&journal)
        .with("--crash-after", 2)
        .config_key("restart", json!({ "onFailure": { "max": 5 } }));
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    ada.request("resources/subscribe", json!({ "uri": "fx://a/static" })).await;
    let touch = json!({ "name": "a.touch", "arguments": { "uri": "fx://a/static" } });
    ada.request("tools/call", touch.clone()).await;
    ada.received("notifications/resources/updated").await;
    let crashed = ada.respond("tools/call", touch.clone()).await;
    assert_eq!(crashed["error"]["data"]["mayHaveRun"], true, "{crashed}");
    let subscriptions = || {
        let received = std::fs::read_to_string(&journal).unwrap_or_default();
        received.matches("resources/subscribe").count()
    };
    let renewed = timeout(TEST_TIMEOUT, async {
        while subscriptions() < 2 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    assert!(renewed.await.is_ok(), "the new process does not know the subscriber");
    ada.request("tools/call", touch).await;
    ada.received("notifications/resources/updated").await;
}

#[tokio::test]
async fn a_call_that_waits_for_its_client_keeps_the_process_of_an_idle_server() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--ask-elicit").config_key("idleTimeout", 0.02);
    let other = test_env.fixture("b").switch("--notes").config_key("idleTimeout", 0.02);
    let gateway = test_env.gateway([server, other]).await;
    test_env.wait_for_processes(0).await;
    let mut ada = gateway.modern("ada", json!({ "elicitation": {} }));
    let mut call = json!({ "name": "a.pid", "arguments": {} });
    let asked = ada.request("tools/call", call.clone()).await;
    // Several stops of another server.
    for _ in 0..5 {
        ada.call("b.note", json!({ "text": "x" })).await;
        test_env.wait_for_processes(1).await;
    }
    call["requestState"] = asked["requestState"].clone();
    let keys = asked["inputRequests"].as_object().unwrap().keys();
    let accepted = json!({ "action": "accept", "content": { "name": "ada" } });
    call["inputResponses"] = keys.map(|key| (key.clone(), accepted.clone())).collect();
    let answered = ada.request("tools/call", call).await;
    assert!(answered["content"].to_string().contains("accept"), "{answered}");
    test_env.wait_for_processes(0).await;
}

#[tokio::test]
async fn a_server_that_crashed_leaves_its_place_to_others() {
    let test_env = TestEnv::new();
    let crashing = test_env.fixture("c").with("--crash-after", 1);
    let private = test_env.fixture("n").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 2;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [crashing, private]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    ada.call("n.pid", json!({})).await;
    let params = json!({ "name": "c.pid", "arguments": {} });
    let crashed = ada.respond("tools/call", params).await;
    assert!(crashed.get("error").is_some(), "{crashed}");
    test_env.wait_for_processes(1).await;
    let mut bob = gateway.initialized("bob", json!({})).await;
    assert_ne!(bob.call("n.pid", json!({})).await, ada.call("n.pid", json!({})).await);
}

#[tokio::test]
async fn a_session_right_after_the_end_of_another_waits_for_its_place() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 1;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    for _ in 0..5 {
        let mut client = gateway.initialized("ada", json!({})).await;
        client.call("n.pid", json!({})).await;
        client.close().await.unwrap();
    }
}

/// Calls the server `c`, which crashes.
async fn crash(client: &mut TestClient) {
    let params = json!({ "name": "c.pid", "arguments": {} });
    let crashed = client.respond("tools/call", params).await;
    assert_eq!(crashed["error"]["data"]["kind"], "unavailable", "{crashed}");
}

/// Returns the process id of the server `c` when it runs again for the client.
async fn pid_after_crash(client: &mut TestClient) -> String {
    let params = json!({ "name": "c.pid", "arguments": {} });
    let restarted = timeout(TEST_TIMEOUT, async {
        loop {
            let response = client.respond("tools/call", params.clone()).await;
            if response.get("error").is_none() {
                return text(&response["result"]);
            }
        }
    });
    restarted.await.unwrap()
}

#[tokio::test]
async fn a_session_goes_on_when_its_own_server_crashes_and_gets_another_process() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("c").with("--crash-after", 2).config_key("share", "session");
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let first = ada.call("c.pid", json!({})).await;
    crash(&mut ada).await;
    assert_ne!(pid_after_crash(&mut ada).await, first);
}

#[tokio::test]
async fn an_idle_server_that_crashed_starts_at_its_next_call() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("c").with("--crash-after", 2).config_key("idleTimeout", 60);
    let gateway = test_env.gateway([server]).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    let listed = ada.request("tools/list", json!({})).await;
    let first = ada.call("c.pid", json!({})).await;
    crash(&mut ada).await;
    test_env.wait_for_processes(0).await;
    assert_ne!(pid_after_crash(&mut ada).await, first);
    assert_eq!(ada.request("tools/list", json!({})).await, listed);
}

/// Attack: remote | a client opens sessions and uses the server of each | half of the processes remain for
/// other clients, and the error names the server, the key and whose limit it is | Isolation
#[tokio::test]
async fn the_sessions_of_one_client_have_half_of_the_processes() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").switch("--notes").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 5;
    let servers = [test_env.fixture("a"), server];
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), servers).await;
    let mut sessions = Vec::new();
    for _ in 0..4 {
        sessions.push(gateway.initialized("ada", json!({})).await);
    }
    let call = json!({ "name": "n.notes", "arguments": {} });
    let mut responses = Vec::new();
    for session in &mut sessions {
        responses.push(session.respond("tools/call", call.clone()).await);
    }
    let errors: Vec<_> =
        responses.iter().filter(|response| response.get("error").is_some()).collect();
    assert_eq!(errors.len(), 2, "{responses:?}");
    let error = &errors[0]["error"];
    assert_eq!(error["code"], -32_000);
    let data = json!({
        "kind": "limit", "server": "n", "limit": "serve.limits.processes", "scope": "client",
        "mayHaveRun": false,
    });
    assert_eq!(error["data"], data);
    let message = error["message"].as_str().unwrap();
    assert!(message.contains("server `n`") && message.contains("half of"), "{message}");
    let last = sessions.last_mut().unwrap();
    last.call("a.pid", json!({})).await;
    let listed = last.request("tools/list", json!({})).await["tools"].to_string();
    assert!(listed.contains("a.pid") && !listed.contains("n.notes"), "{listed}");
    let mut others = Vec::new();
    for _ in 0..2 {
        let mut bob = gateway.initialized("bob", json!({})).await;
        bob.call("n.notes", json!({})).await;
        others.push(bob);
    }
    assert_eq!(test_env.process_count(), 5);
    // A session that ends gives its process to another one of the same client.
    sessions.remove(0).close().await.unwrap();
    sessions.last_mut().unwrap().call("n.notes", json!({})).await;
}

/// Attack: remote | a client over its share asks again and again | what other clients do not use now keeps
/// running | Isolation
#[tokio::test]
async fn a_client_over_its_share_ends_nothing_of_others() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").switch("--notes").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 2;
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let mut bob = gateway.modern("bob", json!({}));
    bob.call("n.note", json!({ "text": "kept" })).await;
    let mut first = gateway.initialized("ada", json!({})).await;
    first.call("n.notes", json!({})).await;
    let mut second = gateway.initialized("ada", json!({})).await;
    for _ in 0..3 {
        let call = json!({ "name": "n.notes", "arguments": {} });
        let refused = second.respond("tools/call", call).await;
        assert_eq!(refused["error"]["data"]["scope"], "client", "{refused}");
    }
    assert_eq!(bob.call("n.notes", json!({})).await, r#"["kept"]"#);
}

/// Attack: remote | the processes are used up | plain HTTP has status 503, and that of other servers and the
/// description of the tools go on | Isolation
#[tokio::test]
async fn plain_http_over_the_limit_has_status_503() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").config_key("share", "session");
    let mut options = GatewayOptions::default();
    options.server_limits.max_processes = 1;
    let servers = [test_env.fixture("a"), server];
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), servers).await;
    let router = gateway.router();
    let send = async |method: &str, path: &str| {
        let request = Request::builder()
            .method(method)
            .uri(format!("http://127.0.0.1{path}"))
            .header("host", "127.0.0.1")
            .header("content-type", "application/json")
            .body(Body::from(if method == "POST" { "{}" } else { "" }))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.unwrap().to_bytes();
        (status, serde_json::from_slice::<Value>(&body).unwrap())
    };
    let (status, problem) = send("POST", "/tools/n.pid").await;
    assert_eq!(status, 503, "{problem}");
    assert_eq!(problem["data"]["limit"], "serve.limits.processes");
    assert_eq!(problem["data"]["server"], "n");
    assert_eq!(send("POST", "/tools/a.pid").await.0, 200);
    assert_eq!(send("POST", "/tools/n").await.0, 404);
    let (status, description) = send("GET", "/openapi.json").await;
    assert_eq!(status, 200);
    let paths = description["paths"].to_string();
    assert!(paths.contains("a.pid") && !paths.contains("n.pid"), "{paths}");
}

/// Attack: remote | a client calls a tool of a private server that it may not see | no process starts |
/// Isolation
#[tokio::test]
async fn a_private_server_starts_for_no_client_that_may_not_see_it() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").config_key("share", "principal");
    let rules = ToolFilter { deny: vec!["n.*".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("eve"), rules)], ToolFilter::default());
    let bound = Binding { servers: Some(vec!["a".to_owned()]), endpoints: None };
    let bindings = Bindings::new([(Principal::new("ada"), bound)], Binding::default());
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(policy).bindings(bindings);
    let servers = [test_env.fixture("a"), server];
    let gateway = test_env.gateway_with(builder, servers).await;
    for principal in ["ada", "eve"] {
        let mut client = gateway.initialized(principal, json!({})).await;
        let call = json!({ "name": "n.pid", "arguments": {} });
        let refused = client.respond("tools/call", call).await;
        assert_eq!(refused["error"]["message"], "unknown tool `n.pid`");
        client.respond("prompts/get", json!({ "name": "x.pid" })).await;
        client.respond("resources/read", json!({ "uri": "fx://a/static" })).await;
    }
    assert_eq!(test_env.process_count(), 1);
    let mut ada = gateway.initialized("ada", json!({})).await;
    ada.request("tools/list", json!({})).await;
    assert_eq!(test_env.process_count(), 1);
}

#[tokio::test]
async fn a_use_starts_the_server_that_it_needs_and_no_other() {
    let test_env = TestEnv::new();
    let private = ["n", "m"].map(|name| test_env.fixture(name).config_key("share", "session"));
    let servers = [test_env.fixture("a")].into_iter().chain(private);
    let gateway = test_env.gateway(servers).await;
    let mut ada = gateway.initialized("ada", json!({})).await;
    ada.call("a.pid", json!({})).await;
    ada.request("resources/read", json!({ "uri": "fx://a/static" })).await;
    assert_eq!(test_env.process_count(), 1);
    ada.call("n.pid", json!({})).await;
    assert_eq!(test_env.process_count(), 2);
    let listed = ada.request("tools/list", json!({})).await["tools"].to_string();
    assert!(["a.pid", "n.pid", "m.pid"].iter().all(|name| listed.contains(name)), "{listed}");
    assert_eq!(test_env.process_count(), 3);
    ada.request("resources/read", json!({ "uri": "fx://m/static" })).await;
    ada.request("ping", json!({})).await;
    assert!(ada.waiting.is_empty(), "the list had everything: {:?}", ada.waiting);
}

#[tokio::test]
async fn initialize_declares_what_servers_that_never_started_may_have() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("n").config_key("share", "principal");
    let gateway = test_env.gateway([server]).await;
    let initialize = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let before = gateway.connect_as("ada").request("initialize", initialize.clone()).await;
    assert_eq!(test_env.process_count(), 0);
    for capability in ["tools", "prompts", "resources", "logging", "completions"] {
        assert!(before["capabilities"][capability].is_object(), "{before}");
    }
    gateway.modern("ada", json!({})).call("n.pid", json!({})).await;
    let after = gateway.connect_as("ada").request("initialize", initialize).await;
    let keys = |response: &Value| {
        response["capabilities"].as_object().unwrap().keys().cloned().collect::<Vec<_>>()
    };
    assert!(keys(&after).len() <= keys(&before).len(), "{after}");
    assert!(after["capabilities"]["tools"].is_object(), "{after}");
}
