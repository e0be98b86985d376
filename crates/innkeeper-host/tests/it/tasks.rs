//! Calls that become tasks, in both forms and over pipes and HTTP.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::error::ProtocolFault;
use innkeeper_host::{Answers, CallError, Callback, Host, ServerRequest, ToolResult};
use innkeeper_testkit::{Fixture, Journal, Remote};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::remote::file;
use crate::setup::{PATIENCE, Scene, builder, text};

const ERAS: [&str; 2] = ["legacy", "modern"];

fn deferring(scene: &Scene, era: &str, kind: &str) -> Fixture {
    scene.fx("a").with("--era", era).with("--task", kind).key("unavailableAfterTimeouts", 9)
}

async fn host(scene: &Scene, entry: Value, callback: impl Callback) -> Host {
    let builder = builder(scene.config_of(&file([("a", entry)])));
    builder.callback(&Answers::elicitation(), callback).start().await.unwrap()
}

async fn alone(scene: &Scene, server: Fixture) -> Host {
    host(scene, server.entry(), |_| async { Ok(json!({"action": "decline"})) }).await
}

async fn call(host: &Host) -> Result<ToolResult, CallError> {
    host.call_tool("a.echo", json!({"message": "hi"})).await
}

fn counts(journal: &Journal) -> [usize; 5] {
    ["tools/call", "tasks/get", "tasks/result", "tasks/update", "tasks/cancel"]
        .map(|method| journal.count(method))
}

#[tokio::test]
async fn a_call_that_becomes_a_task_returns_what_the_tool_answered_in_both_eras() {
    for era in ERAS {
        let scene = Scene::new();
        let server = deferring(&scene, era, "works").with("--task-polls", 2);
        let host = alone(&scene, server.key("maxTotalTimeout", 90)).await;
        assert_eq!(text(&call(&host).await.unwrap()), "hi", "{era}");
        let metrics = &host.metrics()["a"];
        assert_eq!(metrics.success_count, 1, "one call, however often it was asked after");
        host.shutdown().await;
        let journal = scene.journal();
        let params = journal.params("tools/call")[0];
        if era == "legacy" {
            assert_eq!(counts(&journal), [1, 3, 1, 0, 0]);
            assert_eq!(params["task"], json!({"ttl": 90_000}));
            assert!(journal.params("tasks/get")[0].get("_meta").is_none());
        } else {
            assert_eq!(counts(&journal), [1, 3, 0, 0, 0]);
            assert!(params.get("task").is_none());
            let meta = &journal.params("tasks/get")[0]["_meta"];
            let able = &meta["io.modelcontextprotocol/clientCapabilities"]["extensions"];
            assert_eq!(*able, json!({"io.modelcontextprotocol/tasks": {}}));
        }
    }
}

