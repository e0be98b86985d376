//! Stopping: the stages, the grace, who is told, and what a stopped host gives back.

use std::time::Duration;

use innkeeper_host::shutdown::Stage;
use innkeeper_host::{CallError, Event, Exit, Isolation, ServerState, Supervisor};
use innkeeper_testkit::{Fixture, processes_with};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::setup::{Log, PATIENCE, Scene, builder, told};

/// A server that only SIGKILL ends.
fn stubborn(scene: &Scene, name: &str) -> Fixture {
    scene.fx(name).switch("--ignore-eof").switch("--ignore-sigterm").key("shutdownTimeout", 1)
}

/// Proves: FR2.8
#[tokio::test]
async fn a_server_whose_input_is_closed_exits_with_0_before_any_signal() {
    let scene = Scene::new();
    // It takes a moment, in which an impatient host would send a signal.
    let host = scene.start([scene.fx("one").with("--exit-delay", 300)]).await.unwrap();
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers[0].stage, Stage::OnEof);
    assert_eq!(report.servers[0].exit, Some(Exit::Code(0)));
    assert!(report.servers[0].took >= Duration::from_millis(300), "{report:?}");
    let journal = scene.journal();
    let last: Vec<_> =
        journal.entries.iter().rev().take(2).map(|entry| entry.event.as_str()).collect();
    assert_eq!(last, ["exit", "stdin_eof"]);
    assert_eq!(journal.events("exit")[0].message["code"], 0);
    assert!(journal.events("signal").is_empty());
    scene.assert_gone().await;
}

/// Proves: FR2.9, N19, FR2.10
#[tokio::test]
async fn a_server_that_ignores_everything_is_killed_when_its_grace_is_over() {
    let (scene, log) = (Scene::new(), Log::capture());
    let config = scene.config([stubborn(&scene, "one"), scene.fx("two")]);
    assert_eq!(config.servers["one"].shutdown_timeout, Duration::from_secs(1));
    assert_eq!(config.servers["two"].shutdown_timeout, Duration::from_secs(10));
    let host = builder(config).start().await.unwrap();
    let began = Instant::now();
    let report = host.shutdown().await;
    let took = began.elapsed();
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
    let [one, two] = report.servers.as_slice() else { panic!("{report:?}") };
    assert_eq!((one.stage, one.exit, one.leftovers), (Stage::OnKill, Some(Exit::Signal(9)), false));
    assert_eq!((two.stage, two.exit), (Stage::OnEof, Some(Exit::Code(0))));
    assert!(!report.is_clean());
    let line = &log.of("shutdown")[1];
    assert_eq!(line["server"], "one");
    assert_eq!(line["stage"], "on-kill");
    assert_eq!(line["exit"], "signal 9 (SIGKILL)");
    let journal = scene.journal().of("one");
    let ends: Vec<_> = journal.entries[journal.entries.len() - 2..].iter().collect();
    assert_eq!((ends[0].event.as_str(), ends[1].event.as_str()), ("stdin_eof", "signal"));
    assert!(ends[1].ts_ms - ends[0].ts_ms >= 400, "SIGTERM came too soon: {ends:?}");
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_only_ignores_the_end_of_its_input_leaves_on_sigterm() {
    let scene = Scene::new();
    let server = scene.fx("one").switch("--ignore-eof").key("shutdownTimeout", 1);
    let host = scene.start([server]).await.unwrap();
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::OnTerm);
    assert_eq!(report.servers[0].exit, Some(Exit::Signal(15)));
    assert!(report.took < Duration::from_secs(1), "{report:?}");
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_was_stopped_by_a_signal_is_woken_to_leave() {
    let scene = Scene::new();
    let server = scene.fx("one").switch("--stop-self").key("shutdownTimeout", 1);
    let host = scene.start([server]).await.unwrap();
    let call = host.call_tool("one.echo", json!({"message": "hi"}));
    tokio::select! {
        result = call => panic!("{result:?}"),
        _ = scene.journal_until(|journal| journal.count("tools/call") == 1) => {}
    }
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::OnTerm);
    assert!(!report.servers[0].leftovers);
    scene.assert_gone().await;
}

#[tokio::test]
async fn killed_servers_are_gone_at_once_and_the_report_says_how_they_ended() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").switch("--daemon"), scene.fx("two")]).await.unwrap();
    host.kill();
    scene.assert_gone().await;
    let report = host.shutdown().await;
    let exits: Vec<_> = report.servers.iter().map(|server| server.exit).collect();
    assert_eq!(exits, [Some(Exit::Signal(9)); 2]);
    assert!(!report.is_clean());
    assert!(scene.journal().events("stdin_eof").is_empty());
}

