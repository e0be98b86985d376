//! Failed starts: errors, events and cleanup.

use std::time::Duration;

use innkeeper_host::error::{StartFailureReason, StartPhase};
use innkeeper_host::{ErrorClass, ExitStatus, HostEvent, ServerState, StartError};
use innkeeper_testkit::{Fixture, wait_gone};
use serde_json::json;
use tokio::time::Instant;

use crate::setup::{LogCapture, TestEnv, builder, drain_events, error_chain};

/// Returns the failures of a start that must fail.
async fn start_failures(
    host: innkeeper_host::HostBuilder,
) -> Vec<innkeeper_host::error::ServerFailure> {
    match host.start().await {
        Err(StartError::Servers(failures)) => failures,
        other => panic!("{other:?}"),
    }
}

/// Proves: TR3.8
#[tokio::test]
async fn each_published_revision_is_used_and_a_server_of_another_one_is_stopped() {
    let test_env = TestEnv::new();
    let legacy = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    let servers = legacy.map(|name| test_env.fixture(name).with("--revision", name));
    let modern = test_env.fixture("2026-07-28").with("--era", "modern");
    let host = test_env.start(servers.into_iter().chain([modern])).await.unwrap();
    let catalog = host.catalog();
    assert_eq!(catalog.servers().count(), 5);
    for (name, server) in catalog.servers() {
        assert_eq!(server.protocol_version(), Some(name));
    }
    assert!(host.shutdown().await.is_clean());

    let unknown = test_env.fixture("unknown").with("--revision", "2049-01-01");
    let failures = start_failures(builder(test_env.config([unknown]))).await;
    let message = error_chain(&failures[0]).join(": ");
    for revision in ["2049-01-01", "2024-11-05", "2026-07-28"] {
        assert!(message.contains(revision), "{message}");
    }
    test_env.assert_gone().await;
    let journal = test_env.journal().for_server("unknown");
    assert_eq!((journal.pids().len(), journal.count("notifications/initialized")), (1, 0));
}

/// Proves: N14, FR2.6
#[tokio::test]
async fn one_server_that_does_not_answer_in_time_stops_all() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("one"),
        test_env.fixture("hangs").switch("--hang-init").config_key("initTimeout", 1),
        test_env.fixture("two"),
    ];
    let started_at = Instant::now();
    let error = test_env.start(servers).await.unwrap_err();
    let elapsed = started_at.elapsed();
    assert_eq!(error.class(), ErrorClass::ServerStartup);
    assert_eq!(
        error.to_string(),
        "server `hangs` failed during the handshake: not ready within 1 s"
    );
    assert!(elapsed >= Duration::from_secs(1) && elapsed < Duration::from_secs(2), "{elapsed:?}");
    test_env.assert_gone().await;
    let journal = test_env.journal();
    for name in ["one", "two"] {
        let entries = journal.for_server(name);
        assert_eq!(entries.events("exit")[0].message["code"], 0, "{entries:#?}");
        assert!(entries.events("signal").is_empty(), "{entries:#?}");
    }
}

/// Proves: FR7.5
#[tokio::test]
async fn a_result_of_the_wrong_type_during_the_start_is_a_protocol_error_of_its_method() {
    for (switch, method, pointer) in [
        ("--wrong-init", "initialize", "/protocolVersion"),
        ("--wrong-list", "tools/list", "/tools"),
    ] {
        let test_env = TestEnv::new();
        let server = test_env.fixture("one").switch(switch).config_key("initTimeout", 5);
        let failures = start_failures(builder(test_env.config([server]))).await;
        let StartFailureReason::Call(error) = &failures[0].reason else { panic!("{failures:?}") };
        assert_eq!(error.class(), ErrorClass::Protocol, "{error}");
        let message = error_chain(&**error).join(": ");
        assert!(message.contains(method) && message.contains(pointer), "{message}");
        test_env.assert_gone().await;
    }
}