#[tokio::test]
async fn a_task_that_asks_is_answered_once_by_the_callback_over_every_way() {
    for era in ERAS {
        for http in [false, true] {
            let scene = Scene::new();
            let server = deferring(&scene, era, "asks").with("--task-polls", 1);
            let asked = Arc::new(AtomicUsize::new(0));
            let seen = asked.clone();
            let callback = move |request: ServerRequest| {
                assert_eq!(&*request.method, "elicitation/create");
                seen.fetch_add(1, Ordering::Relaxed);
                async { Ok(json!({"action": "accept", "content": {"colour": "blue"}})) }
            };
            let remote = if http { Some(Remote::of(server.clone()).start().await) } else { None };
            let entry = remote.as_ref().map_or_else(|| server.entry(), Remote::entry);
            let host = host(&scene, entry, callback).await;
            let heard = text(&call(&host).await.unwrap());
            assert!(heard.contains(r#""colour":"blue""#), "{era}, {http}: {heard}");
            assert_eq!(asked.load(Ordering::Relaxed), 1, "{era}, {http}");
            host.shutdown().await;
            let [calls, _, results, updates, cancels] = counts(&scene.journal());
            let expected = if era == "legacy" { [1, 1, 0, 0] } else { [1, 0, 1, 0] };
            assert_eq!([calls, results, updates, cancels], expected, "{era}, {http}");
        }
    }
}

#[tokio::test]
async fn a_task_that_fails_is_the_servers_error_and_one_it_stops_a_named_one() {
    for era in ERAS {
        let scene = Scene::new();
        let fails = alone(&scene, deferring(&scene, era, "fails")).await;
        match call(&fails).await {
            Err(CallError::Server { error, item, .. }) => {
                assert_eq!((error.code, &*item), (-32603, "echo"), "{era}");
                assert_eq!(error.message, "the task failed as asked");
            }
            other => panic!("{era}: {other:?}"),
        }
        fails.shutdown().await;
        let stops = alone(&scene, deferring(&scene, era, "stops")).await;
        match call(&stops).await {
            Err(CallError::Protocol {
                source: ProtocolFault::NoTaskResult { status, message },
                ..
            }) => {
                assert_eq!((status, &*message), ("cancelled", "it is cancelled"), "{era}");
            }
            other => panic!("{era}: {other:?}"),
        }
        stops.shutdown().await;
        assert_eq!(scene.journal().count("tasks/cancel"), 0);
    }
}

#[tokio::test]
async fn a_forgotten_task_is_an_error_and_after_its_time_an_expired_one() {
    for era in ERAS {
        let scene = Scene::new();
        let early = alone(&scene, deferring(&scene, era, "forgets")).await;
        match call(&early).await {
            Err(CallError::Server { error, .. }) => assert_eq!(error.code, -32602, "{era}"),
            other => panic!("{era}: {other:?}"),
        }
        early.shutdown().await;
        let late = deferring(&scene, era, "forgets").with("--task-ttl", 20);
        let late = alone(&scene, late).await;
        match call(&late).await {
            Err(CallError::Protocol { source: ProtocolFault::TaskExpired { after }, .. }) => {
                assert_eq!(after, Duration::from_millis(20), "{era}");
            }
            other => panic!("{era}: {other:?}"),
        }
        late.shutdown().await;
    }
}

/// Proves: N21, FR4.11
#[tokio::test]
async fn a_task_that_runs_out_of_time_or_loses_its_caller_is_stopped_at_the_server() {
    for era in ERAS {
        let scene = Scene::new();
        let server = deferring(&scene, era, "stays").with("--task-interval", 300);
        let server = server.key("timeout", 0.5).key("maxTotalTimeout", 1);
        // It answers every question, so that it stays in the catalog.
        let host = alone(&scene, server.key("unavailableAfterTimeouts", 1)).await;
        let began = Instant::now();
        let late = call(&host).await.unwrap_err();
        assert!(matches!(late, CallError::Timeout { .. }), "{era}: {late:?}");
        let took = began.elapsed();
        assert!(took >= Duration::from_secs(1) && took < PATIENCE, "{era}: {took:?}");
        scene.journal_until(|journal| journal.count("tasks/cancel") == 1).await;
        let polls = scene.journal().count("tasks/get");
        {
            let second = call(&host);
            tokio::pin!(second);
            tokio::select! {
                result = &mut second => panic!("{era}: {result:?}"),
                _ = scene.journal_until(|journal| journal.count("tasks/get") > polls) => {}
            }
        }
        let journal = scene.journal_until(|journal| journal.count("tasks/cancel") == 2).await;
        let stopped: Vec<&Value> =
            journal.params("tasks/cancel").iter().map(|params| &params["taskId"]).collect();
        assert_eq!(stopped, ["fx-task-1", "fx-task-2"], "{era}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_tool_is_called_as_a_task_only_if_it_must_be_and_its_server_takes_tasks() {
    let scene = Scene::new();
    let tools = |support: &str| {
        let execution = json!({"taskSupport": support});
        json!([{"name": "echo", "inputSchema": {"type": "object"}, "execution": execution}])
    };
    let servers =
        ["required", "optional"].map(|support| scene.fx(support).with("--tools", tools(support)));
    let host = scene.start(servers).await.unwrap();
    for name in ["required.echo", "optional.echo"] {
        assert_eq!(text(&host.call_tool(name, json!({"message": "hi"})).await.unwrap()), "hi");
    }
    host.shutdown().await;
    for params in scene.journal().params("tools/call") {
        assert!(params.get("task").is_none(), "{params}");
    }
}

/// Proves: N21
#[tokio::test]
async fn a_host_that_leaves_a_remote_server_stops_its_tasks_there() {
    for era in ERAS {
        let scene = Scene::new();
        let remote = Remote::of(deferring(&scene, era, "stays")).start().await;
        let host = host(&scene, remote.entry(), |_| async { Ok(json!({})) }).await;
        let leave = async {
            scene.journal_until(|journal| journal.count("tasks/get") > 0).await;
            host.shutdown().await
        };
        let (called, _) = tokio::join!(call(&host), leave);
        assert!(matches!(called, Err(CallError::Unavailable { .. })), "{era}: {called:?}");
        let journal = scene.journal();
        assert_eq!(journal.params("tasks/cancel").len(), 1, "{era}");
        assert_eq!(journal.params("tasks/cancel")[0]["taskId"], "fx-task-1", "{era}");
    }
}
