//! Failing to start: what is said of it, who else is told of, and that nobody stays behind.

use std::time::Duration;

use innkeeper_host::error::{Phase, StartReason};
use innkeeper_host::{Event, Exit, ServerState, StartError};
use innkeeper_testkit::{Fixture, wait_gone};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{Log, Scene, builder, told};

/// The failures of a start that must fail.
async fn failures(host: innkeeper_host::HostBuilder) -> Vec<innkeeper_host::error::ServerFailure> {
    match host.start().await {
        Err(StartError::Servers(failures)) => failures,
        other => panic!("{other:?}"),
    }
}

/// Proves: N14, FR2.6
#[tokio::test]
async fn one_server_that_does_not_answer_in_time_stops_all() {
    let scene = Scene::new();
    let servers = [
        scene.fx("one"),
        scene.fx("hangs").switch("--hang-init").key("initTimeout", 1),
        scene.fx("two"),
    ];
    let began = Instant::now();
    let error = scene.start(servers).await.unwrap_err();
    let took = began.elapsed();
    assert_eq!(
        error.to_string(),
        "server `hangs` failed during the handshake: not ready within 1 s"
    );
    assert!(took >= Duration::from_secs(1) && took < Duration::from_secs(2), "{took:?}");
    scene.assert_gone().await;
    let journal = scene.journal();
    for name in ["one", "two"] {
        let mine = journal.of(name);
        assert_eq!(mine.events("exit")[0].message["code"], 0, "{mine:#?}");
        assert!(mine.events("signal").is_empty(), "{mine:#?}");
    }
}

#[tokio::test]
async fn a_last_launch_without_time_does_not_hide_how_the_one_before_it_ended() {
    let scene = Scene::new();
    let server = scene
        .fx("fx")
        .with("--fail-starts", 1)
        .with("--state", scene.path("state").display())
        .with("--stderr", "the key is missing")
        .switch("--hang-init")
        .key("initTimeout", 2);
    let failures = failures(builder(scene.config([server]))).await;
    let [failure] = &failures[..] else { panic!("{failures:?}") };
    assert!(matches!(failure.reason, StartReason::Exited(Exit::Code(_))), "{failure:?}");
    assert_eq!(failure.attempts, 2);
    assert!(failure.stderr.starts_with("the key is missing\n"), "{failure:?}");
}

/// Proves: FR2.7
#[tokio::test]
async fn a_failure_names_the_server_how_far_it_came_and_its_last_words() {
    let scene = Scene::new();
    let server = |name: &str| scene.fx(name).with("--stderr", format!("{name}: cannot go on"));
    let servers = [
        server("leaves").with("--exit-at-start", 7).key("initTimeout", 0.5),
        server("refuses").with("--init-error", -32603).key("initTimeout", 0.5),
        server("lists").switch("--wrong-list").key("initTimeout", 0.5),
    ];
    let error = scene.start(servers).await.unwrap_err();
    let message = error.to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 6, "{message}");
    assert_eq!(
        lines[0],
        "server `leaves` failed during the handshake: its process ended with exit code 7"
    );
    assert_eq!(lines[1], "    | leaves: cannot go on");
    assert!(lines[2].starts_with("server `refuses` failed during the handshake: "), "{message}");
    assert!(lines[2].contains("initialization failed as asked"), "{message}");
    assert_eq!(lines[3], "    | refuses: cannot go on");
    assert!(
        lines[4].starts_with("server `lists` failed while its tools were listed: "),
        "{message}"
    );
    assert_eq!(lines[5], "    | lists: cannot go on");
    scene.assert_gone().await;
}

#[tokio::test]
async fn an_exit_during_the_start_is_told_at_once_when_no_launch_can_follow() {
    let scene = Scene::new();
    let server = scene.fx("one").with("--exit-at-start", 7).with("--stderr", "no licence");
    let host = builder(scene.config([server.key("initTimeout", 0.5)]));
    let began = Instant::now();
    let failures = failures(host).await;
    let took = began.elapsed();
    assert!(took < Duration::from_millis(250), "{took:?}");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].attempts, 1);
    assert_eq!(failures[0].stderr, "no licence");
    let StartReason::Exited(exit) = &failures[0].reason else { panic!("{failures:?}") };
    assert_eq!(*exit, Exit::Code(7));
}

