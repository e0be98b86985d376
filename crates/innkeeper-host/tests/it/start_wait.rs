//! A host that is in use while some of its servers start (`HostBuilder::start_wait`).

use std::time::Duration;

use innkeeper_host::error::{CallError, UnavailableReason};
use innkeeper_host::{Host, HostEvent, ReloadOptions, ServerState};
use innkeeper_testkit::Fixture;
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{TEST_TIMEOUT, TestEnv, builder, wait_for_event};

const WAIT: Duration = Duration::from_millis(200);

/// A server that needs a second to start.
fn slow_fixture(test_env: &TestEnv) -> Fixture {
    test_env.fixture("slow").with("--init-delay", 1_000)
}

async fn start(test_env: &TestEnv, slow: Fixture) -> Host {
    let config = test_env.config([slow, test_env.fixture("quick")]);
    builder(config).start_wait(WAIT).start().await.unwrap()
}

#[tokio::test]
async fn a_slow_server_becomes_ready_under_the_running_host() {
    let test_env = TestEnv::new();
    let host = start(&test_env, slow_fixture(&test_env)).await;
    let mut events = host.events();
    let states = host.status();
    assert_eq!(states["quick"].state, ServerState::Ready);
    assert_eq!(states["slow"].state, ServerState::Starting);
    host.call_tool("quick.echo", json!({"message": "hi"})).await.unwrap();
    let early = host.call_tool("slow.echo", json!({"message": "hi"})).await.unwrap_err();
    let CallError::Unavailable { reason: UnavailableReason::Starting { after: None }, .. } = early
    else {
        panic!("{early:?}")
    };
    let ready =
        |event: &HostEvent| matches!(event, HostEvent::Ready { server, .. } if **server == *"slow");
    wait_for_event(&mut events, ready).await;
    host.call_tool("slow.echo", json!({"message": "hi"})).await.unwrap();
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_starts_is_stopped_with_the_host_and_by_a_reload() {
    let test_env = TestEnv::new();
    let hanging = || test_env.fixture("slow").with("--init-delay", 60_000);
    let host = start(&test_env, hanging()).await;
    let started_at = Instant::now();
    host.shutdown().await;
    assert!(started_at.elapsed() < TEST_TIMEOUT / 2);
    test_env.assert_gone().await;

    let host = start(&test_env, hanging()).await;
    let config = Some(test_env.config([test_env.fixture("quick")]));
    let options = ReloadOptions { config, ..ReloadOptions::default() };
    let report = host.reload_with(options).await.unwrap();
    assert_eq!(report.removed, ["slow".into()]);
    host.call_tool("quick.echo", json!({"message": "hi"})).await.unwrap();
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_fails_after_the_wait_takes_no_other_server_with_it() {
    let test_env = TestEnv::new();
    let failing =
        test_env.fixture("slow").with("--init-delay", 60_000).config_key("initTimeout", 0.5);
    let host = start(&test_env, failing).await;
    let mut events = host.events();
    let failed = |event: &HostEvent| matches!(event, HostEvent::Unavailable { .. });
    wait_for_event(&mut events, failed).await;
    host.call_tool("quick.echo", json!({"message": "hi"})).await.unwrap();
    host.shutdown().await;
    test_env.assert_gone().await;
}