/// Proves: N20
#[tokio::test]
async fn a_last_launch_without_time_does_not_hide_how_the_one_before_it_ended() {
    let test_env = TestEnv::new();
    let server = test_env
        .fixture("fx")
        .with("--fail-starts", 1)
        .with("--state", test_env.path("state").display())
        .with("--stderr", "the key is missing")
        .switch("--hang-init")
        .config_key("initTimeout", 2);
    let started_at = Instant::now();
    let failures = start_failures(builder(test_env.config([server]))).await;
    let elapsed = started_at.elapsed();
    // The delay of one second and both launches share the budget of two seconds.
    assert!(elapsed >= Duration::from_secs(2) && elapsed < Duration::from_secs(3), "{elapsed:?}");
    let [failure] = &failures[..] else { panic!("{failures:?}") };
    assert!(
        matches!(failure.reason, StartFailureReason::Exited(ExitStatus::Code(_))),
        "{failure:?}"
    );
    assert_eq!(failure.attempts, 2);
    assert!(failure.stderr.starts_with("the key is missing\n"), "{failure:?}");
}

/// Proves: FR2.7
#[tokio::test]
async fn a_failure_names_the_server_its_phase_and_its_last_stderr() {
    let test_env = TestEnv::new();
    let server =
        |name: &str| test_env.fixture(name).with("--stderr", format!("{name}: cannot go on"));
    let servers = [
        server("leaves").with("--exit-at-start", 7).config_key("initTimeout", 0.5),
        server("refuses").with("--init-error", -32603).config_key("initTimeout", 0.5),
        server("lists").switch("--wrong-list").config_key("initTimeout", 0.5),
    ];
    let error = test_env.start(servers).await.unwrap_err();
    let message = error.to_string();
    let lines: Vec<&str> = message.lines().collect();
    assert_eq!(lines.len(), 6, "{message}");
    assert_eq!(
        lines[0],
        "server `leaves` failed during the handshake: process ended with exit code 7"
    );
    assert_eq!(lines[1], "    | leaves: cannot go on");
    assert!(lines[2].starts_with("server `refuses` failed during the handshake: "), "{message}");
    assert!(lines[2].contains("initialization failed as asked"), "{message}");
    assert_eq!(lines[3], "    | refuses: cannot go on");
    assert!(
        lines[4].starts_with(
            "server `lists` could not list its tools: invalid response to `tools/list`: "
        ),
        "{message}"
    );
    assert_eq!(lines[5], "    | lists: cannot go on");
    test_env.assert_gone().await;
}

#[tokio::test]
async fn an_exit_during_the_start_is_reported_at_once_when_no_launch_can_follow() {
    let test_env = TestEnv::new();
    let server = test_env
        .fixture("one")
        .with("--exit-at-start", 7)
        .with("--stderr", "LICENCE_KEY is not set");
    let host = builder(test_env.config([server.config_key("initTimeout", 0.5)]));
    let started_at = Instant::now();
    let failures = start_failures(host).await;
    let elapsed = started_at.elapsed();
    assert!(elapsed < Duration::from_millis(250), "{elapsed:?}");
    assert_eq!(failures.len(), 1);
    assert_eq!(failures[0].attempts, 1);
    assert_eq!(failures[0].stderr, "LICENCE_KEY is not set");
    let StartFailureReason::Exited(exit_status) = &failures[0].reason else {
        panic!("{failures:?}")
    };
    assert_eq!(*exit_status, ExitStatus::Code(7));
}

/// Proves: FR2.6
#[tokio::test]
async fn all_servers_that_fail_within_a_second_are_reported_in_the_order_of_the_file() {
    let test_env = TestEnv::new();
    let servers = [
        test_env.fixture("slow").switch("--hang-init").config_key("initTimeout", 0.6),
        test_env.fixture("good"),
        test_env.fixture("quick").with("--exit-at-start", 1).config_key("initTimeout", 0.5),
        test_env.fixture("needs").config_key("dependencies", json!(["quick"])),
        test_env.fixture("late").switch("--hang-init").config_key("initTimeout", 5),
    ];
    let started_at = Instant::now();
    let failures = start_failures(builder(test_env.config(servers))).await;
    let elapsed = started_at.elapsed();
    let phases: Vec<_> = failures.iter().map(|failure| (&*failure.server, failure.phase)).collect();
    assert_eq!(
        phases,
        [
            ("slow", StartPhase::Handshake),
            ("quick", StartPhase::Handshake),
            ("needs", StartPhase::Dependencies),
        ]
    );
    assert!(elapsed < Duration::from_secs(3), "{elapsed:?}");
    test_env.assert_gone().await;
    assert_eq!(test_env.journal().for_server("good").events("exit")[0].message["code"], 0);
    assert!(test_env.journal().for_server("needs").entries.is_empty());
}

