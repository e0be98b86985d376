//! Tasks of clients through the gateway.

use std::time::Duration;

use innkeeper_gateway::policy::ToolPolicy;
use innkeeper_gateway::{EndpointOptions, GatewayBuilder, GatewayOptions, Principal};
use innkeeper_host::config::{LargeResults, ToolFilter};
use innkeeper_testkit::{Fixture, Journal};
use serde_json::{Value, json};

use crate::setup::{TestClient, TestEnv, TestGateway};

const RELATED_TASK: &str = "io.modelcontextprotocol/related-task";
const EXTENSION: &str = "io.modelcontextprotocol/tasks";
const STATUS: &str = "notifications/tasks/status";

/// A server that creates a task for each call, which completes after one poll.
fn task_server(test_env: &TestEnv, era: &str) -> Fixture {
    let server = test_env.fixture("a").with("--era", era).with("--task", "works");
    server.with("--task-polls", 1).switch("--task-notify").journal(&test_env.journal())
}

fn modern_capabilities() -> Value {
    json!({ "extensions": { EXTENSION: {} } })
}

async fn client(gateway: &TestGateway, era: &str, principal: &str) -> TestClient {
    match era {
        "legacy" => gateway.initialized(principal, json!({ "elicitation": {} })).await,
        _ => gateway.modern(principal, modern_capabilities()),
    }
}

fn call_params(message: &str) -> Value {
    json!({ "name": "a.echo", "arguments": { "message": message }, "task": { "ttl": 60_000 } })
}

/// Calls a tool as a task and returns the task.
async fn create(client: &mut TestClient, message: &str) -> Value {
    let result = client.request("tools/call", call_params(message)).await;
    let task = if result["task"].is_object() { &result["task"] } else { &result };
    assert!(task["taskId"].is_string(), "{result}");
    task.clone()
}

async fn request(client: &mut TestClient, method: &str, task: &Value) -> Value {
    client.request(method, json!({ "taskId": task["taskId"] })).await
}

/// Sends a request about a task that must fail; returns the error.
async fn refused(client: &mut TestClient, method: &str, id: &Value) -> Value {
    let response = client.respond(method, json!({ "taskId": id })).await;
    assert!(response["error"].is_object(), "{response}");
    response["error"].clone()
}

fn journal_count(test_env: &TestEnv, method: &str) -> usize {
    Journal::read(&test_env.journal()).count(method)
}

#[tokio::test]
async fn a_client_creates_polls_reads_and_cancels_a_task_in_both_eras_at_shared_and_private_servers()
 {
    for (era, share) in [
        ("legacy", "process"),
        ("legacy", "principal"),
        ("legacy", "session"),
        ("modern", "process"),
        ("modern", "principal"),
        ("modern", "session"),
    ] {
        let test_env = TestEnv::new();
        let server = task_server(&test_env, era).config_key("share", share);
        let gateway = test_env.gateway([server]).await;
        let mut ada = client(&gateway, era, "ada").await;
        let task = create(&mut ada, "hi").await;
        assert_eq!(task["status"], "working", "{era} {share}");
        assert!(!task["taskId"].to_string().contains("fx-task"), "{task}");
        let polled = request(&mut ada, "tasks/get", &task).await;
        assert_eq!(polled["taskId"], task["taskId"]);
        assert_eq!(polled["status"], "working", "{era} {share}");
        let polled = request(&mut ada, "tasks/get", &task).await;
        assert_eq!(polled["status"], "completed", "{era} {share}");
        let result = match era {
            "legacy" => {
                let result = request(&mut ada, "tasks/result", &task).await;
                assert_eq!(result["_meta"][RELATED_TASK]["taskId"], task["taskId"]);
                result
            }
            _ => {
                assert_eq!(polled["resultType"], "complete");
                polled["result"].clone()
            }
        };
        assert_eq!(result["content"][0]["text"], "hi", "{era} {share}");
        let other = create(&mut ada, "other").await;
        assert_ne!(other["taskId"], task["taskId"]);
        let cancelled = request(&mut ada, "tasks/cancel", &other).await;
        if era == "legacy" {
            assert_eq!(cancelled["taskId"], other["taskId"]);
            assert_eq!(cancelled["status"], "cancelled");
        }
        assert_eq!(request(&mut ada, "tasks/get", &other).await["status"], "cancelled");
        let journal = Journal::read(&test_env.journal());
        assert_eq!(journal.params("tasks/cancel")[0]["taskId"], "fx-task-2");
        if era == "modern" {
            let input = json!({ "taskId": task["taskId"], "inputResponses": { "k": { "n": 1 } } });
            ada.request("tasks/update", input).await;
            let journal = Journal::read(&test_env.journal());
            let sent = journal.params("tasks/update")[0];
            assert_eq!(sent["taskId"], "fx-task-1");
            assert_eq!(sent["inputResponses"], json!({ "k": { "n": 1 } }));
        }
    }
}

