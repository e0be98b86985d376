//! Stopping: stages, grace periods and reports.

use std::time::Duration;

use innkeeper_host::shutdown::StopStage;
use innkeeper_host::{
    CallError, ExitStatus, HostEvent, ProcessContainment, ServerState, Supervisor,
};
use innkeeper_testkit::{Fixture, tagged_processes};
use serde_json::json;
use tokio::time::{Instant, timeout};

use crate::setup::{LogCapture, TEST_TIMEOUT, TestEnv, builder, drain_events};

/// A server that ends only on SIGKILL.
fn unstoppable_fixture(test_env: &TestEnv, name: &str) -> Fixture {
    test_env
        .fixture(name)
        .switch("--ignore-eof")
        .switch("--ignore-sigterm")
        .config_key("shutdownTimeout", 1)
}

/// Proves: FR2.8
#[tokio::test]
async fn a_server_whose_input_is_closed_exits_with_0_before_any_signal() {
    let test_env = TestEnv::new();
    // During this delay, a host without a grace period would send a signal.
    let host = test_env.start([test_env.fixture("one").with("--exit-delay", 300)]).await.unwrap();
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(report.servers[0].stage, StopStage::OnEof);
    assert_eq!(report.servers[0].exit, Some(ExitStatus::Code(0)));
    assert!(report.servers[0].took >= Duration::from_millis(300), "{report:?}");
    let journal = test_env.journal();
    let last: Vec<_> =
        journal.entries.iter().rev().take(2).map(|entry| entry.event.as_str()).collect();
    assert_eq!(last, ["exit", "stdin_eof"]);
    assert_eq!(journal.events("exit")[0].message["code"], 0);
    assert!(journal.events("signal").is_empty());
    test_env.assert_gone().await;
}

/// Attack: processes | a server ignores the end of its input and SIGTERM at a shutdown | the server
/// is killed when its time is over | No unbounded wait
/// Proves: FR2.9, N19, FR2.10
#[tokio::test]
async fn a_server_that_ignores_everything_is_killed_when_its_grace_is_over() {
    let (test_env, log) = (TestEnv::new(), LogCapture::capture());
    let config = test_env.config([unstoppable_fixture(&test_env, "one"), test_env.fixture("two")]);
    assert_eq!(config.servers["one"].lifecycle.shutdown_timeout, Duration::from_secs(1));
    assert_eq!(config.servers["two"].lifecycle.shutdown_timeout, Duration::from_secs(10));
    let host = builder(config).start().await.unwrap();
    let started_at = Instant::now();
    let report = host.shutdown().await;
    let elapsed = started_at.elapsed();
    assert!(elapsed >= Duration::from_secs(1) && elapsed < Duration::from_secs(2), "{elapsed:?}");
    let [one, two] = report.servers.as_slice() else { panic!("{report:?}") };
    assert_eq!(
        (one.stage, one.exit, one.leftovers),
        (StopStage::OnKill, Some(ExitStatus::Signal(9)), false)
    );
    assert_eq!((two.stage, two.exit), (StopStage::OnEof, Some(ExitStatus::Code(0))));
    assert!(!report.is_clean());
    let line = &log.with_message("shutdown")[1];
    assert_eq!(line["server"], "one");
    assert_eq!(line["stage"], "on-kill");
    assert_eq!(line["exit"], "signal 9 (SIGKILL)");
    let journal = test_env.journal().for_server("one");
    let last_entries: Vec<_> = journal.entries[journal.entries.len() - 2..].iter().collect();
    assert_eq!(
        (last_entries[0].event.as_str(), last_entries[1].event.as_str()),
        ("stdin_eof", "signal")
    );
    assert!(
        last_entries[1].ts_ms - last_entries[0].ts_ms >= 400,
        "SIGTERM came too soon: {last_entries:?}"
    );
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_only_ignores_the_end_of_its_input_leaves_on_sigterm() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").switch("--ignore-eof").config_key("shutdownTimeout", 1);
    let host = test_env.start([server]).await.unwrap();
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnTerm);
    assert_eq!(report.servers[0].exit, Some(ExitStatus::Signal(15)));
    assert!(report.took < Duration::from_secs(1), "{report:?}");
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_was_stopped_by_a_signal_is_continued_before_it_is_terminated() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").switch("--stop-self").config_key("shutdownTimeout", 1);
    let host = test_env.start([server]).await.unwrap();
    let call = host.call_tool("one.echo", json!({"message": "hi"}));
    tokio::select! {
        result = call => panic!("{result:?}"),
        _ = test_env.wait_for_journal(|journal| journal.count("tools/call") == 1) => {}
    }
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnTerm);
    assert!(!report.servers[0].leftovers);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn killed_servers_are_gone_at_once_and_the_report_says_how_they_ended() {
    let test_env = TestEnv::new();
    let host = test_env
        .start([test_env.fixture("one").switch("--daemon"), test_env.fixture("two")])
        .await
        .unwrap();
    host.kill();
    test_env.assert_gone().await;
    let report = host.shutdown().await;
    let exits: Vec<_> = report.servers.iter().map(|server| server.exit).collect();
    assert_eq!(exits, [Some(ExitStatus::Signal(9)); 2]);
    assert!(!report.is_clean());
    assert!(test_env.journal().events("stdin_eof").is_empty());
}

