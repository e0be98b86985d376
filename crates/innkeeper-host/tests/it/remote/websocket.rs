//! WebSockets that behave as few do.

use std::time::Duration;

use innkeeper_host::error::Lost;
use innkeeper_host::shutdown::Stage;
use innkeeper_host::{CallError, CallOptions, Event, Host, ServerState};
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;

use super::{answers, beside, echo, forgiving, hosting, unavailable};
use crate::setup::{Scene, until_told};

async fn met(scene: &Scene, fault: Fault) -> (Host, Remote) {
    let fault = fault.on("tools/call").nth(1);
    let remote = Remote::of(forgiving(scene)).websocket().fault(fault).start().await;
    (beside(scene, &remote).await, remote)
}

/// Fault 99.
#[tokio::test]
async fn fragments_pings_binary_frames_and_repetitions_are_all_the_same() {
    for fault in [
        Fault::fragments(1),
        Fault::fragments(50),
        Fault::pings(10_000),
        Fault::binary(),
        Fault::twice(),
        Fault::pretty(),
        Fault::long(1 << 20),
        Fault::stall_for(Duration::from_millis(50)),
    ] {
        let scene = Scene::new();
        let (host, _remote) = met(&scene, fault.clone()).await;
        let said = echo(&host, "a", "whatever the frame").await;
        assert_eq!(said.unwrap(), "whatever the frame", "{fault:?}");
        answers(&host, "a").await;
        answers(&host, "b").await;
        assert!(host.shutdown().await.is_clean());
    }
}

/// Fault 99.
#[tokio::test]
async fn a_websocket_that_ends_abruptly_makes_its_server_unavailable_and_no_other() {
    for fault in [Fault::reset(), Fault::hang_up()] {
        let scene = Scene::new();
        let (host, _remote) = met(&scene, fault).await;
        let mut events = host.events();
        let (reason, may_have_run) = unavailable(echo(&host, "a", "").await);
        assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
        until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
        assert_eq!(host.status()["a"].state, ServerState::Unavailable);
        let (_, may_have_run) = unavailable(echo(&host, "a", "").await);
        assert!(!may_have_run);
        answers(&host, "b").await;
        host.restart_server("a").await.unwrap();
        answers(&host, "a").await;
        host.shutdown().await;
    }
}

/// Fault 99.
#[tokio::test]
async fn a_message_that_is_far_too_long_ends_the_websocket_before_it_is_read() {
    let scene = Scene::new();
    let (host, _remote) = met(&scene, Fault::long(100 << 20)).await;
    let mut events = host.events();
    let (reason, _) = unavailable(echo(&host, "a", "").await);
    assert!(matches!(reason, Lost::Broken(_)), "{reason:?}");
    answers(&host, "b").await;
    // Its status gives the same reason as the call, and its end is in the report.
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    let status = host.status()["a"].reason.clone();
    assert!(status.is_some_and(|status| status.contains("the connection broke")));
    let report = host.shutdown().await;
    let ended = report.servers.iter().find(|server| &*server.server == "a");
    assert_eq!(ended.map(|server| server.stage), Some(Stage::AlreadyGone), "{report:?}");
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_costs_the_time_of_its_call() {
    for fault in [Fault::stall(), Fault::silence()] {
        let scene = Scene::new();
        let (host, _remote) = met(&scene, fault).await;
        let brief = Some(Duration::from_secs(1));
        let options = CallOptions { timeout: brief, ..CallOptions::default() };
        let late = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
        assert!(matches!(late, Err(CallError::Timeout { .. })), "{late:?}");
        answers(&host, "b").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_does_not_name_the_subprotocol_is_spoken_to_all_the_same() {
    let scene = Scene::new();
    let remote = Remote::of(scene.fx("a")).websocket().without_subprotocol().start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    answers(&host, "a").await;
    let opened = &remote.requests()[0];
    assert_eq!(opened.header("sec-websocket-protocol"), Some("mcp"));
    host.shutdown().await;
}
