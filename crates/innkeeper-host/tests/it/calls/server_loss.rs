//! Servers that exit, crash or close their input during calls.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::shutdown::StopStage;
use innkeeper_host::{CallError, CallOptions, ErrorClass, Host, HostEvent, ServerState};
use innkeeper_testkit::{Fixture, Journal, ProcessTag, wait_gone_async};
use serde_json::json;

use super::{error_class, unavailable_error};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text, wait_for_event};
use crate::shell_server::ShellServer;

/// Maximum time until callers learn that their server has exited: much shorter than the call
/// timeout of 30 s, and long enough for a loaded machine (usually a few milliseconds).
const PROMPT_LIMIT: Duration = Duration::from_secs(2);

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Ends the server with one call while another call waits. Returns both errors, and the time
/// between the event that `ended` finds in the journal and the failure of the waiting call.
async fn lose_server(
    test_env: &TestEnv,
    host: &Host,
    ended: impl Fn(&Journal) -> Option<u64>,
) -> ([CallError; 2], Duration) {
    let waiting = async {
        let error = host.call_tool("lost.sleep", json!({"ms": 60_000})).await.unwrap_err();
        (error, now_ms())
    };
    let ending = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        host.call_tool("lost.echo", json!({"message": ""})).await.unwrap_err()
    };
    let ((first, failed_at), second) = tokio::join!(waiting, ending);
    let ended_at = ended(&test_env.journal()).expect("the journal has the moment");
    ([first, second], Duration::from_millis(failed_at.saturating_sub(ended_at)))
}

/// Loses a server during a call and checks that its callers learn of the loss in time and no other
/// server is affected.
async fn assert_prompt_loss(
    server: impl Fn(&TestEnv) -> Fixture,
    ended: impl Fn(&Journal) -> Option<u64>,
    expected: impl Fn(&UnavailableReason) -> bool,
) {
    let test_env = TestEnv::new();
    let host = test_env.start([server(&test_env), test_env.fixture("other")]).await.unwrap();
    let mut events = host.events();
    let (errors, after) = lose_server(&test_env, &host, &ended).await;
    for error in errors {
        assert_eq!(error.server(), Some("lost"));
        let (reason, may_have_run) = unavailable_error::<()>(Err(error));
        assert!(expected(&reason), "{reason:?}");
        assert!(may_have_run, "it was sent");
    }
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    assert_eq!(host.status()["lost"].state, ServerState::Unavailable);
    assert!(host.catalog().server("lost").is_none());
    let (reason, may_have_run) =
        unavailable_error(host.call_tool("lost.echo", json!({"message": ""})).await);
    assert!(expected(&reason) && !may_have_run, "{reason:?}");
    let other = host.call_tool("other.echo", json!({"message": "still here"})).await.unwrap();
    assert_eq!(result_text(&other), "still here");
    let pid = test_env.journal().for_server("lost").pids()[0];
    wait_until_killed(&test_env, pid).await;
    host.shutdown().await;
    assert!(after <= PROMPT_LIMIT, "callers learnt of it after {after:?}");
}

async fn wait_until_killed(test_env: &TestEnv, pid: u32) {
    let server_gone = async {
        loop {
            match wait_gone_async(test_env.process_tag(), Duration::from_millis(20)).await {
                Err(remaining) if remaining.iter().any(|process| process.pid == pid) => {}
                _ => return,
            }
        }
    };
    tokio::time::timeout(TEST_TIMEOUT, server_gone)
        .await
        .expect("a lost server's process is ended");
}

/// Proves: FR6.4
#[tokio::test]
async fn a_crash_fails_all_waiting_calls_at_once_with_the_exit_code() {
    let exit_time =
        |journal: &Journal| Some(journal.for_server("lost").events("exit").first()?.ts_ms);
    assert_prompt_loss(
        |test_env| test_env.fixture("lost").with("--crash-after", 2),
        exit_time,
        |reason| reason.to_string() == "process ended with exit code 3",
    )
    .await;
}

