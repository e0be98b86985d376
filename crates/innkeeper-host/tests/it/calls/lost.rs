//! Servers that go away in the middle of calls, or no longer listen.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use innkeeper_host::error::Lost;
use innkeeper_host::shutdown::Stage;
use innkeeper_host::{CallError, CallOptions, ErrorClass, Event, Host, ServerState};
use innkeeper_testkit::{Fixture, Journal, Nonce, until_gone};
use serde_json::json;

use super::{class, unavailable};
use crate::setup::{PATIENCE, Scene, builder, text, until_told};
use crate::shell::Shell;

/// How soon callers learn that their server has gone: far from the 30 s their call may take, and
/// far enough from the few milliseconds it does take that a loaded machine decides nothing.
const AT_ONCE: Duration = Duration::from_secs(2);

fn now_ms() -> u64 {
    u64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()).unwrap()
}

/// Has a call wait while another one ends the server; gives both errors, and how long after the
/// moment that `ended` finds in the journal the waiting one failed.
async fn lose(
    scene: &Scene,
    host: &Host,
    ended: impl Fn(&Journal) -> Option<u64>,
) -> ([CallError; 2], Duration) {
    let waiting = async {
        let error = host.call_tool("lost.sleep", json!({"ms": 60_000})).await.unwrap_err();
        (error, now_ms())
    };
    let ending = async {
        scene.journal_until(|journal| journal.count("tools/call") == 1).await;
        host.call_tool("lost.echo", json!({"message": ""})).await.unwrap_err()
    };
    let ((first, failed_at), second) = tokio::join!(waiting, ending);
    let ended_at = ended(&scene.journal()).expect("the journal has the moment");
    ([first, second], Duration::from_millis(failed_at.saturating_sub(ended_at)))
}

/// Loses a server in mid-call, once: callers learn of it in time, and nobody else does.
async fn promptly(
    server: impl Fn(&Scene) -> Fixture,
    ended: impl Fn(&Journal) -> Option<u64>,
    expected: impl Fn(&Lost) -> bool,
) {
    let scene = Scene::new();
    let host = scene.start([server(&scene), scene.fx("other")]).await.unwrap();
    let mut events = host.events();
    let (errors, after) = lose(&scene, &host, &ended).await;
    for error in errors {
        assert_eq!(error.server(), Some("lost"));
        let (reason, may_have_run) = unavailable::<()>(Err(error));
        assert!(expected(&reason), "{reason:?}");
        assert!(may_have_run, "it was sent");
    }
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    assert_eq!(host.status()["lost"].state, ServerState::Unavailable);
    assert!(host.catalog().server("lost").is_none());
    let (reason, may_have_run) =
        unavailable(host.call_tool("lost.echo", json!({"message": ""})).await);
    assert!(expected(&reason) && !may_have_run, "{reason:?}");
    let other = host.call_tool("other.echo", json!({"message": "still here"})).await.unwrap();
    assert_eq!(text(&other), "still here");
    let pid = scene.journal().of("lost").pids()[0];
    wait_until_killed(&scene, pid).await;
    host.shutdown().await;
    assert!(after <= AT_ONCE, "callers learnt of it after {after:?}");
}

async fn wait_until_killed(scene: &Scene, pid: u32) {
    let gone = async {
        loop {
            match until_gone(scene.nonce(), Duration::from_millis(20)).await {
                Err(left) if left.iter().any(|found| found.pid == pid) => {}
                _ => return,
            }
        }
    };
    tokio::time::timeout(PATIENCE, gone).await.expect("a lost server's process is ended");
}

/// Proves: FR6.4
#[tokio::test]
async fn a_crash_fails_all_waiting_calls_at_once_with_the_exit_code() {
    let exit = |journal: &Journal| Some(journal.of("lost").events("exit").first()?.ts_ms);
    promptly(
        |scene| scene.fx("lost").with("--crash-after", 2),
        exit,
        |lost| lost.to_string() == "its process ended with exit code 3",
    )
    .await;
}

#[tokio::test]
async fn a_crash_by_a_signal_is_told_with_the_signal() {
    let exit = |journal: &Journal| Some(journal.of("lost").events("exit").first()?.ts_ms);
    promptly(
        |scene| scene.fx("lost").switch("--crash-signal").with("--crash-after", 2),
        exit,
        |lost| matches!(lost, Lost::Exited(exit) if exit.to_string().contains("signal")),
    )
    .await;
}

#[tokio::test]
async fn a_server_that_closes_its_output_is_lost_and_its_process_killed() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("lost").switch("--close-stdout")]).await.unwrap();
    let asked = async {
        let journal = scene.journal_until(|journal| journal.count("tools/call") == 1).await;
        journal.received("tools/call")[0].ts_ms
    };
    let call = async {
        let result = host.call_tool("lost.sleep", json!({"ms": 60_000})).await;
        (result, now_ms())
    };
    let (asked_at, (result, failed_at)) = tokio::join!(asked, call);
    assert_eq!(unavailable(result), (Lost::ClosedOutput, true));
    let took = Duration::from_millis(failed_at.saturating_sub(asked_at));
    assert!(took <= AT_ONCE, "{took:?}");
    wait_until_killed(&scene, scene.journal().pids()[0]).await;
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::AlreadyGone);
    scene.assert_gone().await;
}