#[tokio::test]
async fn all_servers_that_fail_within_a_second_are_told_of_in_the_order_of_the_file() {
    let scene = Scene::new();
    let servers = [
        scene.fx("slow").switch("--hang-init").key("initTimeout", 0.6),
        scene.fx("good"),
        scene.fx("quick").with("--exit-at-start", 1).key("initTimeout", 0.5),
        scene.fx("needs").key("dependencies", json!(["quick"])),
        scene.fx("late").switch("--hang-init").key("initTimeout", 5),
    ];
    let began = Instant::now();
    let failures = failures(builder(scene.config(servers))).await;
    let took = began.elapsed();
    let seen: Vec<_> = failures.iter().map(|failure| (&*failure.server, failure.phase)).collect();
    assert_eq!(
        seen,
        [("slow", Phase::Handshake), ("quick", Phase::Handshake), ("needs", Phase::Dependencies),]
    );
    assert!(took < Duration::from_secs(3), "{took:?}");
    scene.assert_gone().await;
    assert!(scene.journal().of("needs").entries.is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_required_may_fail_and_the_others_run() {
    let (scene, log) = (Scene::new(), Log::capture());
    let optional = scene.fx("optional").with("--exit-at-start", 7).key("initTimeout", 0.5);
    let host = builder(scene.config([scene.fx("one"), optional.key("required", false)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    let status = host.status();
    assert_eq!(status["one"].state, ServerState::Ready);
    assert_eq!(status["optional"].state, ServerState::Unavailable);
    assert_eq!(status["optional"].pid, None);
    let reason = status["optional"].reason.clone().unwrap();
    assert!(reason.contains("its process ended with exit code 7"), "{reason}");
    let catalog = host.catalog();
    assert!(catalog.server("optional").is_none_or(|server| server.offer().is_none()));
    let refused = host.call_tool("optional.echo", json!({"message": "hi"})).await.unwrap_err();
    assert!(refused.to_string().contains("exit code 7"), "{refused}");
    let lost = told(&mut events).into_iter().find_map(|event| match event {
        Event::Unavailable { server, reason } => Some((server, reason)),
        _ => None,
    });
    assert_eq!(lost.unwrap(), ("optional".into(), reason));
    assert_eq!(log.of("start failed")[0]["security"], true);
    assert!(host.shutdown().await.is_clean());
    scene.assert_gone().await;
}

/// A server whose start takes longer than any test, with children of every kind.
fn endless(scene: &Scene, name: &str) -> Fixture {
    scene
        .fx(name)
        .switch("--hang-init")
        .switch("--ignore-eof")
        .switch("--ignore-sigterm")
        .switch("--daemon")
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_process() {
    let scene = Scene::new();
    let host = builder(scene.config([endless(&scene, "one"), scene.fx("two")]));
    tokio::select! {
        result = host.start() => panic!("{result:?}"),
        _ = scene.journal_until(|journal| {
            journal.of("one").count("initialize") > 0 && journal.of("two").count("tools/list") > 0
        }) => {}
    }
    // Nothing drives the runtime from here on.
    let left = wait_gone(scene.nonce(), Duration::from_secs(1));
    assert_eq!(left, Ok(()));
}

#[test]
fn a_host_dropped_on_a_plain_thread_leaves_no_process() {
    let scene = Scene::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stubborn = scene.fx("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let host = runtime.block_on(scene.start([stubborn.switch("--daemon"), scene.fx("two")]));
    let host = host.unwrap();
    let clone = host.clone();
    drop(host);
    assert_eq!(clone.status()["one"].state, ServerState::Ready);
    std::thread::spawn(move || drop(clone)).join().unwrap();
    assert_eq!(wait_gone(scene.nonce(), Duration::from_secs(1)), Ok(()));
    drop(runtime);
}

#[test]
fn a_runtime_dropped_with_servers_alive_leaves_no_process() {
    let scene = Scene::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let stubborn = scene.fx("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let host = runtime.block_on(scene.start([stubborn.switch("--daemon"), scene.fx("two")]));
    let host = host.unwrap();
    drop(runtime);
    assert_eq!(wait_gone(scene.nonce(), Duration::from_secs(1)), Ok(()));
    drop(host);
}