/// Attack: processes | an unstoppable server has a daemon and a grandchild that ignores SIGTERM |
/// no process remains after the shutdown | No orphan
/// Proves: TR2.4
#[tokio::test]
async fn grandchildren_and_daemons_are_killed_with_their_server() {
    let test_env = TestEnv::new();
    let server = unstoppable_fixture(&test_env, "one")
        .switch("--grandchild-ignores-sigterm")
        .switch("--daemon");
    let host = test_env.start([server]).await.unwrap();
    let sleepers = |journal: &innkeeper_testkit::Journal| journal.events("sleeper").len() == 2;
    test_env.wait_for_journal(sleepers).await;
    assert_eq!(host.status()["one"].isolation, Some(ProcessContainment::Tree));
    assert_eq!(tagged_processes(test_env.process_tag()).len(), 3);
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnKill);
    assert!(!report.servers[0].leftovers);
    // The report excludes leftovers, so no process may remain now.
    assert_eq!(tagged_processes(test_env.process_tag()), []);
}

#[tokio::test]
async fn children_of_a_server_that_leaves_by_itself_are_not_left_behind() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("one").switch("--grandchild").switch("--daemon-holds-stdout");
    let host = test_env.start([server]).await.unwrap();
    test_env.wait_for_journal(|journal| journal.events("sleeper").len() == 2).await;
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    assert_eq!(tagged_processes(test_env.process_tag()), []);
}

/// Proves: TR11.3
#[tokio::test]
async fn without_a_shim_a_server_is_killed_with_its_process_group() {
    let test_env = TestEnv::new();
    let server = unstoppable_fixture(&test_env, "one").switch("--grandchild-ignores-sigterm");
    let host = builder(test_env.config([server])).supervisor(Supervisor::Group);
    let host = host.start().await.unwrap();
    test_env.wait_for_journal(|journal| journal.events("sleeper").len() == 1).await;
    assert_eq!(host.status()["one"].isolation, Some(ProcessContainment::Group));
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnKill);
    assert!(!report.servers[0].leftovers);
    assert_eq!(tagged_processes(test_env.process_tag()), []);
}

#[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
#[tokio::test]
async fn a_host_without_a_set_supervisor_supervises_the_trees_of_its_servers() {
    let test_env = TestEnv::new();
    let server = unstoppable_fixture(&test_env, "one").switch("--grandchild-ignores-sigterm");
    let host = innkeeper_host::Host::builder(test_env.config([server])).start().await.unwrap();
    test_env.wait_for_journal(|journal| journal.events("sleeper").len() == 1).await;
    assert_eq!(host.status()["one"].isolation, Some(ProcessContainment::Tree));
    host.shutdown().await;
    assert_eq!(tagged_processes(test_env.process_tag()), []);
}