#[tokio::test]
async fn a_server_that_is_not_required_may_fail_and_the_others_run() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let optional =
        test_env.fixture("optional").with("--exit-at-start", 7).config_key("initTimeout", 0.5);
    let host =
        builder(test_env.config([test_env.fixture("one"), optional.config_key("required", false)]));
    let mut events = host.events();
    let host = host.start().await.unwrap();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap();
    let status = host.status();
    assert_eq!(status["one"].state, ServerState::Ready);
    assert_eq!(status["optional"].state, ServerState::Unavailable);
    assert_eq!(status["optional"].pid, None);
    let reason = status["optional"].reason.clone().unwrap();
    assert!(reason.contains("process ended with exit code 7"), "{reason}");
    let catalog = host.catalog();
    assert!(catalog.server("optional").is_none_or(|server| server.listing().is_none()));
    let error = host.call_tool("optional.echo", json!({"message": "hi"})).await.unwrap_err();
    assert!(error.to_string().contains("exit code 7"), "{error}");
    let unavailable = drain_events(&mut events).into_iter().find_map(|event| match event {
        HostEvent::Unavailable { server, reason } => Some((server, reason)),
        _ => None,
    });
    assert_eq!(unavailable.unwrap(), ("optional".into(), reason));
    assert_eq!(log.with_message("server start failed")[0]["security"], true);
    assert!(host.shutdown().await.is_clean());
    test_env.assert_gone().await;
}

/// A server that never completes its start, with child processes of every kind.
fn hanging_fixture(test_env: &TestEnv, name: &str) -> Fixture {
    test_env
        .fixture(name)
        .switch("--hang-init")
        .switch("--ignore-eof")
        .switch("--ignore-sigterm")
        .switch("--daemon")
}

#[tokio::test]
async fn a_start_that_is_given_up_leaves_no_process() {
    let test_env = TestEnv::new();
    let host =
        builder(test_env.config([hanging_fixture(&test_env, "one"), test_env.fixture("two")]));
    tokio::select! {
        result = host.start() => panic!("{result:?}"),
        _ = test_env.wait_for_journal(|journal| {
            journal.for_server("one").count("initialize") > 0 && journal.for_server("two").count("tools/list") > 0
        }) => {}
    }
    // The runtime makes no progress from here on.
    let remaining = wait_gone(test_env.process_tag(), Duration::from_secs(1));
    assert_eq!(remaining, Ok(()));
}

#[test]
fn a_host_dropped_on_a_plain_thread_leaves_no_process() {
    let test_env = TestEnv::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let stubborn = test_env.fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let host =
        runtime.block_on(test_env.start([stubborn.switch("--daemon"), test_env.fixture("two")]));
    let host = host.unwrap();
    let clone = host.clone();
    drop(host);
    assert_eq!(clone.status()["one"].state, ServerState::Ready);
    std::thread::spawn(move || drop(clone)).join().unwrap();
    assert_eq!(wait_gone(test_env.process_tag(), Duration::from_secs(1)), Ok(()));
    drop(runtime);
}

#[test]
fn a_runtime_dropped_with_servers_alive_leaves_no_process() {
    let test_env = TestEnv::new();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let stubborn = test_env.fixture("one").switch("--ignore-eof").switch("--ignore-sigterm");
    let host =
        runtime.block_on(test_env.start([stubborn.switch("--daemon"), test_env.fixture("two")]));
    let host = host.unwrap();
    drop(runtime);
    assert_eq!(wait_gone(test_env.process_tag(), Duration::from_secs(1)), Ok(()));
    drop(host);
}