/// Attack: remote | two clients create tasks at one server with equal request ids, or get equal task
/// ids from processes of their own | each gets the status of its own task, and no other | Isolation
#[tokio::test]
async fn the_status_of_a_task_reaches_the_client_that_created_the_task_and_no_other() {
    for share in ["process", "principal", "session"] {
        let test_env = TestEnv::new();
        let server = task_server(&test_env, "legacy").config_key("share", share);
        let gateway = test_env.gateway([server]).await;
        let mut ada = client(&gateway, "legacy", "ada").await;
        let mut ada_again = client(&gateway, "legacy", "ada").await;
        let mut bob = client(&gateway, "legacy", "bob").await;
        let (of_ada, of_bob) = (create(&mut ada, "ada").await, create(&mut bob, "bob").await);
        request(&mut bob, "tasks/get", &of_bob).await;
        request(&mut ada, "tasks/get", &of_ada).await;
        for (client, task) in [(&mut ada, &of_ada), (&mut bob, &of_bob)] {
            let status = client.received(STATUS).await;
            assert_eq!(status["params"]["taskId"], task["taskId"], "{share}");
            assert_eq!(status["params"]["status"], "working");
        }
        for client in [&mut ada, &mut ada_again, &mut bob] {
            client.request("ping", json!({})).await;
            let mut waiting = client.waiting.iter();
            assert!(!waiting.any(|message| message["method"] == STATUS), "{share}");
        }
    }
}

/// Attack: remote | a client uses the task id of another principal, the id of the server, an id with
/// one changed character, one from before a restart of the server, and one of the other era | every
/// error is the same, and the server gets no request | Isolation
#[tokio::test]
async fn foreign_forged_and_lost_tasks_have_one_and_the_same_error() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([task_server(&test_env, "legacy")]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let mut bob = client(&gateway, "legacy", "bob").await;
    let task = create(&mut ada, "secret").await;
    let id = &task["taskId"];
    let mut forged = id.as_str().unwrap().to_owned();
    let last = if forged.pop() == Some('A') { 'B' } else { 'A' };
    forged.push(last);
    let mut errors = Vec::new();
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        errors.push(refused(&mut bob, method, id).await);
        errors.push(refused(&mut ada, method, &json!("fx-task-1")).await);
        errors.push(refused(&mut ada, method, &json!(forged)).await);
        errors.push(refused(&mut ada, method, &json!("")).await);
    }
    let mut modern = gateway.modern("ada", modern_capabilities());
    errors.push(refused(&mut modern, "tasks/get", id).await);
    gateway.host.restart_server("a").await.unwrap();
    // The new process gives the id of ada's task to bob's.
    let of_bob = create(&mut bob, "of bob").await;
    for method in ["tasks/get", "tasks/result", "tasks/cancel"] {
        errors.push(refused(&mut ada, method, id).await);
        assert_eq!(journal_count(&test_env, method), 0, "{method}");
    }
    assert_eq!(errors[0]["code"], -32602);
    assert!(errors.iter().all(|error| *error == errors[0]), "{errors:?}");
    assert_eq!(request(&mut bob, "tasks/get", &of_bob).await["status"], "working");
}

