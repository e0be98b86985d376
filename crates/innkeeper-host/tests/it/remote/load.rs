//! Concurrent calls, large messages, and servers that stop reading.

use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host};
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fault, RecordedRequest, RemoteServer};
use serde_json::{Map, json};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::{
    assert_fault_count, assert_responds, echo, start_host_with_neighbour, tolerant_fixture,
};
use crate::setup::{TEST_TIMEOUT, TestEnv};

const TRANSPORTS: [fn(RemoteServerBuilder) -> RemoteServerBuilder; 4] = [
    |plan| plan,
    RemoteServerBuilder::with_json_responses,
    RemoteServerBuilder::sse,
    RemoteServerBuilder::websocket,
];

async fn call_concurrently(host: &Host, count: usize, say: impl Fn(usize) -> String) {
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
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server = test_env.fixture("a").with("--out-of-order", 8);
        let remote = transport(RemoteServer::for_fixture(server)).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        call_concurrently(&host, 200, |number| format!("number {number}")).await;
        let journal = test_env.journal().for_server("a");
        assert_eq!(journal.count("tools/call"), 200, "lost or doubled");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn large_arguments_reach_the_server_whole_over_every_way() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let remote = transport(RemoteServer::for_fixture(test_env.fixture("a"))).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        call_concurrently(&host, 3, |number| "é".repeat(1_000_000 + number)).await;
        host.shutdown().await;
    }
}

/// Fault 32.
/// Attack: remote | a remote server stops reading during 20 calls of 1 MiB | each call ends at its
/// deadline, and the shutdown ends in time | No unbounded wait
#[tokio::test]
async fn a_server_that_stops_reading_costs_each_call_its_time_and_the_shutdown_its_own() {
    for transport in TRANSPORTS {
        let test_env = TestEnv::new();
        let server =
            tolerant_fixture(&test_env).switch("--stop-reading").config_key("shutdownTimeout", 1);
        let remote = transport(RemoteServer::for_fixture(server)).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let started_at = Instant::now();
        let mut calls = JoinSet::new();
        for _ in 0..20 {
            let host = host.clone();
            calls.spawn(async move {
                let short_timeout = Some(Duration::from_secs(1));
                let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
                let message = json!({"message": "x".repeat(1 << 20)});
                host.call_tool_with("a.echo", message, options).await
            });
        }
        while let Some(result) = calls.join_next().await {
            let result = result.unwrap();
            assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
        }
        assert!(started_at.elapsed() < TEST_TIMEOUT, "{:?}", started_at.elapsed());
        assert_responds(&host, "b").await;
        let started_at = Instant::now();
        host.shutdown().await;
        assert!(started_at.elapsed() < Duration::from_secs(5), "{:?}", started_at.elapsed());
    }
}

#[tokio::test]
async fn calls_that_hang_are_let_go_of_and_take_no_place_of_others() {
    let test_env = TestEnv::new();
    let hanging = Fault::never_responds().on_rpc_method("tools/call");
    let server = tolerant_fixture(&test_env).config_key("maxConcurrent", 1000);
    let remote = RemoteServer::for_fixture(server).fault(hanging).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut calls = JoinSet::new();
    for _ in 0..200 {
        let host = host.clone();
        calls.spawn(async move {
            host.call_tool("a.pid", ()).await.unwrap_err();
        });
    }
    let calling = |request: &&RecordedRequest| request.rpc_method() == Some("tools/call");
    remote.wait_for(TEST_TIMEOUT, |requests| requests.iter().filter(calling).count() == 200).await;
    calls.shutdown().await;
    let started_at = Instant::now();
    host.get_prompt("a.plain", &Map::new(), CallOptions::default()).await.unwrap();
    assert!(started_at.elapsed() < TEST_TIMEOUT);
    test_env.wait_for_journal(|journal| journal.count("notifications/cancelled") == 200).await;
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_is_busy_at_the_start_is_asked_again() {
    for method in ["server/discover", "initialize", "tools/list", "prompts/list"] {
        let test_env = TestEnv::new();
        let server =
            test_env.fixture("a").config_key("retry", json!({"max": 2, "initialDelay": 0.01}));
        let busy = Fault::status(503).on_rpc_method(method).first_n(1);
        let remote = RemoteServer::for_fixture(server).fault(busy).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        assert_fault_count(&remote, 1);
        let requests = remote.requests();
        let asked: Vec<_> =
            requests.iter().filter(|request| request.rpc_method() == Some(method)).collect();
        assert_eq!(asked[0].status, Some(503), "{method}");
        // After `server/discover`, the handshake goes on with `initialize`.
        let count = if method == "server/discover" { 1 } else { 2 };
        assert_eq!(asked.len(), count, "{method}");
        assert_responds(&host, "a").await;
        host.shutdown().await;
    }
}