#[tokio::test]
async fn a_crash_by_a_signal_is_reported_with_the_signal() {
    let exit_time =
        |journal: &Journal| Some(journal.for_server("lost").events("exit").first()?.ts_ms);
    assert_prompt_loss(
        |test_env| test_env.fixture("lost").switch("--crash-signal").with("--crash-after", 2),
        exit_time,
        |reason| matches!(reason, UnavailableReason::Exited { status, .. } if status.to_string().contains("signal")),
    )
    .await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_lost_and_its_process_killed() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("lost").switch("--close-stdout")]).await.unwrap();
    let requested = async {
        let journal = test_env.wait_for_journal(|journal| journal.count("tools/call") == 1).await;
        journal.received("tools/call")[0].ts_ms
    };
    let call = async {
        let result = host.call_tool("lost.sleep", json!({"ms": 60_000})).await;
        (result, now_ms())
    };
    let (asked_at, (result, failed_at)) = tokio::join!(requested, call);
    assert_eq!(unavailable_error(result), (UnavailableReason::ClosedOutput, true));
    let elapsed = Duration::from_millis(failed_at.saturating_sub(asked_at));
    assert!(elapsed <= PROMPT_LIMIT, "{elapsed:?}");
    wait_until_killed(&test_env, test_env.journal().pids()[0]).await;
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::AlreadyGone);
    test_env.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_lost_and_its_process_killed() {
    let test_env = TestEnv::new();
    let deaf = ShellServer { on_call: "exec 0<&-; exec sleep 60", ..ShellServer::default() };
    let mut file = deaf.config_json();
    file["servers"]["sh"]["env"][ProcessTag::VARIABLE] = json!(test_env.process_tag().as_str());
    file["servers"]["sh"]["unavailableAfterTimeouts"] = json!(1000);
    let host = builder(test_env.config_from(&file)).start().await.unwrap();
    let first = host.call_tool("sh.any", ());
    let second = async {
        // The server closes its input some time after it has read the first call.
        loop {
            let short_timeout = Some(Duration::from_millis(100));
            let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
            let result = host.call_tool_with("sh.any", (), options).await;
            if class_of_error(&result) != ErrorClass::Timeout {
                return result;
            }
        }
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(unavailable_error(first), (UnavailableReason::ClosedInput, true));
    assert_eq!(unavailable_error(second).0, UnavailableReason::ClosedInput);
    if let Err(remaining) = wait_gone_async(test_env.process_tag(), TEST_TIMEOUT).await {
        panic!("still there: {remaining:#?}");
    }
    host.shutdown().await;
}

fn class_of_error<T>(result: &Result<T, CallError>) -> ErrorClass {
    match result {
        Ok(_) => panic!("answered"),
        Err(error) => error.class(),
    }
}

#[tokio::test]
async fn the_last_words_of_a_server_that_dies_in_a_call_reach_its_callers() {
    let test_env = TestEnv::new();
    let dies = ShellServer {
        on_call: "echo 'Traceback (most recent call last):' >&2; \
                  echo '  File \"server.py\", line 7, in any' >&2; \
                  echo 'OSError: disk full' >&2; exit 3",
        ..ShellServer::default()
    };
    let host = builder(test_env.config_from(&dies.config_json())).start().await.unwrap();
    let words = "process ended with exit code 3: OSError: disk full";
    for may_have_run in [true, false] {
        let (reason, has_been_sent) = unavailable_error(host.call_tool("sh.any", ()).await);
        assert_eq!((&*reason.to_string(), has_been_sent), (words, may_have_run));
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_call_during_a_restart_learns_why_the_server_was_lost() {
    let test_env = TestEnv::new();
    let marker = test_env.path("started");
    let on_list = format!("if [ -e {0} ]; then sleep 60; fi; : > {0}", marker.display());
    let dies = ShellServer { on_list: &on_list, on_call: "exit 3", ..ShellServer::default() };
    let mut file = dies.config_json();
    file["servers"]["sh"]["restart"] = json!({"onFailure": {"max": 1}});
    let host = builder(test_env.config_from(&file)).start().await.unwrap();
    let reason = loop {
        let (reason, _) = unavailable_error(host.call_tool("sh.any", ()).await);
        if matches!(reason, UnavailableReason::Starting { .. }) {
            break reason.to_string();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(reason, "starting again; before: process ended with exit code 3");
    host.shutdown().await;
}

#[tokio::test]
async fn many_calls_in_flight_at_a_crash_all_learn_the_exit_code() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("lost").with("--crash-after", 20)]).await.unwrap();
    let calls = (0..60).map(|number| {
        let host = host.clone();
        async move { (number, host.call_tool("lost.sleep", json!({"ms": 60_000})).await) }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    while let Some(call) = calls.join_next().await {
        let (number, result) = call.unwrap();
        let (reason, _) = unavailable_error(result);
        assert_eq!(reason.to_string(), "process ended with exit code 3", "call {number}");
    }
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_made_in_the_very_moment_of_a_crash_learn_the_exit_code_too() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("lost").with("--crash-after", 100)]).await.unwrap();
    let callers = (0..16).map(|_| {
        let host = host.clone();
        async move {
            let message = json!({"message": "x".repeat(10 << 10)});
            loop {
                let result = host.call_tool("lost.echo", message.clone()).await;
                if result.is_err() {
                    return unavailable_error(result);
                }
            }
        }
    });
    let mut callers: tokio::task::JoinSet<_> = callers.collect();
    while let Some(caller) = callers.join_next().await {
        let (reason, _) = caller.unwrap();
        assert_eq!(reason.to_string(), "process ended with exit code 3");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_stops_reading_costs_each_call_its_time_and_can_be_stopped() {
    let test_env = TestEnv::new();
    let deaf = test_env.fixture("deaf").switch("--stop-reading").config_key("timeout", 0.4);
    let deaf = deaf.config_key("shutdownTimeout", 0.6).switch("--ignore-sigterm");
    let host = test_env.start([deaf, test_env.fixture("other")]).await.unwrap();
    let large = "x".repeat(100 << 10);
    let calls = (0..40).map(|_| {
        let (host, large) = (host.clone(), large.clone());
        async move { host.call_tool("deaf.echo", json!({"message": large})).await.map(drop) }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    let other = host.call_tool("other.echo", json!({"message": "at once"})).await.unwrap();
    assert_eq!(result_text(&other), "at once");
    while let Some(call) = calls.join_next().await {
        assert_eq!(error_class(call.unwrap()), ErrorClass::Timeout);
    }
    let started_at = tokio::time::Instant::now();
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, StopStage::OnKill, "{report:?}");
    assert!(started_at.elapsed() < Duration::from_secs(5), "{:?}", started_at.elapsed());
    test_env.assert_gone().await;
}

#[tokio::test]
async fn calls_under_way_at_a_shutdown_end_with_it() {
    let test_env = TestEnv::new();
    let host = test_env.start([test_env.fixture("one")]).await.unwrap();
    let quick = host.call_tool("one.sleep", json!({"ms": 100}));
    let endless = host.call_tool("one.sleep", json!({"ms": 60_000}));
    let stop = async {
        test_env.wait_for_journal(|journal| journal.count("tools/call") == 2).await;
        host.shutdown().await
    };
    let (quick, endless, report) = tokio::join!(quick, endless, stop);
    assert_eq!(result_text(&quick.unwrap()), "slept", "what ends soon may end");
    assert_eq!(unavailable_error(endless), (UnavailableReason::Shutdown, true));
    assert!(report.is_clean(), "{report:?}");
    let reason = unavailable_error(host.call_tool("one.pid", ()).await);
    assert_eq!(reason, (UnavailableReason::Shutdown, false));
}
