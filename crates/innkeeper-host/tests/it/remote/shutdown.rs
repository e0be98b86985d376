//! Shutdown of remote connections: notification, cleanup and time limits.

use std::time::Duration;

use innkeeper_host::shutdown::{ShutdownReport, StopStage};
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fault, RemoteServer};
use serde_json::json;
use tokio::time::Instant;

use super::{start_host, tolerant_fixture};
use crate::setup::TestEnv;

fn streamable_http(server_builder: RemoteServerBuilder) -> RemoteServerBuilder {
    server_builder
}

#[tokio::test]
async fn a_server_is_notified_of_the_end_of_its_session_and_nothing_is_left_of_it() {
    for transport in [
        streamable_http,
        |server_builder: RemoteServerBuilder| server_builder.sse(),
        |server_builder: RemoteServerBuilder| server_builder.websocket(),
    ] {
        let test_env = TestEnv::new();
        let remote = transport(RemoteServer::for_fixture(test_env.fixture("a"))).start().await;
        let host = start_host(&test_env, [("a", remote.config_entry())]).await;
        let report = host.shutdown().await;
        assert_eq!(report.servers[0].stage, StopStage::Disconnected);
        assert!(report.is_clean(), "{report:?}");
        // The fixture process runs as long as its session.
        test_env.assert_gone().await;
    }
}

#[tokio::test]
async fn a_host_that_is_dropped_leaves_no_connection() {
    for transport in [
        |server_builder: RemoteServerBuilder| server_builder.sse(),
        |server_builder: RemoteServerBuilder| server_builder.websocket(),
    ] {
        let test_env = TestEnv::new();
        let remote = transport(RemoteServer::for_fixture(test_env.fixture("a"))).start().await;
        let _ = start_host(&test_env, [("a", remote.config_entry())]).await;
        test_env.assert_gone().await;
    }
}

/// Shuts down a host during a call, and returns the report and the duration.
async fn timed_shutdown(test_env: &TestEnv, remote: &RemoteServer) -> (ShutdownReport, Duration) {
    let host = start_host(test_env, [("a", remote.config_entry())]).await;
    let calling = host.call_tool("a.sleep", json!({"ms": 60_000}));
    let ending = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        let started_at = Instant::now();
        let report = host.shutdown().await;
        (report, started_at.elapsed())
    };
    let (result, ended) = tokio::join!(calling, ending);
    result.unwrap_err();
    ended
}

/// Attack: remote | the end of the session gets no response, half of one, an error or a reset | the
/// shutdown ends in time | No unbounded wait
#[tokio::test]
async fn a_server_that_does_not_answer_the_session_end_is_left_within_its_timeout() {
    for fault in [
        Fault::never_responds(),
        Fault::stall(),
        Fault::status(500),
        Fault::reset_before_response(),
    ] {
        let test_env = TestEnv::new();
        let server = tolerant_fixture(&test_env).config_key("shutdownTimeout", 1);
        let remote =
            RemoteServer::for_fixture(server).fault(fault.on_http_method("DELETE")).start().await;
        let (report, elapsed) = timed_shutdown(&test_env, &remote).await;
        assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
        assert!(report.is_clean(), "a remote server leaves no process: {report:?}");
        assert_eq!(remote.requests().last().unwrap().method, "DELETE");
    }
}

#[tokio::test]
async fn a_server_that_is_gone_is_left_at_once() {
    for transport in [
        streamable_http,
        |server_builder: RemoteServerBuilder| server_builder.sse(),
        |server_builder: RemoteServerBuilder| server_builder.websocket(),
    ] {
        let test_env = TestEnv::new();
        let remote =
            transport(RemoteServer::for_fixture(tolerant_fixture(&test_env))).start().await;
        let host = start_host(&test_env, [("a", remote.config_entry())]).await;
        remote.stop().await;
        let started_at = Instant::now();
        host.shutdown().await;
        assert!(started_at.elapsed() < Duration::from_secs(2), "{:?}", started_at.elapsed());
    }
}

#[tokio::test]
async fn a_remote_server_can_be_started_again_in_a_session_of_its_own() {
    for transport in [
        streamable_http,
        |server_builder: RemoteServerBuilder| server_builder.sse(),
        |server_builder: RemoteServerBuilder| server_builder.websocket(),
    ] {
        let test_env = TestEnv::new();
        let remote = transport(RemoteServer::for_fixture(test_env.fixture("a"))).start().await;
        let host = start_host(&test_env, [("a", remote.config_entry())]).await;
        host.restart_server("a").await.unwrap();
        assert_eq!(super::echo(&host, "a", "again").await.unwrap(), "again");
        assert_eq!(test_env.journal().count("initialize"), 2);
        assert!(host.shutdown().await.is_clean());
        test_env.assert_gone().await;
    }
}
