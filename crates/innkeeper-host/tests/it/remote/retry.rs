//! Retries of busy or unreachable servers: conditions, number and delays.

use std::time::Duration;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{CallError, Host, HostEvent};
use innkeeper_testkit::{Fault, Fixture, Journal, RemoteServer};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use super::{
    assert_fault_count, assert_responds, echo, protocol_error, start_host_with_neighbour,
    unavailable_error,
};
use crate::setup::{TestEnv, drain_events};

/// A server with short retry delays of at most `max_delay` seconds.
fn fixture_with_retry(test_env: &TestEnv, max_delay: f64) -> Fixture {
    let retry = json!({"max": 3, "initialDelay": 0.01, "maxDelay": max_delay});
    test_env.fixture("a").config_key("retry", retry)
}

async fn host_with_busy_server(
    fixture: Fixture,
    test_env: &TestEnv,
    fault: Fault,
) -> (Host, RemoteServer) {
    let remote =
        RemoteServer::for_fixture(fixture).fault(fault.on_rpc_method("tools/call")).start().await;
    (start_host_with_neighbour(test_env, &remote).await, remote)
}

/// Returns the delays before retries.
fn retry_delays(events: &mut Receiver<HostEvent>) -> Vec<Duration> {
    let as_retry = |event| match event {
        HostEvent::CallRetry { delay, .. } => Some(delay),
        _ => None,
    };
    drain_events(events).into_iter().filter_map(as_retry).collect()
}

#[tokio::test]
async fn a_start_whose_connection_is_cut_is_tried_again() {
    for plan in [RemoteServer::for_fixture, |fixture| RemoteServer::for_fixture(fixture).sse()] {
        let test_env = TestEnv::new();
        let reset = Fault::reset_before_response().first_n(1);
        let remote = plan(fixture_with_retry(&test_env, 1.0)).fault(reset).start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        assert_fault_count(&remote, 1);
        assert_responds(&host, "a").await;
        host.shutdown().await;
    }
}

