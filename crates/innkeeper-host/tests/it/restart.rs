//! Servers whose configuration asks for it come back by themselves: later each time, so often only.

use std::time::Duration;

use innkeeper_host::{CallError, Event, Host, ReloadOptions, ServerState};
use innkeeper_testkit::Fixture;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::sync::broadcast::Receiver;

use crate::setup::{Scene, told, until_told};

/// A server that is started again so many times.
fn reviving(scene: &Scene, max: u32) -> Fixture {
    scene.fx("one").key("restart", json!({"onFailure": {"max": max}}))
}

fn kill(host: &Host) -> u32 {
    let pid = host.status()["one"].pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    pid
}

/// Lets that much time pass for everything that waits for a time.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// The number of the restart that is announced, and the pause before it.
async fn announced(events: &mut Receiver<Event>) -> (u32, Duration) {
    let event = until_told(events, |event| matches!(event, Event::Restarting { .. })).await;
    let Event::Restarting { attempt, delay, .. } = event else { unreachable!() };
    (attempt, delay)
}

async fn ready(events: &mut Receiver<Event>) {
    until_told(events, |event| matches!(event, Event::Ready { .. })).await;
}

#[tokio::test]
async fn a_lost_server_comes_back_after_growing_pauses_and_not_more_often_than_allowed() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 2), scene.fx("other")]).await.unwrap();
    let (other, mut events) = (host.status()["other"].pid, host.events());
    for (number, seconds) in [(1, 1), (2, 2)] {
        let before = kill(&host);
        let (attempt, delay) = announced(&mut events).await;
        assert_eq!(attempt, number);
        let pause = Duration::from_secs(seconds);
        assert!(delay >= pause * 9 / 10 && delay <= pause * 11 / 10, "{delay:?}");
        assert_eq!(host.status()["one"].state, ServerState::Unavailable);
        pass(delay).await;
        ready(&mut events).await;
        assert_ne!(host.status()["one"].pid, Some(before));
        host.call_tool("one.echo", json!({"message": "back"})).await.unwrap();
    }
    kill(&host);
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    pass(Duration::from_secs(120)).await;
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    let again = |event: &Event| matches!(event, Event::Restarting { .. } | Event::Launching { .. });
    assert!(!told(&mut events).iter().any(again));
    assert_eq!(scene.journal().of("one").pids().len(), 3);
    assert_eq!(host.status()["other"].pid, other, "its neighbour went on");
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_minute_of_being_ready_lets_the_count_start_anew() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 1)]).await.unwrap();
    let mut events = host.events();
    for _ in 0..2 {
        kill(&host);
        let (attempt, delay) = announced(&mut events).await;
        assert_eq!(attempt, 1);
        pass(delay).await;
        ready(&mut events).await;
        pass(Duration::from_secs(60)).await;
    }
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_has_failed_too() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 1).switch("--close-stdout")]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    let (_, delay) = announced(&mut events).await;
    pass(delay).await;
    ready(&mut events).await;
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Proves: FR6.5
#[tokio::test]
async fn a_server_that_is_silent_or_stopped_has_not_failed() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 9).key("timeout", 0.1)]).await.unwrap();
    let mut events = host.events();
    let error = host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
    host.restart_server("one").await.unwrap();
    host.shutdown().await;
    assert!(!told(&mut events).iter().any(|event| matches!(event, Event::Restarting { .. })));
    assert_eq!(scene.journal().of("one").pids().len(), 2);
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_silent_server_that_then_ends_has_failed_and_comes_back() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 9).key("timeout", 0.1)]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.sleep", json!({"ms": 60_000})).await.unwrap_err();
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(reason.contains("did not answer"), "{reason}");
    kill(&host);
    let (attempt, delay) = announced(&mut events).await;
    let reason = host.status()["one"].reason.clone().unwrap();
    assert!(reason.contains("SIGKILL"), "{reason}");
    pass(delay).await;
    ready(&mut events).await;
    assert_eq!(attempt, 1);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn the_status_of_a_server_names_its_process_while_that_runs_and_no_longer() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let mut events = host.events();
    kill(&host);
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    let status = &host.status()["one"];
    assert_eq!((status.pid, status.isolation), (None, None));
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_restart_that_was_asked_for_takes_the_place_of_the_announced_one() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 9)]).await.unwrap();
    let mut events = host.events();
    kill(&host);
    let (_, delay) = announced(&mut events).await;
    host.restart_server("one").await.unwrap();
    let pid = host.status()["one"].pid;
    pass(delay).await;
    host.call_tool("one.sleep", json!({"ms": 200})).await.unwrap();
    assert_eq!(host.status()["one"].pid, pid);
    assert_eq!(scene.journal().of("one").pids().len(), 2);
    host.shutdown().await;
    scene.assert_gone().await;
}

#[tokio::test]
async fn starts_that_fail_count_and_a_shutdown_ends_the_waiting() {
    let scene = Scene::new();
    let program = scene.path("program");
    std::fs::copy(innkeeper_testkit::fx_program(), &program).unwrap();
    let one = reviving(&scene, 3).key("command", program.to_str().unwrap());
    let host = scene.start([one]).await.unwrap();
    let mut events = host.events();
    std::fs::remove_file(&program).unwrap();
    kill(&host);
    for number in [1, 2] {
        let (attempt, delay) = announced(&mut events).await;
        assert_eq!(attempt, number);
        pass(delay).await;
    }
    assert_eq!(announced(&mut events).await.0, 3);
    host.shutdown().await;
    pass(Duration::from_secs(60)).await;
    let again = |event: &Event| matches!(event, Event::Launching { .. });
    assert!(!told(&mut events).iter().any(again));
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_is_removed_meanwhile_does_not_come_back() {
    let scene = Scene::new();
    let host = scene.start([reviving(&scene, 9), scene.fx("other")]).await.unwrap();
    let mut events = host.events();
    kill(&host);
    let (_, delay) = announced(&mut events).await;
    let config = Some(scene.config([scene.fx("other")]));
    let report = host.reload_with(ReloadOptions { config, ..ReloadOptions::default() }).await;
    assert_eq!(report.unwrap().removed, ["one".into()]);
    pass(delay).await;
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    assert_eq!(scene.journal().of("one").pids().len(), 1);
    host.shutdown().await;
    scene.assert_gone().await;
}
