//! Unusual WebSocket behaviour.

use std::time::Duration;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::shutdown::StopStage;
use innkeeper_host::{CallError, CallOptions, Host, HostEvent, ServerState};
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;

use super::{
    assert_fault_count, assert_responds, echo, start_host, start_host_with_neighbour,
    tolerant_fixture, unavailable_error,
};
use crate::setup::{TestEnv, wait_for_event};

async fn host_with_fault(test_env: &TestEnv, fault: Fault) -> (Host, RemoteServer) {
    let fault = fault.on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(tolerant_fixture(test_env))
        .websocket()
        .fault(fault)
        .start()
        .await;
    (start_host_with_neighbour(test_env, &remote).await, remote)
}

/// Fault 99.
#[tokio::test]
async fn fragments_pings_binary_frames_and_repetitions_are_all_the_same() {
    for fault in [
        Fault::fragments(1),
        Fault::fragments(50),
        Fault::pings(10_000),
        Fault::binary_frame(),
        Fault::duplicate(),
        Fault::pretty_print(),
        Fault::prepend_message(1 << 20),
        Fault::stall_for(Duration::from_millis(50)),
    ] {
        let test_env = TestEnv::new();
        let (host, remote) = host_with_fault(&test_env, fault.clone()).await;
        let echoed = echo(&host, "a", "whatever the frame").await;
        assert_eq!(echoed.unwrap(), "whatever the frame", "{fault:?}");
        assert_fault_count(&remote, 1);
        assert_responds(&host, "a").await;
        assert_responds(&host, "b").await;
        assert!(host.shutdown().await.is_clean());
    }
}

/// Fault 99.
#[tokio::test]
async fn a_websocket_that_ends_abruptly_makes_its_server_unavailable_and_no_other() {
    for fault in [Fault::reset_mid_body(), Fault::reset_before_response()] {
        let test_env = TestEnv::new();
        let (host, _remote) = host_with_fault(&test_env, fault).await;
        let mut events = host.events();
        let (reason, may_have_run) = unavailable_error(echo(&host, "a", "").await);
        assert!(
            matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run,
            "{reason:?}"
        );
        wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
        assert_eq!(host.status()["a"].state, ServerState::Unavailable);
        let (_, may_have_run) = unavailable_error(echo(&host, "a", "").await);
        assert!(!may_have_run);
        assert_responds(&host, "b").await;
        host.restart_server("a").await.unwrap();
        assert_responds(&host, "a").await;
        host.shutdown().await;
    }
}

/// Fault 99.
/// Attack: remote | a WebSocket message of 100 MiB | the connection ends before the message is
/// read; another server is not affected | No unbounded memory
#[tokio::test]
async fn a_message_that_is_far_too_long_ends_the_websocket_before_it_is_read() {
    let test_env = TestEnv::new();
    let (host, _remote) = host_with_fault(&test_env, Fault::prepend_message(100 << 20)).await;
    let mut events = host.events();
    let (reason, _) = unavailable_error(echo(&host, "a", "").await);
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)), "{reason:?}");
    assert_responds(&host, "b").await;
    // The status has the same reason as the call, and the report includes the lost server.
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    let status = host.status()["a"].reason.clone();
    assert!(status.is_some_and(|status| status.contains("connection lost")));
    let report = host.shutdown().await;
    let ended = report.servers.iter().find(|server| &*server.server == "a");
    assert_eq!(ended.map(|server| server.stage), Some(StopStage::AlreadyGone), "{report:?}");
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_costs_the_time_of_its_call() {
    for fault in [Fault::stall(), Fault::never_responds()] {
        let test_env = TestEnv::new();
        let (host, _remote) = host_with_fault(&test_env, fault).await;
        let short_timeout = Some(Duration::from_secs(1));
        let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
        let result = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
        assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
        assert_responds(&host, "b").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_name_the_subprotocol_is_spoken_to_all_the_same() {
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .websocket()
        .without_subprotocol()
        .start()
        .await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    assert_responds(&host, "a").await;
    let opened = &remote.requests()[0];
    assert_eq!(opened.header("sec-websocket-protocol"), Some("mcp"));
    host.shutdown().await;
}
