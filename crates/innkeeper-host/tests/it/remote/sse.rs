//! The older HTTP+SSE transport: failures of its stream and of its POST requests.

use std::time::Duration;

use innkeeper_host::error::{ProtocolError, UnavailableReason};
use innkeeper_host::{CallError, CallOptions, Host, HostEvent, ServerState};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;
use tokio::time::Instant;

use super::{
    assert_responds, echo, protocol_error, start_host_with_neighbour, tolerant_fixture,
    unavailable_error,
};
use crate::setup::{TEST_TIMEOUT, TestEnv, wait_for_event};

async fn host_with_fault(test_env: &TestEnv, fault: Fault) -> (Host, RemoteServer) {
    let server =
        tolerant_fixture(test_env).config_key("retry", json!({"max": 2, "initialDelay": 0.01}));
    let remote = RemoteServer::for_fixture(server).sse().fault(fault).start().await;
    (start_host_with_neighbour(test_env, &remote).await, remote)
}

#[tokio::test]
async fn a_stream_that_breaks_ends_every_call_at_once_and_no_neighbour() {
    let test_env = TestEnv::new();
    let (host, remote) =
        host_with_fault(&test_env, Fault::status(418).on_rpc_method("no/such")).await;
    let mut events = host.events();
    let breaking = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        remote.reset_connections();
        Instant::now()
    };
    let (result, stopped) =
        tokio::join!(host.call_tool("a.sleep", json!({"ms": 60_000})), breaking);
    assert!(stopped.elapsed() < TEST_TIMEOUT);
    let (reason, may_have_run) = unavailable_error(result);
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run, "{reason:?}");
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    assert_eq!(host.status()["a"].state, ServerState::Unavailable);
    assert_responds(&host, "b").await;
    host.restart_server("a").await.unwrap();
    assert_responds(&host, "a").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_post_that_is_refused_fails_its_call_alone() {
    let test_env = TestEnv::new();
    let (host, _remote) =
        host_with_fault(&test_env, Fault::status(500).on_rpc_method("tools/call").only_nth(1))
            .await;
    let error = protocol_error(echo(&host, "a", "").await);
    assert!(matches!(error, ProtocolError::HttpStatus { status: 500, .. }), "{error:?}");
    assert_responds(&host, "a").await;
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_post_to_a_busy_server_is_sent_again() {
    let test_env = TestEnv::new();
    let (host, _remote) =
        host_with_fault(&test_env, Fault::status(503).on_rpc_method("tools/call").first_n(2)).await;
    assert_responds(&host, "a").await;
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
    host.shutdown().await;
}

/// Fault 91.
#[tokio::test]
async fn a_post_that_is_never_taken_costs_the_time_of_its_call() {
    let test_env = TestEnv::new();
    let (host, _remote) =
        host_with_fault(&test_env, Fault::never_responds().on_rpc_method("tools/call").only_nth(1))
            .await;
    let short_timeout = Some(Duration::from_secs(1));
    let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
    let result = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
    assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
    assert_responds(&host, "a").await;
    assert_responds(&host, "b").await;
    test_env.wait_for_journal(|journal| journal.count("notifications/cancelled") == 1).await;
    host.shutdown().await;
}
