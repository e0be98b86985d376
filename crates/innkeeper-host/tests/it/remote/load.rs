//! Many calls at once, large ones, and servers that stop taking any.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Fault, Remote, Seen};
use serde_json::{Map, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{answers, beside, echo, forgiving};
use crate::setup::{PATIENCE, Scene};

const WAYS: [fn(Plan) -> Plan; 4] =
    [|plan| plan, Plan::answers_as_json, Plan::sse, Plan::websocket];

async fn all(host: &Host, count: usize, say: impl Fn(usize) -> String) {
    let mut calls = JoinSet::new();
    for number in 0..count {
        let (host, message) = (host.clone(), say(number));
        calls.spawn(async move {
            assert_eq!(echo(&host, "a", &message).await.unwrap(), message);
        });
    }
    calls.join_all().await;
}

/// Proves: TR3.3
#[tokio::test]
async fn calls_made_at_once_each_get_their_own_answer_over_every_way() {
    for way in WAYS {
        let scene = Scene::new();
        let server = scene.fx("a").with("--out-of-order", 8);
        let remote = way(Remote::of(server)).start().await;
        let host = beside(&scene, &remote).await;
        all(&host, 200, |number| format!("number {number}")).await;
        let journal = scene.journal().of("a");
        assert_eq!(journal.count("tools/call"), 200, "lost or doubled");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn large_arguments_reach_the_server_whole_over_every_way() {
    for way in WAYS {
        let scene = Scene::new();
        let remote = way(Remote::of(scene.fx("a"))).start().await;
        let host = beside(&scene, &remote).await;
        all(&host, 3, |number| "é".repeat(1_000_000 + number)).await;
        host.shutdown().await;
    }
}

/// Fault 32.
#[tokio::test]
async fn a_server_that_stops_reading_costs_each_call_its_time_and_the_shutdown_its_own() {
    for way in WAYS {
        let scene = Scene::new();
        let server = forgiving(&scene).switch("--stop-reading").key("shutdownTimeout", 1);
        let remote = way(Remote::of(server)).start().await;
        let host = beside(&scene, &remote).await;
        let began = Instant::now();
        let mut calls = JoinSet::new();
        for _ in 0..20 {
            let host = host.clone();
            calls.spawn(async move {
                let brief = Some(Duration::from_secs(1));
                let options = CallOptions { timeout: brief, ..CallOptions::default() };
                let message = json!({"message": "x".repeat(1 << 20)});
                host.call_tool_with("a.echo", message, options).await
            });
        }
        while let Some(called) = calls.join_next().await {
            let called = called.unwrap();
            assert!(matches!(called, Err(CallError::Timeout { .. })), "{called:?}");
        }
        assert!(began.elapsed() < PATIENCE, "{:?}", began.elapsed());
        answers(&host, "b").await;
        let began = Instant::now();
        host.shutdown().await;
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    }
}

#[tokio::test]
async fn calls_that_hang_are_let_go_of_and_take_no_place_of_others() {
    let scene = Scene::new();
    let hanging = Fault::silence().on("tools/call");
    let server = forgiving(&scene).key("maxConcurrent", 1000);
    let remote = Remote::of(server).fault(hanging).start().await;
    let host = beside(&scene, &remote).await;
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let host = host.clone();
        calls.spawn(async move {
            host.call_tool("a.pid", ()).await.unwrap_err();
        });
    }
    let calling = |seen: &&Seen| seen.rpc_method() == Some("tools/call");
    remote.until(PATIENCE, |seen| seen.iter().filter(calling).count() == 200).await;
    calls.shutdown().await;
    let began = Instant::now();
    host.get_prompt("a.plain", &Map::new(), CallOptions::default()).await.unwrap();
    assert!(began.elapsed() < PATIENCE);
    scene.journal_until(|journal| journal.count("notifications/cancelled") == 200).await;
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_is_busy_at_the_start_is_asked_again() {
    for method in ["server/discover", "initialize", "tools/list", "prompts/list"] {
        let scene = Scene::new();
        let server = scene.fx("a").key("retry", json!({"max": 2, "initialDelay": 0.01}));
        let busy = Fault::status(503).on(method).times(1);
        let remote = Remote::of(server).fault(busy).start().await;
        let host = beside(&scene, &remote).await;
        answers(&host, "a").await;
        host.shutdown().await;
    }
}