/// Proves: TR2.4
#[tokio::test]
async fn grandchildren_and_daemons_are_killed_with_their_server() {
    let scene = Scene::new();
    let server = stubborn(&scene, "one").switch("--grandchild-ignores-sigterm").switch("--daemon");
    let host = scene.start([server]).await.unwrap();
    let sleepers = |journal: &innkeeper_testkit::Journal| journal.events("sleeper").len() == 2;
    scene.journal_until(sleepers).await;
    assert_eq!(host.status()["one"].isolation, Some(Isolation::Tree));
    assert_eq!(processes_with(scene.nonce()).len(), 3);
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::OnKill);
    assert!(!report.servers[0].leftovers);
    // Not a moment later: the report says that nothing is left.
    assert_eq!(processes_with(scene.nonce()), []);
}

#[tokio::test]
async fn children_of_a_server_that_leaves_by_itself_are_not_left_behind() {
    let scene = Scene::new();
    let server = scene.fx("one").switch("--grandchild").switch("--daemon-holds-stdout");
    let host = scene.start([server]).await.unwrap();
    scene.journal_until(|journal| journal.events("sleeper").len() == 2).await;
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(processes_with(scene.nonce()), []);
}

/// Proves: TR11.3
#[tokio::test]
async fn without_a_shim_a_server_is_killed_with_its_process_group() {
    let scene = Scene::new();
    let server = stubborn(&scene, "one").switch("--grandchild-ignores-sigterm");
    let host = builder(scene.config([server])).supervisor(Supervisor::Group);
    let host = host.start().await.unwrap();
    scene.journal_until(|journal| journal.events("sleeper").len() == 1).await;
    assert_eq!(host.status()["one"].isolation, Some(Isolation::Group));
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::OnKill);
    assert!(!report.servers[0].leftovers);
    assert_eq!(processes_with(scene.nonce()), []);
}

#[tokio::test]
async fn every_call_of_shutdown_gives_the_same_report() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one"), scene.fx("two")]).await.unwrap();
    let (first, second) = tokio::join!(host.shutdown(), host.shutdown());
    let third = host.clone().shutdown().await;
    let told = |report: &innkeeper_host::ShutdownReport| format!("{report:?}");
    assert_eq!(first.servers.len(), 2);
    assert_eq!([told(&second), told(&third)], [told(&first), told(&first)]);
    assert_eq!(scene.journal().events("stdin_eof").len(), 2);
}

#[tokio::test]
async fn a_shutdown_that_is_given_up_is_finished_by_the_next_with_the_whole_report() {
    let scene = Scene::new();
    let servers = [scene.fx("quick"), scene.fx("slow").with("--exit-delay", 600)];
    let host = scene.start(servers).await.unwrap();
    let mut events = host.events();
    timeout(Duration::from_millis(300), host.shutdown()).await.unwrap_err();
    scene.journal_until(|journal| !journal.of("quick").events("exit").is_empty()).await;
    let report = host.shutdown().await;
    let stages: Vec<_> =
        report.servers.iter().map(|server| (&*server.server, server.stage)).collect();
    assert_eq!(stages, [("quick", Stage::OnEof), ("slow", Stage::OnEof)]);
    assert!(report.is_clean(), "{report:?}");
    let stopped = told(&mut events).into_iter();
    assert_eq!(stopped.filter(|event| matches!(event, Event::Stopped { .. })).count(), 2);
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_stopped_host_refuses_calls_and_says_that_its_servers_are_shut_down() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    host.shutdown().await;
    let error = host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { may_have_run: false, .. }), "{error:?}");
    let status = &host.status()["one"];
    assert_eq!((status.state, status.pid), (ServerState::Shutdown, None));
    assert_eq!(scene.journal().count("tools/call"), 0);
}

#[tokio::test]
async fn a_call_under_way_may_finish_before_its_server_is_stopped() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--slow", 300)]).await.unwrap();
    let call = host.call_tool("one.echo", json!({"message": "hi"}));
    let stop = async {
        scene.journal_until(|journal| journal.count("tools/call") == 1).await;
        host.shutdown().await
    };
    let (result, report) = tokio::join!(call, stop);
    result.unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_server_that_crashed_is_reported_as_gone_before_with_its_exit() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one").with("--crash-after", 1)]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    let gone = timeout(PATIENCE, events.recv());
    assert!(gone.await.is_ok());
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::AlreadyGone);
    assert_eq!(report.servers[0].exit, Some(Exit::Code(3)));
    assert!(!report.is_clean());
    scene.assert_gone().await;
}
