//! The older HTTP transport when its stream or its posts fail.

use std::time::Duration;

use innkeeper_host::error::{Lost, ProtocolFault};
use innkeeper_host::{CallError, CallOptions, Event, Host, ServerState};
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;
use tokio::time::Instant;

use super::{answers, beside, echo, forgiving, protocol_fault, unavailable};
use crate::setup::{PATIENCE, Scene, until_told};

async fn met(scene: &Scene, fault: Fault) -> (Host, Remote) {
    let server = forgiving(scene).key("retry", json!({"max": 2, "initialDelay": 0.01}));
    let remote = Remote::of(server).sse().fault(fault).start().await;
    (beside(scene, &remote).await, remote)
}

#[tokio::test]
async fn a_stream_that_breaks_ends_every_call_at_once_and_no_neighbour() {
    let scene = Scene::new();
    let (host, remote) = met(&scene, Fault::status(418).on("no/such")).await;
    let mut events = host.events();
    let breaking = async {
        scene.journal_until(|journal| journal.count("tools/call") == 1).await;
        remote.break_connections();
        Instant::now()
    };
    let (called, broken) = tokio::join!(host.call_tool("a.sleep", json!({"ms": 60_000})), breaking);
    assert!(broken.elapsed() < PATIENCE);
    let (reason, may_have_run) = unavailable(called);
    assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
    until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    assert_eq!(host.status()["a"].state, ServerState::Unavailable);
    answers(&host, "b").await;
    host.restart_server("a").await.unwrap();
    answers(&host, "a").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_post_that_is_refused_fails_its_call_alone() {
    let scene = Scene::new();
    let (host, _remote) = met(&scene, Fault::status(500).on("tools/call").nth(1)).await;
    let fault = protocol_fault(echo(&host, "a", "").await);
    assert!(matches!(fault, ProtocolFault::Status { status: 500, .. }), "{fault:?}");
    answers(&host, "a").await;
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_post_to_a_busy_server_is_sent_again() {
    let scene = Scene::new();
    let (host, _remote) = met(&scene, Fault::status(503).on("tools/call").times(2)).await;
    answers(&host, "a").await;
    assert_eq!(scene.journal().of("a").count("tools/call"), 1);
    host.shutdown().await;
}

/// Fault 91.
#[tokio::test]
async fn a_post_that_is_never_taken_costs_the_time_of_its_call() {
    let scene = Scene::new();
    let (host, _remote) = met(&scene, Fault::silence().on("tools/call").nth(1)).await;
    let brief = Some(Duration::from_secs(1));
    let options = CallOptions { timeout: brief, ..CallOptions::default() };
    let late = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
    assert!(matches!(late, Err(CallError::Timeout { .. })), "{late:?}");
    answers(&host, "a").await;
    answers(&host, "b").await;
    scene.journal_until(|journal| journal.count("notifications/cancelled") == 1).await;
    host.shutdown().await;
}