#[tokio::test]
async fn every_call_of_shutdown_gives_the_same_report() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one"), test_env.fixture("two")]).await.unwrap();
    let (first, second) = tokio::join!(host.shutdown(), host.shutdown());
    let third = host.clone().shutdown().await;
    let debug_text = |report: &innkeeper_host::ShutdownReport| format!("{report:?}");
    assert_eq!(first.servers.len(), 2);
    assert_eq!([debug_text(&second), debug_text(&third)], [debug_text(&first), debug_text(&first)]);
    assert_eq!(test_env.journal().events("stdin_eof").len(), 2);
}

#[tokio::test]
async fn a_shutdown_that_is_given_up_is_finished_by_the_next_with_the_whole_report() {
    let test_env = TestEnv::new();
    let servers = [test_env.fixture("quick"), test_env.fixture("slow").with("--exit-delay", 600)];
    let host = test_env.start(servers).await.unwrap();
    let mut events = host.events();
    timeout(Duration::from_millis(300), host.shutdown()).await.unwrap_err();
    test_env
        .wait_for_journal(|journal| !journal.for_server("quick").events("exit").is_empty())
        .await;
    let report = host.shutdown().await;
    let stages: Vec<_> =
        report.servers.iter().map(|server| (&*server.server, server.stage)).collect();
    assert_eq!(stages, [("quick", StopStage::OnEof), ("slow", StopStage::OnEof)]);
    assert!(report.is_clean(), "{report:?}");
    let stopped = drain_events(&mut events).into_iter();
    assert_eq!(stopped.filter(|event| matches!(event, HostEvent::Stopped { .. })).count(), 2);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_later_shutdown_with_a_shorter_limit_kills_a_server_before_its_own_timeout() {
    let test_env = TestEnv::new();
    let server = unstoppable_fixture(&test_env, "one").config_key("shutdownTimeout", 60);
    let host = test_env.start([server]).await.unwrap();
    let shorter = async {
        test_env.wait_for_journal(|journal| !journal.events("stdin_eof").is_empty()).await;
        let started_at = Instant::now();
        (host.shutdown_within(Duration::ZERO).await, started_at.elapsed())
    };
    let (_, (report, elapsed)) = tokio::join!(host.shutdown(), shorter);
    assert!(elapsed < Duration::from_secs(4), "{elapsed:?}");
    let server = &report.servers[0];
    assert_eq!((server.stage, server.exit), (StopStage::OnKill, Some(ExitStatus::Signal(9))));
    assert!(!server.leftovers);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_stopped_host_refuses_calls_and_says_that_its_servers_are_shut_down() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    host.shutdown().await;
    let error = host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    assert!(matches!(error, CallError::Unavailable { may_have_run: false, .. }), "{error:?}");
    let status = &host.status()["one"];
    assert_eq!((status.state, status.pid), (ServerState::Shutdown, None));
    assert_eq!(test_env.journal().count("tools/call"), 0);
}

#[tokio::test]
async fn a_call_under_way_may_finish_before_its_server_is_stopped() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--slow", 300)]).await.unwrap();
    let call = host.call_tool("one.echo", json!({"message": "hi"}));
    let stop = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        host.shutdown().await
    };
    let (result, report) = tokio::join!(call, stop);
    result.unwrap();
    assert!(report.is_clean(), "{report:?}");
}

#[tokio::test]
async fn a_server_that_crashed_is_reported_as_gone_before_with_its_exit() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").with("--crash-after", 1)]).await.unwrap();
    let mut events = host.events();
    host.call_tool("one.echo", json!({"message": "hi"})).await.unwrap_err();
    let closed = timeout(TEST_TIMEOUT, events.recv());
    assert!(closed.await.is_ok());
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::AlreadyGone);
    assert_eq!(report.servers[0].exit, Some(ExitStatus::Code(3)));
    assert!(!report.is_clean());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_works_on_a_cancelled_call_is_terminated_soon_after_the_end_of_its_input() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one").switch("--ignore-eof")]).await.unwrap();
    let call = host.call_tool("one.sleep", json!({"ms": 30_000}));
    tokio::select! {
        result = call => panic!("{result:?}"),
        _ = test_env.wait_for_journal(|journal| journal.count("tools/call") == 1) => {}
    }
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnTerm);
    let took = report.took;
    assert!(took >= Duration::from_millis(500) && took < Duration::from_secs(2), "{took:?}");
    test_env.assert_gone().await;
}