#[tokio::test]
async fn a_server_that_closes_its_input_is_lost_and_its_process_killed() {
    let scene = Scene::new();
    let deaf = Shell { on_call: "exec 0<&-; exec sleep 60", ..Shell::default() };
    let mut file = deaf.file();
    file["servers"]["sh"]["env"][Nonce::VARIABLE] = json!(scene.nonce().as_str());
    file["servers"]["sh"]["unavailableAfterTimeouts"] = json!(1000);
    let host = builder(scene.config_of(&file)).start().await.unwrap();
    let first = host.call_tool("sh.any", ());
    let second = async {
        // Its pipe is closed some time after it has read the first call.
        loop {
            let brief = Some(Duration::from_millis(100));
            let options = CallOptions { timeout: brief, ..CallOptions::default() };
            let result = host.call_tool_with("sh.any", (), options).await;
            if class_of(&result) != ErrorClass::Timeout {
                return result;
            }
        }
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!(unavailable(first), (Lost::ClosedInput, true));
    assert_eq!(unavailable(second).0, Lost::ClosedInput);
    if let Err(left) = until_gone(scene.nonce(), PATIENCE).await {
        panic!("still there: {left:#?}");
    }
    host.shutdown().await;
}

fn class_of<T>(result: &Result<T, CallError>) -> ErrorClass {
    match result {
        Ok(_) => panic!("answered"),
        Err(error) => error.class(),
    }
}

#[tokio::test]
async fn many_calls_in_flight_at_a_crash_all_learn_the_exit_code() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("lost").with("--crash-after", 20)]).await.unwrap();
    let calls = (0..60).map(|number| {
        let host = host.clone();
        async move { (number, host.call_tool("lost.sleep", json!({"ms": 60_000})).await) }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    while let Some(call) = calls.join_next().await {
        let (number, result) = call.unwrap();
        let (reason, _) = unavailable(result);
        assert_eq!(reason.to_string(), "its process ended with exit code 3", "call {number}");
    }
    host.shutdown().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_made_in_the_very_moment_of_a_crash_learn_the_exit_code_too() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("lost").with("--crash-after", 100)]).await.unwrap();
    let callers = (0..16).map(|_| {
        let host = host.clone();
        async move {
            let message = json!({"message": "x".repeat(10 << 10)});
            loop {
                let result = host.call_tool("lost.echo", message.clone()).await;
                if result.is_err() {
                    return unavailable(result);
                }
            }
        }
    });
    let mut callers: tokio::task::JoinSet<_> = callers.collect();
    while let Some(caller) = callers.join_next().await {
        let (reason, _) = caller.unwrap();
        assert_eq!(reason.to_string(), "its process ended with exit code 3");
    }
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_stops_reading_costs_each_call_its_time_and_can_be_stopped() {
    let scene = Scene::new();
    let deaf = scene.fx("deaf").switch("--stop-reading").key("timeout", 0.4);
    let deaf = deaf.key("shutdownTimeout", 0.6).switch("--ignore-sigterm");
    let host = scene.start([deaf, scene.fx("other")]).await.unwrap();
    let large = "x".repeat(100 << 10);
    let calls = (0..40).map(|_| {
        let (host, large) = (host.clone(), large.clone());
        async move { host.call_tool("deaf.echo", json!({"message": large})).await.map(drop) }
    });
    let mut calls: tokio::task::JoinSet<_> = calls.collect();
    let other = host.call_tool("other.echo", json!({"message": "at once"})).await.unwrap();
    assert_eq!(text(&other), "at once");
    while let Some(call) = calls.join_next().await {
        assert_eq!(class(call.unwrap()), ErrorClass::Timeout);
    }
    let began = tokio::time::Instant::now();
    let report = host.shutdown().await;
    assert_eq!(report.servers[0].stage, Stage::OnKill, "{report:?}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    scene.assert_gone().await;
}

#[tokio::test]
async fn calls_under_way_at_a_shutdown_end_with_it() {
    let scene = Scene::new();
    let host = scene.start([scene.fx("one")]).await.unwrap();
    let quick = host.call_tool("one.sleep", json!({"ms": 100}));
    let endless = host.call_tool("one.sleep", json!({"ms": 60_000}));
    let stop = async {
        scene.journal_until(|journal| journal.count("tools/call") == 2).await;
        host.shutdown().await
    };
    let (quick, endless, report) = tokio::join!(quick, endless, stop);
    assert_eq!(text(&quick.unwrap()), "slept", "what ends soon may end");
    assert_eq!(unavailable(endless), (Lost::Shutdown, true));
    assert!(report.is_clean(), "{report:?}");
    let refused = unavailable(host.call_tool("one.pid", ()).await);
    assert_eq!(refused, (Lost::Shutdown, false));
}