/// Restarts of a server without sessions are seen at a call only.
#[tokio::test]
async fn the_tools_of_a_server_that_was_away_or_refuses_a_listed_tool_are_read_again() {
    for fault in [Fault::status(502), Fault::status(200).rpc_error(-32_602, "unknown tool")] {
        let test_env = TestEnv::new();
        let fixture = fixture_with_retry(&test_env, 1.0).with("--era", "modern");
        let (host, _remote) = host_with_busy_server(fixture, &test_env, fault.only_nth(1)).await;
        echo(&host, "a", "refused").await.unwrap_err();
        assert_responds(&host, "a").await;
        let was_read = |journal: &Journal| journal.for_server("a").count("tools/list") == 2;
        test_env.wait_for_journal(was_read).await;
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_is_busy_twice_answers_the_third_time_and_runs_the_call_once() {
    for status in [503, 429] {
        let test_env = TestEnv::new();
        let (host, remote) = host_with_busy_server(
            fixture_with_retry(&test_env, 1.0),
            &test_env,
            Fault::status(status).first_n(2),
        )
        .await;
        let mut events = host.events();
        assert_responds(&host, "a").await;
        assert_eq!(retry_delays(&mut events).len(), 2);
        let posted = remote.requests();
        let posted = posted.iter().filter(|request| request.rpc_method() == Some("tools/call"));
        let statuses: Vec<Option<u16>> = posted.map(|request| request.status).collect();
        assert_eq!(statuses, [Some(status), Some(status), Some(200)]);
        assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
        let metrics = &host.metrics()["a"];
        assert_eq!((metrics.request_count, metrics.success_count), (1, 1), "it is one call");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_stays_busy_is_unavailable_after_the_attempts_it_is_given() {
    let test_env = TestEnv::new();
    let (host, _remote) =
        host_with_busy_server(fixture_with_retry(&test_env, 1.0), &test_env, Fault::status(503))
            .await;
    match echo(&host, "a", "").await {
        Err(CallError::Unavailable { reason, may_have_run, attempts, .. }) => {
            assert!(matches!(reason, UnavailableReason::Busy { status: 503, .. }), "{reason:?}");
            assert_eq!((may_have_run, attempts), (false, 4));
        }
        other => panic!("not unavailable: {other:?}"),
    }
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 0);
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

/// Fault 98.
#[tokio::test]
async fn a_server_that_asks_for_a_pause_is_not_asked_again_before_it_ends() {
    let test_env = TestEnv::new();
    let fault = Fault::status(503).header("retry-after", "1").first_n(1);
    let (host, _remote) =
        host_with_busy_server(fixture_with_retry(&test_env, 30.0), &test_env, fault).await;
    let started_at = Instant::now();
    assert_responds(&host, "a").await;
    assert!(started_at.elapsed() >= Duration::from_secs(1), "{:?}", started_at.elapsed());
    host.shutdown().await;
}

/// Fault 98.
/// Attack: remote | `retry-after` names 1,000,000,000 s or the largest 64-bit number | the host
/// waits for its own maximum | No unbounded wait
#[tokio::test]
async fn a_server_that_asks_for_years_is_asked_again_after_the_longest_pause() {
    for after in ["1000000000", "18446744073709551615"] {
        let test_env = TestEnv::new();
        let fault = Fault::status(429).header("retry-after", after).first_n(1);
        let (host, _remote) =
            host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
        let mut events = host.events();
        assert_responds(&host, "a").await;
        assert_eq!(retry_delays(&mut events), [Duration::from_millis(200)], "{after}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn an_error_with_the_id_of_the_call_is_its_result_whatever_the_status() {
    for status in [429, 502, 503] {
        let test_env = TestEnv::new();
        let fault = Fault::status(status).rpc_error(-32_000, "order 5 was stored").first_n(1);
        let (host, remote) =
            host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
        let result = host.call_tool("a.echo", json!({"message": ""})).await;
        let Err(CallError::Server { error, .. }) = result else { panic!("{status}: {result:?}") };
        assert_eq!(error.message, "order 5 was stored");
        let posted = remote.requests();
        let posted = posted.iter().filter(|request| request.rpc_method() == Some("tools/call"));
        assert_eq!(posted.count(), 1, "{status}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_words_of_a_busy_server_reach_the_caller_and_a_page_does_not() {
    for (body, expected) in [
        ("maintenance until 18:00", "busy (HTTP 503): maintenance until 18:00 (after 2 attempts)"),
        ("<html><h1>503</h1></html>", "busy (HTTP 503) (after 2 attempts)"),
    ] {
        let test_env = TestEnv::new();
        let fault = Fault::body(503, "text/plain", body).on_rpc_method("tools/call");
        let fixture = test_env.fixture("a").config_key("retry", json!({"max": 1}));
        let (host, _remote) = host_with_busy_server(fixture, &test_env, fault).await;
        let error = host.call_tool("a.echo", json!({"message": ""})).await.unwrap_err();
        assert!(error.to_string().ends_with(expected), "{error}");
        host.shutdown().await;
    }
}

/// Fault 98.
#[tokio::test]
async fn a_pause_that_cannot_be_read_or_is_over_counts_as_none() {
    for after in ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "soon", "1e9", ""] {
        let test_env = TestEnv::new();
        let fault = Fault::status(503).header("retry-after", after).first_n(1);
        let (host, _remote) =
            host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
        let mut events = host.events();
        assert_responds(&host, "a").await;
        let delays = retry_delays(&mut events);
        assert!(delays.len() == 1 && delays[0] < Duration::from_millis(20), "{after}: {delays:?}");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn what_may_have_run_behind_a_gateway_is_sent_again_only_if_it_may_run_twice() {
    // 504 is the timeout of the gateway; a timeout is never retried.
    for (status, tool, attempts) in
        [(502, "a.echo", 1), (502, "a.read", 2), (504, "a.echo", 1), (504, "a.read", 1)]
    {
        let test_env = TestEnv::new();
        let fault = Fault::status(status).only_nth(1);
        let (host, remote) =
            host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
        let arguments = match tool {
            "a.read" => json!({"path": "/dev/null"}),
            _ => json!({"message": ""}),
        };
        let result = host.call_tool(tool, arguments).await;
        assert_eq!(result.is_ok(), attempts == 2, "HTTP {status}, {tool}: {result:?}");
        let posted = remote.requests();
        let posted = posted.iter().filter(|request| request.rpc_method() == Some("tools/call"));
        let statuses: Vec<Option<u16>> = posted.map(|request| request.status).collect();
        assert_eq!(statuses, [Some(status), Some(200)][..attempts], "{tool}");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_refusal_is_given_and_not_asked_for_again() {
    let test_env = TestEnv::new();
    let (host, remote) = host_with_busy_server(
        fixture_with_retry(&test_env, 0.2),
        &test_env,
        Fault::status(500).only_nth(1),
    )
    .await;
    protocol_error(echo(&host, "a", "").await);
    let calls = remote.requests();
    let calls = calls.iter().filter(|request| request.rpc_method() == Some("tools/call")).count();
    assert_eq!(calls, 1);
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_connection_that_breaks_is_tried_again_for_what_may_run_twice_alone() {
    let test_env = TestEnv::new();
    let fault = Fault::reset_before_response().only_nth(1);
    let (host, _remote) =
        host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
    let mut events = host.events();
    let read = host.call_tool("a.read", json!({"path": "/dev/null"})).await.unwrap();
    assert!(!read.is_error());
    assert_eq!(retry_delays(&mut events).len(), 1);
    let test_env = TestEnv::new();
    let fault = Fault::reset_before_response().only_nth(1);
    let (host, _remote) =
        host_with_busy_server(fixture_with_retry(&test_env, 0.2), &test_env, fault).await;
    let (reason, may_have_run) = unavailable_error(echo(&host, "a", "").await);
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run, "{reason:?}");
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 0, "it was sent again");
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable_and_nothing_has_run() {
    let test_env = TestEnv::new();
    let remote = RemoteServer::for_fixture(fixture_with_retry(&test_env, 0.2)).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    remote.stop().await;
    match echo(&host, "a", "").await {
        Err(CallError::Unavailable { reason, may_have_run, attempts, .. }) => {
            assert!(matches!(reason, UnavailableReason::Unreachable { .. }), "{reason:?}");
            assert_eq!((may_have_run, attempts), (false, 4));
        }
        other => panic!("not unavailable: {other:?}"),
    }
    assert_responds(&host, "b").await;
    host.shutdown().await;
}
