//! Calls that become tasks, in both eras and over stdio and HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::error::ProtocolError;
use innkeeper_host::{CallError, Callback, CallbackCapabilities, Host, ServerRequest, ToolResult};
use innkeeper_testkit::{Fixture, Journal, RemoteServer};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::remote::config_json;
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text};

const ERAS: [&str; 2] = ["legacy", "modern"];

fn task_fixture(test_env: &TestEnv, era: &str, kind: &str) -> Fixture {
    test_env
        .fixture("a")
        .with("--era", era)
        .with("--task", kind)
        .config_key("unavailableAfterTimeouts", 9)
}

async fn host_with_callback(test_env: &TestEnv, entry: Value, callback: impl Callback) -> Host {
    let builder = builder(test_env.config_from(&config_json([("a", entry)])));
    builder.callback(&CallbackCapabilities::elicitation(), callback).start().await.unwrap()
}

async fn host_declining(test_env: &TestEnv, server: Fixture) -> Host {
    host_with_callback(test_env, server.config_entry(), |_| async {
        Ok(json!({"action": "decline"}))
    })
    .await
}

async fn call(host: &Host) -> Result<ToolResult, CallError> {
    host.call_tool("a.echo", json!({"message": "hi"})).await
}

fn request_counts(journal: &Journal) -> [usize; 5] {
    ["tools/call", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel"]
        .map(|method| journal.count(method))
}

#[tokio::test]
async fn a_call_that_becomes_a_task_returns_what_the_tool_answered_in_both_eras() {
    for era in ERAS {
        let test_env = TestEnv::new();
        let server = task_fixture(&test_env, era, "works").with("--task-polls", 2);
        let host = host_declining(&test_env, server.config_key("maxTotalTimeout", 90)).await;
        assert_eq!(result_text(&call(&host).await.unwrap()), "hi", "{era}");
        let metrics = &host.metrics()["a"];
        assert_eq!(metrics.success_count, 1, "one call, however often it was asked after");
        host.shutdown().await;
        let journal = test_env.journal();
        let params = journal.params("tools/call")[0];
        if era == "legacy" {
            assert_eq!(request_counts(&journal), [1, 3, 1, 0, 0]);
            assert_eq!(params["task"], json!({"ttl": 90_000}));
            assert!(journal.params("tasks/get")[0].get("_meta").is_none());
        } else {
            assert_eq!(request_counts(&journal), [1, 3, 0, 0, 0]);
            assert!(params.get("task").is_none());
            let meta = &journal.params("tasks/get")[0]["_meta"];
            let capabilities = &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"];
            assert_eq!(*capabilities, json!({"io.modelcontextprotocol/tasks": {}}));
        }
    }
}

#[tokio::test]
async fn a_task_that_asks_is_answered_once_by_the_callback_over_every_transport() {
    for era in ERAS {
        for http in [false, true] {
            let test_env = TestEnv::new();
            let server = task_fixture(&test_env, era, "asks").with("--task-polls", 1);
            let request_count = Arc::new(AtomicUsize::new(0));
            let counter = request_count.clone();
            let callback = move |request: ServerRequest| {
                assert_eq!(&*request.method, "elicitation/create");
                counter.fetch_add(1, Ordering::Relaxed);
                async { Ok(json!({"action": "accept", "content": {"colour": "blue"}})) }
            };
            let remote = if http {
                Some(RemoteServer::for_fixture(server.clone()).start().await)
            } else {
                None
            };
            let entry =
                remote.as_ref().map_or_else(|| server.config_entry(), RemoteServer::config_entry);
            let host = host_with_callback(&test_env, entry, callback).await;
            let result = result_text(&call(&host).await.unwrap());
            assert!(result.contains(r#""colour":"blue""#), "{era}, {http}: {result}");
            assert_eq!(request_count.load(Ordering::Relaxed), 1, "{era}, {http}");
            host.shutdown().await;
            let [calls, _, results, updates, cancels] = request_counts(&test_env.journal());
            let expected = if era == "legacy" { [1, 1, 0, 0] } else { [1, 0, 1, 0] };
            assert_eq!([calls, results, updates, cancels], expected, "{era}, {http}");
        }
    }
}

#[tokio::test]
async fn a_task_that_fails_is_the_servers_error_and_one_it_stops_a_named_one() {
    for era in ERAS {
        let test_env = TestEnv::new();
        let fails = host_declining(&test_env, task_fixture(&test_env, era, "fails")).await;
        match call(&fails).await {
            Err(CallError::Server { error, item, .. }) => {
                assert_eq!((error.code, &*item), (-32603, "echo"), "{era}");
                assert_eq!(error.message, "the task failed as asked");
            }
            other => panic!("{era}: {other:?}"),
        }
        fails.shutdown().await;
        let stops = host_declining(&test_env, task_fixture(&test_env, era, "stops")).await;
        match call(&stops).await {
            Err(CallError::Protocol {
                source: ProtocolError::NoTaskResult { status, message },
                ..
            }) => {
                assert_eq!((status, &*message), ("cancelled", "it is cancelled"), "{era}");
            }
            other => panic!("{era}: {other:?}"),
        }
        stops.shutdown().await;
        assert_eq!(test_env.journal().count("tasks/cancel"), 0);
    }
}

#[tokio::test]
async fn a_forgotten_task_is_an_error_and_after_its_time_an_expired_one() {
    for era in ERAS {
        let test_env = TestEnv::new();
        let early = host_declining(&test_env, task_fixture(&test_env, era, "forgets")).await;
        match call(&early).await {
            Err(CallError::Server { error, .. }) => assert_eq!(error.code, -32602, "{era}"),
            other => panic!("{era}: {other:?}"),
        }
        early.shutdown().await;
        let fixture = task_fixture(&test_env, era, "forgets").with("--task-ttl", 20);
        let short_lived_host = host_declining(&test_env, fixture).await;
        match call(&short_lived_host).await {
            Err(CallError::Protocol { source: ProtocolError::TaskExpired { ttl }, .. }) => {
                assert_eq!(ttl, Duration::from_millis(20), "{era}");
            }
            other => panic!("{era}: {other:?}"),
        }
        short_lived_host.shutdown().await;
    }
}

/// Proves: N21, FR4.11
#[tokio::test]
async fn a_task_that_runs_out_of_time_or_loses_its_caller_is_stopped_at_the_server() {
    for era in ERAS {
        let test_env = TestEnv::new();
        let server = task_fixture(&test_env, era, "stays").with("--task-interval", 300);
        let server = server.config_key("timeout", 0.5).config_key("maxTotalTimeout", 1);
        // The server responds to every request, so it stays in the catalog.
        let host =
            host_declining(&test_env, server.config_key("unavailableAfterTimeouts", 1)).await;
        let started_at = Instant::now();
        let error = call(&host).await.unwrap_err();
        assert!(matches!(error, CallError::Timeout { .. }), "{era}: {error:?}");
        let elapsed = started_at.elapsed();
        assert!(elapsed >= Duration::from_secs(1) && elapsed < TEST_TIMEOUT, "{era}: {elapsed:?}");
        test_env.wait_for_journal(|journal| journal.count("tasks/cancel") == 1).await;
        let polls = test_env.journal().count("tasks/get");
        {
            let second = call(&host);
            tokio::pin!(second);
            tokio::select! {
                result = &mut second => panic!("{era}: {result:?}"),
                _ = test_env.wait_for_journal(|journal| journal.count("tasks/get") > polls) => {}
            }
        }
        let journal = test_env.wait_for_journal(|journal| journal.count("tasks/cancel") == 2).await;
        let stopped: Vec<&Value> =
            journal.params("tasks/cancel").iter().map(|params| &params["taskId"]).collect();
        assert_eq!(stopped, ["fx-task-1", "fx-task-2"], "{era}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_tool_is_called_as_a_task_only_if_it_must_be_and_its_server_takes_tasks() {
    let test_env = TestEnv::new();
    let tools = |support: &str| {
        let execution = json!({"taskSupport": support});
        json!([{"name": "echo", "inputSchema": {"type": "object"}, "execution": execution}])
    };
    let servers = ["required", "optional"]
        .map(|support| test_env.fixture(support).with("--tools", tools(support)));
    let host = test_env.start(servers).await.unwrap();
    for name in ["required.echo", "optional.echo"] {
        assert_eq!(
            result_text(&host.call_tool(name, json!({"message": "hi"})).await.unwrap()),
            "hi"
        );
    }
    host.shutdown().await;
    for params in test_env.journal().params("tools/call") {
        assert!(params.get("task").is_none(), "{params}");
    }
}

/// Proves: N21
#[tokio::test]
async fn a_host_that_leaves_a_remote_server_stops_its_tasks_there() {
    for era in ERAS {
        let test_env = TestEnv::new();
        let remote = RemoteServer::for_fixture(task_fixture(&test_env, era, "stays")).start().await;
        let host =
            host_with_callback(&test_env, remote.config_entry(), |_| async { Ok(json!({})) }).await;
        let leave = async {
            test_env.wait_for_journal(|journal| journal.count("tasks/get") > 0).await;
            host.shutdown().await
        };
        let (result, _) = tokio::join!(call(&host), leave);
        assert!(matches!(result, Err(CallError::Unavailable { .. })), "{era}: {result:?}");
        let journal = test_env.journal();
        assert_eq!(journal.params("tasks/cancel").len(), 1, "{era}");
        assert_eq!(journal.params("tasks/cancel")[0]["taskId"], "fx-task-1", "{era}");
    }
}
