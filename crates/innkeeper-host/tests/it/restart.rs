//! Automatic restarts: delays and the restart limit.

use std::time::Duration;

use innkeeper_host::{CallError, Host, HostEvent, ReloadOptions, ServerState};
use innkeeper_testkit::Fixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::setup::{TestEnv, drain_events, wait_for_event};

/// A server with at most `max` automatic restarts.
fn restarting_fixture(test_env: &TestEnv, max: u32) -> Fixture {
    test_env.fixture("one").config_key("restart", json!({"onFailure": {"max": max}}))
}

fn kill_server(host: &Host) -> u32 {
    let pid = host.status()["one"].pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    pid
}

/// Advances the clock for all timers.
async fn advance_time(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Returns the number of the announced restart and the delay before it.
async fn wait_restarting(events: &mut Receiver<HostEvent>) -> (u32, Duration) {
    let event = wait_for_event(events, |event| matches!(event, HostEvent::Restarting { .. })).await;
    let HostEvent::Restarting { attempt, delay, .. } = event else { unreachable!() };
    (attempt, delay)
}

async fn wait_ready(events: &mut Receiver<HostEvent>) {
    wait_for_event(events, |event| matches!(event, HostEvent::Ready { .. })).await;
}

#[tokio::test]
async fn a_lost_server_comes_back_after_growing_pauses_and_not_more_often_than_allowed() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([restarting_fixture(&test_env, 2), test_env.fixture("other")])
        .await
        .unwrap();
    let (other, mut events) = (host.status()["other"].pid, host.events());
    for (number, seconds) in [(1, 1), (2, 2)] {
        let before = kill_server(&host);
        let (attempt, delay) = wait_restarting(&mut events).await;
        assert_eq!(attempt, number);
        let wait_time = Duration::from_secs(seconds);
        assert!(delay >= wait_time * 9 / 10 && delay <= wait_time * 11 / 10, "{delay:?}");
        assert_eq!(host.status()["one"].state, ServerState::Unavailable);
        advance_time(delay).await;
        wait_ready(&mut events).await;
        assert_ne!(host.status()["one"].pid, Some(before));
        host.call_tool("one.echo", json!({"message": "back"})).await.unwrap();
    }
    kill_server(&host);
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    advance_time(Duration::from_secs(120)).await;
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    let is_restart = |event: &HostEvent| {
        matches!(event, HostEvent::Restarting { .. } | HostEvent::Launching { .. })
    };
    assert!(!drain_events(&mut events).iter().any(is_restart));
    assert_eq!(test_env.journal().for_server("one").pids().len(), 3);
    assert_eq!(host.status()["other"].pid, other, "its neighbour went on");
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_minute_of_being_ready_lets_the_count_start_anew() {
    let test_env = TestEnv::new();
    let host = test_env.start([restarting_fixture(&test_env, 1)]).await.unwrap();
    let mut events = host.events();
    for _ in 0..2 {
        kill_server(&host);
        let (attempt, delay) = wait_restarting(&mut events).await;
        assert_eq!(attempt, 1);
        advance_time(delay).await;
        wait_ready(&mut events).await;
        advance_time(Duration::from_secs(60)).await;
    }
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_has_failed_too() {
    let test_env = TestEnv::new();
    let host =
        test_env.start([restarting_fixture(&test_env, 1).switch("--close-stdout")]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    let (_, delay) = wait_restarting(&mut events).await;
    advance_time(delay).await;
    wait_ready(&mut events).await;
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Proves: FR6.5
#[tokio::test]
async fn a_server_that_is_silent_or_stopped_has_not_failed() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([restarting_fixture(&test_env, 9).config_key("timeout", 0.1)])
        .await
        .unwrap();
    let mut events = host.events();
    let error = host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    host.restart_server("one").await.unwrap();
    host.shutdown().await;
    assert!(
        !drain_events(&mut events)
            .iter()
            .any(|event| matches!(event, HostEvent::Restarting { .. }))
    );
    assert_eq!(test_env.journal().for_server("one").pids().len(), 2);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_silent_server_that_then_ends_has_failed_and_comes_back() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([restarting_fixture(&test_env, 9).config_key("timeout", 0.1)])
        .await
        .unwrap();
    let mut events = host.events();
    host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(reason.contains("timed out"), "{reason}");
    kill_server(&host);
    let (attempt, delay) = wait_restarting(&mut events).await;
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(reason.contains("SIGKILL"), "{reason}");
    advance_time(delay).await;
    wait_ready(&mut events).await;
    assert_eq!(attempt, 1);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn the_status_of_a_server_names_its_process_while_that_runs_and_no_longer() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let mut events = host.events();
    kill_server(&host);
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    let status = &host.status()["one"];
    assert_eq!((status.pid, status.isolation), (None, None));
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_restart_that_was_asked_for_takes_the_place_of_the_announced_one() {
    let test_env = TestEnv::new();
    let host = test_env.start([restarting_fixture(&test_env, 9)]).await.unwrap();
    let mut events = host.events();
    kill_server(&host);
    let (_, delay) = wait_restarting(&mut events).await;
    host.restart_server("one").await.unwrap();
    let pid = host.status()["one"].pid;
    advance_time(delay).await;
    host.call_tool("one.sleep", json!({"ms": 200})).await.unwrap();
    assert_eq!(host.status()["one"].pid, pid);
    assert_eq!(test_env.journal().for_server("one").pids().len(), 2);
    host.shutdown().await;
    test_env.assert_gone().await;
}

#[tokio::test]
async fn starts_that_fail_count_and_a_shutdown_ends_the_waiting() {
    let test_env = TestEnv::new();
    let program = test_env.path("program");
    std::fs::copy(innkeeper_testkit::fixture_program(), &program).unwrap();
    let fixture = restarting_fixture(&test_env, 3).config_key("command", program.to_str().unwrap());
    let host = test_env.start([fixture]).await.unwrap();
    let mut events = host.events();
    std::fs::remove_file(&program).unwrap();
    kill_server(&host);
    for number in [1, 2] {
        let (attempt, delay) = wait_restarting(&mut events).await;
        assert_eq!(attempt, number);
        advance_time(delay).await;
    }
    assert_eq!(wait_restarting(&mut events).await.0, 3);
    host.shutdown().await;
    advance_time(Duration::from_secs(60)).await;
    let is_launching = |event: &HostEvent| matches!(event, HostEvent::Launching { .. });
    assert!(!drain_events(&mut events).iter().any(is_launching));
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_is_removed_meanwhile_does_not_come_back() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([restarting_fixture(&test_env, 9), test_env.fixture("other")])
        .await
        .unwrap();
    let mut events = host.events();
    kill_server(&host);
    let (_, delay) = wait_restarting(&mut events).await;
    let config = Some(test_env.config([test_env.fixture("other")]));
    let report = host.reload_with(ReloadOptions { config, ..ReloadOptions::default() }).await;
    assert_eq!(report.unwrap().removed, ["one".into()]);
    advance_time(delay).await;
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    assert_eq!(test_env.journal().for_server("one").pids().len(), 1);
    host.shutdown().await;
    test_env.assert_gone().await;
}
