//! Servers whose process exits, stops or opens the terminal during a call.

use std::time::Duration;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{CallError, HostEvent, ServerState};
use serde_json::json;
use tokio::time::Instant;

use super::{host_with_call_script, result_json};
use crate::setup::{TestEnv, builder, wait_for_event};

/// Faults 71 to 73: this test checks only the time; the tests of `server_loss` check the errors.
#[tokio::test]
async fn a_call_learns_within_250_milliseconds_that_its_server_is_gone() {
    let test_env = TestEnv::new();
    let exits =
        [("exits", "--crash-after"), ("killed", "--crash-signal"), ("deaf", "--close-stdout")];
    for (name, switch) in exits {
        let mut fastest = Duration::MAX;
        // The fastest of several runs counts, because a loaded machine delays some.
        for round in 0..3 {
            let name = format!("{name}{round}");
            let server = match switch {
                "--crash-after" => test_env.fixture(&name).with(switch, 1),
                _ => test_env.fixture(&name).switch(switch),
            };
            let host = test_env.start([server]).await.unwrap();
            let started_at = Instant::now();
            let tool = format!("{name}.echo");
            let error = host.call_tool(&tool, json!({"message": ""})).await.unwrap_err();
            fastest = fastest.min(started_at.elapsed());
            let sent = matches!(error, CallError::Unavailable { may_have_run: true, .. });
            assert!(sent, "{error:?}");
            host.shutdown().await;
        }
        println!("{name}: {fastest:?}");
        assert!(fastest < Duration::from_millis(250), "{name}: {fastest:?}");
    }
    test_env.assert_gone().await;
}

/// Fault 74.
/// Attack: processes | a server exits while its child holds the pipes | the call fails, and another
/// server is not affected | No unbounded wait
#[tokio::test]
async fn a_server_that_leaves_while_its_child_holds_the_pipes_is_known_to_be_gone() {
    let test_env = TestEnv::new();
    let leaves = test_env.fixture("leaves").switch("--exit-while-grandchild");
    let host = builder(test_env.config([leaves, test_env.fixture("well")])).start().await.unwrap();
    let mut events = host.events();
    let error = host.call_tool("leaves.echo", json!({"message": ""})).await.unwrap_err();
    let CallError::Unavailable {
        reason: UnavailableReason::Exited { status: exit_status, .. },
        ..
    } = &error
    else {
        panic!("{error:?}");
    };
    assert!(exit_status.success(), "{exit_status}");
    wait_for_event(&mut events, |event| matches!(event, HostEvent::Unavailable { .. })).await;
    assert_eq!(host.status()["leaves"].state, ServerState::Unavailable);
    host.call_tool("well.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Fault 82.
/// Attack: processes | a server stops itself during a call | the call ends at its deadline, and the
/// shutdown ends the server | No unbounded wait
#[tokio::test]
async fn a_server_that_stops_itself_costs_its_call_its_time_and_can_be_ended() {
    let test_env = TestEnv::new();
    let stopped = test_env.fixture("one").switch("--stop-self").config_key("shutdownTimeout", 0.5);
    let host = test_env.start([stopped.config_key("timeout", 0.3)]).await.unwrap();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error:?}");
    host.shutdown().await;
    test_env.assert_gone().await;
}

/// Fault 88.
/// Attack: processes | a server opens the terminal of the user | the server has no terminal |
/// Foreign text stays text
#[tokio::test]
async fn a_server_that_asks_at_the_terminal_finds_none() {
    let test_env = TestEnv::new();
    let asks = r#"if (: </dev/tty) 2>/dev/null; then found=true; else found=false; fi
        result='{"content":[],"terminal":'$found'}'"#;
    let host = host_with_call_script(&test_env, asks).await;
    let result = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(result_json(&result)["terminal"], false);
    host.shutdown().await;
}
