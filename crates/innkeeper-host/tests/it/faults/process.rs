//! Servers whose process ends, hides or asks for a terminal in mid-call.

use std::time::Duration;

use innkeeper_host::error::Lost;
use innkeeper_host::{CallError, Event, ServerState};
use serde_json::json;
use tokio::time::Instant;

use super::{on_call, value};
use crate::setup::{Scene, builder, until_told};

/// Faults 71 to 73: how the call ends is told by the tests of lost servers; this is how soon.
#[tokio::test]
async fn a_call_learns_within_250_milliseconds_that_its_server_is_gone() {
    let scene = Scene::new();
    let ways =
        [("exits", "--crash-after"), ("killed", "--crash-signal"), ("deaf", "--close-stdout")];
    for (name, switch) in ways {
        let mut fastest = Duration::MAX;
        // The best of several, so that a busy machine does not decide.
        for round in 0..3 {
            let name = format!("{name}{round}");
            let server = match switch {
                "--crash-after" => scene.fx(&name).with(switch, 1),
                _ => scene.fx(&name).switch(switch),
            };
            let host = scene.start([server]).await.unwrap();
            let began = Instant::now();
            let tool = format!("{name}.echo");
            let error = host.call_tool(&tool, json!({"message": ""})).await.unwrap_err();
            fastest = fastest.min(began.elapsed());
            let sent = matches!(error, CallError::Unavailable { may_have_run: true, .. });
            assert!(sent, "{error:?}");
            host.shutdown().await;
        }
        println!("{name}: {fastest:?}");
        assert!(fastest < Duration::from_millis(250), "{name}: {fastest:?}");
    }
    scene.assert_gone().await;
}

/// Fault 74.
#[tokio::test]
async fn a_server_that_leaves_while_its_child_holds_the_pipes_is_known_to_be_gone() {
    let scene = Scene::new();
    let leaves = scene.fx("leaves").switch("--exit-while-grandchild");
    let host = builder(scene.config([leaves, scene.fx("well")])).start().await.unwrap();
    let mut events = host.events();
    let error = host.call_tool("leaves.echo", json!({"message": ""})).await.unwrap_err();
    let CallError::Unavailable { reason: Lost::Exited(exit), .. } = &error else {
        panic!("{error:?}");
    };
    assert!(exit.success(), "{exit}");
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    assert_eq!(host.status()["leaves"].state, ServerState::Unavailable);
    host.call_tool("well.echo", json!({"message": ""})).await.unwrap();
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Fault 82.
#[tokio::test]
async fn a_server_that_stops_itself_costs_its_call_its_time_and_can_be_ended() {
    let scene = Scene::new();
    let stopped = scene.fx("one").switch("--stop-self").key("shutdownTimeout", 0.5);
    let host = scene.start([stopped.key("timeout", 0.3)]).await.unwrap();
    let error = host.call_tool("one.echo", json!({"message": ""})).await.unwrap_err();
    assert!(matches!(error, CallError::Timeout { .. }), "{error:?}");
    host.shutdown().await;
    scene.assert_gone().await;
}

/// Fault 88.
#[tokio::test]
async fn a_server_that_asks_at_the_terminal_finds_none() {
    let scene = Scene::new();
    let asks = r#"if (: </dev/tty) 2>/dev/null; then found=true; else found=false; fi
        result='{"content":[],"terminal":'$found'}'"#;
    let host = on_call(&scene, asks).await;
    let result = host.call_tool("sh.any", ()).await.unwrap();
    assert_eq!(value(&result)["terminal"], false);
    host.shutdown().await;
}
