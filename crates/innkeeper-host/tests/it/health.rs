//! Health from use: what takes a server out, what is seen of it, and what brings it back.

use std::time::{Duration, SystemTime};

use innkeeper_host::error::Lost;
use innkeeper_host::shutdown::Stage;
use innkeeper_host::{CallError, Event, Host, RestartError, ServerState};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::setup::{Scene, builder, text, told, until_told};

fn said(word: &str) -> Value {
    json!({"message": word})
}

/// A call that is not answered within the test.
async fn unanswered(host: &Host, server: &str) {
    let tool = format!("{server}.sleep");
    let error = host.call_tool(&tool, json!({"ms": 60_000})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error}");
}

/// Kills the process of a server and waits until the host knows.
async fn kill(host: &Host, server: &str) -> u32 {
    let mut events = host.events();
    let pid = host.status()[server].pid.unwrap();
    kill_process(Pid::from_raw(pid.try_into().unwrap()).unwrap(), Signal::KILL).unwrap();
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    pid
}

/// Lets that much time pass for everything that waits for a time.
async fn pass(time: Duration) {
    tokio::time::pause();
    tokio::time::advance(time).await;
    tokio::time::resume();
}

/// Proves: FR6.2
#[tokio::test]
async fn only_a_success_moves_the_time_of_the_last_success() {
    const APART: Duration = Duration::from_millis(200);
    let scene = Scene::new();
    let one = scene.fx("one").key("timeout", 0.2).key("unavailableAfterTimeouts", 9);
    let host = scene.start([one]).await.unwrap();
    let last = || host.status()["one"].last_success;
    assert_eq!(last(), None);
    let before = SystemTime::now();
    host.call_tool("one.echo", said("hi")).await.unwrap();
    let first = last().unwrap();
    assert!(before <= first && first <= SystemTime::now());
    // It is reckoned from a clock that nobody sets, and so a little different each time.
    let moved = || last().unwrap().duration_since(first).unwrap_or_default() >= APART / 2;
    unanswered(&host, "one").await;
    assert!(!moved(), "by a time-out");
    assert!(host.call_tool("one.fail", json!({})).await.unwrap().is_error());
    assert!(!moved(), "by an error of the tool");
    host.call_tool("one.echo", json!({})).await.unwrap_err();
    assert!(!moved(), "by arguments that do not fit");
    host.call_tool("one.echo", said("again")).await.unwrap();
    assert!(moved());
    host.shutdown().await;
}

/// Proves: FR6.6, FR6.7, N27
#[tokio::test]
async fn a_call_without_an_answer_in_time_takes_its_server_out_and_no_other() {
    let scene = Scene::new();
    let servers = [scene.fx("one").key("timeout", 0.1), scene.fx("other")];
    let host = scene.start(servers).await.unwrap();
    let mut events = host.events();
    unanswered(&host, "one").await;
    let status = &host.status()["one"];
    assert_eq!(status.state, ServerState::Unavailable);
    assert_eq!(status.reason.as_deref(), Some("it did not answer a call in time"));
    assert!(status.pid.is_some(), "it may still be at work");
    assert!(host.catalog().server("one").is_none());
    assert!(host.catalog().tool_names().all(|name| name.starts_with("other.")));
    let error = host.call_tool("one.echo", said("hi")).await.unwrap_err();
    assert_eq!(error.server(), Some("one"));
    let CallError::Unavailable { reason, may_have_run, .. } = error else { panic!("{error}") };
    assert_eq!((reason, may_have_run), (Lost::Silent { calls: 1 }, false));
    assert_eq!(text(&host.call_tool("other.echo", said("hi")).await.unwrap()), "hi");
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    let report = host.shutdown().await;
    assert_ne!(report.servers[0].stage, Stage::AlreadyGone);
    scene.assert_gone().await;
}