/// Attack: remote | a client whose rules deny a tool calls the tool as a task, and uses the id of a task
/// of another principal | the tool and the task are unknown | Isolation
#[tokio::test]
async fn a_client_creates_no_task_of_a_tool_that_it_may_not_use() {
    let test_env = TestEnv::new();
    let deny = ToolFilter { deny: vec!["a.echo".to_owned()], ..ToolFilter::default() };
    let policy = ToolPolicy::new([(Principal::new("bob"), deny)], ToolFilter::default());
    let builder = GatewayBuilder::new(GatewayOptions::default()).policy(policy);
    let gateway = test_env.gateway_with(builder, [task_server(&test_env, "legacy")]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let task = create(&mut ada, "hi").await;
    let mut bob = client(&gateway, "legacy", "bob").await;
    assert_eq!(refused(&mut bob, "tasks/get", &task["taskId"]).await["code"], -32602);
    let denied = bob.respond("tools/call", call_params("hi")).await;
    assert_eq!(denied["error"]["code"], -32602, "{denied}");
    assert_eq!(journal_count(&test_env, "tools/call"), 1);
}

#[tokio::test]
async fn a_command_of_the_user_gets_the_result_of_the_call() {
    let test_env = TestEnv::new();
    let options =
        GatewayOptions { connection_servers: vec!["a".to_owned()], ..GatewayOptions::default() };
    let builder = GatewayBuilder::new(options);
    let gateway = test_env.gateway_with(builder, [task_server(&test_env, "legacy")]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let task = create(&mut ada, "hi").await;
    let mut command = gateway.connect_to_server("ada", "a");
    let params = json!({
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "test", "version": "1" },
    });
    let initialized = command.request("initialize", params).await;
    assert_eq!(initialized["capabilities"].get("tasks"), None);
    let params = json!({ "name": "echo", "arguments": { "message": "hi" }, "task": {} });
    let result = command.request("tools/call", params).await;
    assert_eq!(result["content"][0]["text"], "hi");
    assert_eq!(refused(&mut command, "tasks/get", &task["taskId"]).await["code"], -32601);
}

#[tokio::test]
async fn a_task_outlives_the_connection_and_keeps_its_server_from_an_idle_stop_until_its_result() {
    for (era, share) in [("legacy", "process"), ("modern", "process"), ("legacy", "principal")] {
        let test_env = TestEnv::new();
        let servers = [task_server(&test_env, era), test_env.fixture("b")];
        let idle =
            |server: Fixture| server.config_key("idleTimeout", 0.05).config_key("share", share);
        let gateway = test_env.gateway(servers.map(idle)).await;
        let mut ada = client(&gateway, era, "ada").await;
        let task = create(&mut ada, "hi").await;
        // The other server, which is idle for a shorter time, stops.
        ada.call("b.pid", json!({})).await;
        ada.close().await.unwrap();
        test_env.wait_for_processes(1).await;
        let mut ada = client(&gateway, era, "ada").await;
        assert_eq!(
            request(&mut ada, "tasks/get", &task).await["status"],
            "working",
            "{era} {share}"
        );
        let polled = request(&mut ada, "tasks/get", &task).await;
        assert_eq!(polled["status"], "completed", "{era} {share}");
        if era == "legacy" {
            let result = request(&mut ada, "tasks/result", &task).await;
            assert_eq!(result["content"][0]["text"], "hi");
        }
        test_env.wait_for_processes(0).await;
        // The process of the task has ended, and the gateway does not start another one for it.
        let lost = refused(&mut ada, "tasks/get", &task["taskId"]).await;
        assert_eq!(lost["code"], -32602, "{lost}");
        assert_eq!(test_env.process_count(), 0);
    }
}

/// Attack: remote | the task of one client asks while another client calls and answers requests at
/// the same server over a pipe | the question reaches the client that waits for the result of the
/// task, with the id that it knows | Own response
#[tokio::test]
async fn a_question_of_a_task_reaches_the_client_that_waits_for_its_result() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").with("--task", "asks").journal(&test_env.journal());
    let gateway = test_env.gateway([server]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let mut bob = client(&gateway, "legacy", "bob").await;
    let (of_ada, of_bob) = (create(&mut ada, "ada").await, create(&mut bob, "bob").await);
    for (client, task) in [(&mut ada, &of_ada), (&mut bob, &of_bob)] {
        assert_eq!(request(client, "tasks/get", task).await["status"], "input_required");
    }
    let params = |task: &Value| json!({ "taskId": task["taskId"] });
    let for_ada = ada.start("tasks/result", params(&of_ada)).await;
    let question = ada.received("elicitation/create").await;
    let related = question["params"]["_meta"][RELATED_TASK].clone();
    assert_eq!(related["taskId"], of_ada["taskId"]);
    let for_bob = bob.start("tasks/result", params(&of_bob)).await;
    let question_of_bob = bob.received("elicitation/create").await;
    for (client, question, id, name) in
        [(&mut bob, &question_of_bob, &for_bob, "bob"), (&mut ada, &question, &for_ada, "ada")]
    {
        let content = json!({ "colour": name });
        let related = question["params"]["_meta"].clone();
        let answer = json!({ "action": "accept", "content": content, "_meta": related });
        client.answer(question, answer).await;
        let result = client.response(id).await["result"].take();
        let text = result["content"][0]["text"].as_str().unwrap().to_owned();
        assert!(text.contains(&format!(r#""colour":"{name}""#)), "{text}");
        assert!(text.contains(r#""taskId":"fx-task-"#), "the server knows its own id: {text}");
    }
}

#[tokio::test]
async fn clients_without_tasks_and_of_the_other_era_get_the_result_of_the_call() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let gateway = test_env.gateway([task_server(&test_env, era)]).await;
        let other_era = if era == "legacy" { "modern" } else { "legacy" };
        let mut other = client(&gateway, other_era, "ada").await;
        let result = other.request("tools/call", call_params("hi")).await;
        assert_eq!(result["content"][0]["text"], "hi", "{era}");
        let mut older = gateway.connect_as("ada");
        let info = json!({ "name": "test", "version": "1" });
        let params = json!({
            "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info,
        });
        let initialized = older.request("initialize", params).await;
        assert!(initialized["capabilities"].get("tasks").is_none(), "{initialized}");
        assert!(initialized["capabilities"].get("extensions").is_none(), "{initialized}");
        let result = older.request("tools/call", call_params("hi")).await;
        assert_eq!(result["content"][0]["text"], "hi", "{era}");
        let unknown = refused(&mut older, "tasks/get", &json!("x")).await;
        assert_eq!(unknown["code"], -32601, "{era}");
        let mut undeclared = gateway.modern("ada", json!({}));
        let result = undeclared.request("tools/call", call_params("hi")).await;
        assert_eq!(result["content"][0]["text"], "hi", "{era}");
        let missing = refused(&mut undeclared, "tasks/get", &json!("x")).await;
        let required = json!({ "requiredCapabilities": { "extensions": { EXTENSION: {} } } });
        assert_eq!((&missing["code"], &missing["data"]), (&json!(-32021), &required));
        let listen = json!({ "notifications": { "taskIds": ["x"] } });
        let response = undeclared.respond("subscriptions/listen", listen).await;
        assert_eq!(response["error"]["code"], -32021, "{response}");
        let plain = json!({ "name": "a.echo", "arguments": { "message": "hi" } });
        let mut legacy = client(&gateway, "legacy", "ada").await;
        let result = legacy.request("tools/call", plain).await;
        assert_eq!(result["content"][0]["text"], "hi", "a tool that requires tasks: {era}");
    }
}

#[tokio::test]
async fn the_capability_is_that_of_the_clients_revision_if_a_server_of_its_era_has_tasks() {
    let tasks = json!({ "cancel": {}, "requests": { "tools": { "call": {} } } });
    let extension = json!({ EXTENSION: {} });
    for (eras, core, extended) in [
        (&[][..], None, None),
        (&["legacy"], Some(&tasks), None),
        (&["modern"], None, Some(&extension)),
        (&["legacy", "modern"], Some(&tasks), Some(&extension)),
    ] {
        let test_env = TestEnv::new();
        let servers =
            eras.iter().map(|era| test_env.fixture(era).with("--era", era).with("--task", "works"));
        let gateway = test_env.gateway(servers.chain([test_env.fixture("plain")])).await;
        let mut legacy = gateway.connect_as("ada");
        let params = json!({
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        });
        let legacy = legacy.request("initialize", params).await["capabilities"].take();
        assert_eq!(legacy.get("tasks"), core, "{eras:?}");
        assert_eq!(legacy.get("extensions"), None, "{eras:?}");
        let mut modern = gateway.modern("ada", json!({}));
        let modern = modern.request("server/discover", json!({})).await["capabilities"].take();
        assert_eq!(modern.get("extensions"), extended, "{eras:?}");
        assert_eq!(modern.get("tasks"), None, "{eras:?}");
    }
}

#[tokio::test]
async fn no_method_of_tasks_reaches_a_server_past_the_gateway() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([task_server(&test_env, "legacy")]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let mut modern = gateway.modern("ada", modern_capabilities());
    create(&mut ada, "hi").await;
    for (client, methods) in [
        (&mut ada, ["tasks/list", "tasks/update", "tasks/unknown"]),
        (&mut modern, ["tasks/list", "tasks/result", "tasks/unknown"]),
    ] {
        for method in methods {
            let error = refused(client, method, &json!("fx-task-1")).await;
            assert_eq!(error["code"], -32601, "{method}");
            assert_eq!(journal_count(&test_env, method), 0, "{method}");
        }
    }
    let invalid = json!({ "name": "a.echo", "arguments": {}, "task": true });
    let response = ada.respond("tools/call", invalid).await;
    assert_eq!(response["error"]["code"], -32602, "{response}");
}

#[tokio::test]
async fn the_large_result_of_a_task_is_stored_like_that_of_a_call() {
    for era in ["legacy", "modern"] {
        let test_env = TestEnv::new();
        let ttl = Duration::from_mins(10);
        let large_results = Some(LargeResults { bytes: 4_096, ttl });
        let endpoint = EndpointOptions { large_results, ..EndpointOptions::default() };
        let options = GatewayOptions { endpoint, ..GatewayOptions::default() };
        let builder = GatewayBuilder::new(options);
        let gateway = test_env.gateway_with(builder, [task_server(&test_env, era)]).await;
        let mut ada = client(&gateway, era, "ada").await;
        let text = "0123456789".repeat(1_000);
        let task = create(&mut ada, &text).await;
        request(&mut ada, "tasks/get", &task).await;
        let polled = request(&mut ada, "tasks/get", &task).await;
        let result = match era {
            "legacy" => request(&mut ada, "tasks/result", &task).await,
            _ => polled["result"].clone(),
        };
        let shown = result["content"][0]["text"].as_str().unwrap();
        assert!(shown.len() < 4_096 && text.starts_with(shown), "{era}: {result}");
        let link = result["content"].as_array().unwrap().iter();
        let mut link = link.filter(|block| block["type"] == "resource_link");
        let uri = link.next().unwrap()["uri"].clone();
        let stored = ada.request("resources/read", json!({ "uri": uri })).await;
        assert_eq!(stored["contents"][0]["text"], text);
    }
}

/// Attack: remote | a client creates more tasks than its share and finishes none | further tasks of
/// the client are refused, another client still creates tasks, and a cancelled task makes room | No
/// unbounded wait
#[tokio::test]
async fn the_unfinished_tasks_of_one_principal_have_a_limit() {
    let test_env = TestEnv::new();
    let gateway = test_env.gateway([task_server(&test_env, "legacy")]).await;
    let mut ada = client(&gateway, "legacy", "ada").await;
    let mut bob = client(&gateway, "legacy", "bob").await;
    let first = create(&mut ada, "first").await;
    for _ in 1..512 {
        create(&mut ada, "more").await;
    }
    let refused = ada.respond("tools/call", call_params("over")).await;
    assert!(
        refused["error"]["message"].as_str().unwrap().contains("unfinished tasks"),
        "{refused}"
    );
    assert_eq!(journal_count(&test_env, "tools/call"), 512);
    create(&mut bob, "bob").await;
    request(&mut ada, "tasks/cancel", &first).await;
    create(&mut ada, "after").await;
}