/// Proves: FR6.3
#[tokio::test]
async fn only_time_outs_in_a_row_count_and_as_many_as_configured() {
    let scene = Scene::new();
    let one = scene.fx("one").key("timeout", 0.1).key("unavailableAfterTimeouts", 2);
    let host = scene.start([one]).await.unwrap();
    for answered in ["one.echo", "one.fail"] {
        unanswered(&host, "one").await;
        host.call_tool(answered, said("it is there")).await.unwrap();
    }
    unanswered(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Ready);
    unanswered(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    let reason = host.status()["one"].reason.clone().unwrap();
    assert_eq!(reason, "it did not answer 2 calls in a row in time");
    host.restart_server("one").await.unwrap();
    unanswered(&host, "one").await;
    assert_eq!(host.status()["one"].state, ServerState::Ready, "it begins anew");
    host.shutdown().await;
}

/// Proves: FR6.5
#[tokio::test]
async fn a_server_that_died_stays_so_until_it_is_asked_for() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("other")]).await.unwrap();
    let other = host.status()["other"].pid;
    let first = kill(&host, "one").await;
    let mut events = host.events();
    pass(Duration::from_secs(60)).await;
    // Time for whoever was woken to do what it was woken for.
    host.call_tool("other.sleep", json!({"ms": 200})).await.unwrap();
    let launched = |event: &Event| matches!(event, Event::Launching { .. });
    assert!(!told(&mut events).iter().any(launched));
    assert_eq!(scene.journal().of("one").pids(), [first]);
    assert_eq!(host.status()["one"].state, ServerState::Unavailable);
    host.restart_server("one").await.unwrap();
    let second = host.status()["one"].pid.unwrap();
    assert_ne!(first, second);
    assert_eq!(host.status()["one"].reason, None);
    assert_eq!(text(&host.call_tool("one.echo", said("back")).await.unwrap()), "back");
    assert!(host.catalog().server("one").is_some());
    assert_eq!(host.status()["other"].pid, other, "its neighbour went on");
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_running_server_is_stopped_in_order_before_it_is_started_again() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let first = host.status()["one"].pid.unwrap();
    let (again, at_once) = tokio::join!(host.restart_server("one"), host.restart_server("one"));
    again.unwrap();
    at_once.unwrap();
    let journal = scene.journal();
    let pids = journal.of("one").pids();
    assert_eq!(pids.len(), 3, "one restart after the other");
    assert_eq!(pids[0], first);
    assert_eq!(host.status()["one"].pid, Some(pids[2]));
    assert_eq!(journal.of("one").events("stdin_eof").len(), 2, "they left by themselves");
    assert!(host.shutdown().await.is_clean());
    assert!(matches!(host.restart_server("one").await, Err(RestartError::Shutdown)));
    scene.assert_gone().await;
}

/// Proves: FR6.1
#[tokio::test]
async fn a_server_is_starting_then_ready_then_unavailable_and_at_the_end_shut_down() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--start-delay", 300)]).await.unwrap();
    let state = || host.status()["one"].state;
    let mut seen = vec![state()];
    kill(&host, "one").await;
    seen.push(state());
    let mut events = host.events();
    let restart = async {
        until_told(&mut events, |event| matches!(event, Event::Launching { .. })).await;
        let error = host.call_tool("one.echo", said("hi")).await.unwrap_err();
        assert!(error.to_string().contains("still starting"), "{error}");
        state()
    };
    let (result, starting) = tokio::join!(host.restart_server("one"), restart);
    result.unwrap();
    seen.extend([starting, state()]);
    host.shutdown().await;
    seen.push(state());
    let words: Vec<_> = seen.iter().map(|state| state.as_str()).collect();
    assert_eq!(words, ["ready", "unavailable", "starting", "ready", "shutdown"]);
}

#[tokio::test]
async fn a_restart_that_fails_leaves_the_server_unavailable_with_the_reason() {
    let scene = Scene::new();
    let program = scene.path("program");
    std::fs::copy(innkeeper_testkit::fx_program(), &program).unwrap();
    let one = scene.fx("one").key("command", program.to_str().unwrap());
    let host = scene.start([one, scene.fx("other")]).await.unwrap();
    std::fs::remove_file(&program).unwrap();
    let error = host.restart_server("one").await.unwrap_err();
    assert!(matches!(&error, RestartError::Failed(failure) if &*failure.server == "one"));
    let status = &host.status()["one"];
    assert_eq!(status.state, ServerState::Unavailable);
    assert!(status.reason.as_ref().unwrap().starts_with("it did not start"), "{status:?}");
    host.call_tool("other.echo", said("hi")).await.unwrap();
    let error = host.restart_server("two").await.unwrap_err();
    assert_eq!(error.to_string(), "no server `two`");
    host.shutdown().await;
}

#[tokio::test]
async fn a_host_that_is_shut_down_during_a_restart_leaves_nothing_behind() {
    let scene = Scene::new();
    let slow = scene.fx("one").with("--start-delay", 400);
    let host = builder(scene.config([slow])).start().await.unwrap();
    let mut events = host.events();
    let shutdown = async {
        until_told(&mut events, |event| matches!(event, Event::Launching { .. })).await;
        host.shutdown().await
    };
    let (result, report) = tokio::join!(host.restart_server("one"), shutdown);
    assert!(matches!(result, Err(RestartError::Shutdown)), "{result:?}");
    assert_eq!(report.servers.len(), 1);
    assert_eq!(host.status()["one"].state, ServerState::Shutdown);
    scene.assert_gone().await;
}

/// Proves: FR6.8
#[tokio::test]
async fn nobody_is_asked_how_they_are() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let received = || scene.journal().entries.iter().filter(|entry| entry.event == "recv").count();
    host.call_tool("one.echo", said("before")).await.unwrap();
    let before = received();
    pass(Duration::from_secs(600)).await;
    // The second is sent when whoever was woken has had its turn.
    for word in ["after", "and again"] {
        host.call_tool("one.echo", said(word)).await.unwrap();
    }
    assert_eq!(received(), before + 2);
    host.shutdown().await;
}
