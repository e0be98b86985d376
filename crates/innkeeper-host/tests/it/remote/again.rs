//! Servers that are busy or away: what is sent again, how often and after which pause.

use std::time::Duration;

use innkeeper_host::error::Lost;
use innkeeper_host::{CallError, Event, Host};
use innkeeper_testkit::{Fault, Fixture, Remote};
use serde_json::json;
use tokio::sync::broadcast::Receiver;
use tokio::time::Instant;

use super::{answers, beside, echo, protocol_fault, unavailable};
use crate::setup::{Scene, told};

/// A server whose pauses are short, and at most so many seconds.
fn patient(scene: &Scene, longest: f64) -> Fixture {
    let retry = json!({"max": 3, "initialDelay": 0.01, "maxDelay": longest});
    scene.fx("a").key("retry", retry)
}

async fn busy(fixture: Fixture, scene: &Scene, fault: Fault) -> (Host, Remote) {
    let remote = Remote::of(fixture).fault(fault.on("tools/call")).start().await;
    (beside(scene, &remote).await, remote)
}

/// The pauses before a request was sent again.
fn pauses(events: &mut Receiver<Event>) -> Vec<Duration> {
    let again = |event| match event {
        Event::CallRetried { delay, .. } => Some(delay),
        _ => None,
    };
    told(events).into_iter().filter_map(again).collect()
}

#[tokio::test]
async fn a_start_whose_connection_is_cut_is_tried_again() {
    for plan in [Remote::of, |fixture| Remote::of(fixture).sse()] {
        let scene = Scene::new();
        let cut = Fault::hang_up().times(1);
        let remote = plan(patient(&scene, 1.0)).fault(cut).start().await;
        let host = beside(&scene, &remote).await;
        answers(&host, "a").await;
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_is_busy_twice_answers_the_third_time_and_runs_the_call_once() {
    for status in [503, 429] {
        let scene = Scene::new();
        let (host, remote) =
            busy(patient(&scene, 1.0), &scene, Fault::status(status).times(2)).await;
        let mut events = host.events();
        answers(&host, "a").await;
        assert_eq!(pauses(&mut events).len(), 2);
        let posted = remote.requests();
        let posted = posted.iter().filter(|seen| seen.rpc_method() == Some("tools/call"));
        let given: Vec<Option<u16>> = posted.map(|seen| seen.status).collect();
        assert_eq!(given, [Some(status), Some(status), Some(200)]);
        assert_eq!(scene.journal().of("a").count("tools/call"), 1);
        let metrics = &host.metrics()["a"];
        assert_eq!((metrics.request_count, metrics.success_count), (1, 1), "it is one call");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_stays_busy_is_unavailable_after_the_attempts_it_is_given() {
    let scene = Scene::new();
    let (host, _remote) = busy(patient(&scene, 1.0), &scene, Fault::status(503)).await;
    match echo(&host, "a", "").await {
        Err(CallError::Unavailable { reason, may_have_run, attempts, .. }) => {
            assert!(matches!(reason, Lost::Busy { status: 503, .. }), "{reason:?}");
            assert_eq!((may_have_run, attempts), (false, 4));
        }
        other => panic!("not unavailable: {other:?}"),
    }
    assert_eq!(scene.journal().of("a").count("tools/call"), 0);
    answers(&host, "b").await;
    host.shutdown().await;
}

/// Fault 98.
#[tokio::test]
async fn a_server_that_asks_to_be_left_alone_is() {
    let scene = Scene::new();
    let fault = Fault::status(503).header("retry-after", "1").times(1);
    let (host, _remote) = busy(patient(&scene, 30.0), &scene, fault).await;
    let began = Instant::now();
    answers(&host, "a").await;
    assert!(began.elapsed() >= Duration::from_secs(1), "{:?}", began.elapsed());
    host.shutdown().await;
}

/// Fault 98.
#[tokio::test]
async fn a_server_that_asks_for_years_is_asked_again_after_the_longest_pause() {
    for after in ["1000000000", "18446744073709551615"] {
        let scene = Scene::new();
        let fault = Fault::status(429).header("retry-after", after).times(1);
        let (host, _remote) = busy(patient(&scene, 0.2), &scene, fault).await;
        let mut events = host.events();
        answers(&host, "a").await;
        assert_eq!(pauses(&mut events), [Duration::from_millis(200)], "{after}");
        host.shutdown().await;
    }
}

/// Fault 98.
#[tokio::test]
async fn a_pause_that_cannot_be_read_or_is_over_counts_as_none() {
    for after in ["Thu, 01 Jan 1970 00:00:00 GMT", "-1", "soon", "1e9", ""] {
        let scene = Scene::new();
        let fault = Fault::status(503).header("retry-after", after).times(1);
        let (host, _remote) = busy(patient(&scene, 0.2), &scene, fault).await;
        let mut events = host.events();
        answers(&host, "a").await;
        let pauses = pauses(&mut events);
        assert!(pauses.len() == 1 && pauses[0] < Duration::from_millis(20), "{after}: {pauses:?}");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn what_may_have_run_behind_a_gateway_is_sent_again_only_if_it_may_run_twice() {
    for status in [502, 504] {
        let scene = Scene::new();
        let fault = Fault::status(status).nth(1);
        let (host, remote) = busy(patient(&scene, 0.2), &scene, fault).await;
        echo(&host, "a", "").await.unwrap_err();
        let calls = remote.requests();
        let calls = calls.iter().filter(|seen| seen.rpc_method() == Some("tools/call")).count();
        assert_eq!(calls, 1, "HTTP {status}: it was sent again");
        host.shutdown().await;
    }
}

/// Proves: FR7.1
#[tokio::test]
async fn a_refusal_is_given_and_not_asked_for_again() {
    let scene = Scene::new();
    let (host, remote) = busy(patient(&scene, 0.2), &scene, Fault::status(500).nth(1)).await;
    protocol_fault(echo(&host, "a", "").await);
    let calls = remote.requests();
    let calls = calls.iter().filter(|seen| seen.rpc_method() == Some("tools/call")).count();
    assert_eq!(calls, 1);
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_connection_that_breaks_is_tried_again_for_what_may_run_twice_alone() {
    let scene = Scene::new();
    let fault = Fault::hang_up().nth(1);
    let (host, _remote) = busy(patient(&scene, 0.2), &scene, fault).await;
    let mut events = host.events();
    let read = host.call_tool("a.read", json!({"path": "/dev/null"})).await.unwrap();
    assert!(!read.is_error());
    assert_eq!(pauses(&mut events).len(), 1);
    let scene = Scene::new();
    let fault = Fault::hang_up().nth(1);
    let (host, _remote) = busy(patient(&scene, 0.2), &scene, fault).await;
    let (reason, may_have_run) = unavailable(echo(&host, "a", "").await);
    assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
    assert_eq!(scene.journal().of("a").count("tools/call"), 0, "it was sent again");
    host.shutdown().await;
}

/// Proves: FR7.1
#[tokio::test]
async fn a_server_that_cannot_be_reached_is_unavailable_and_nothing_has_run() {
    let scene = Scene::new();
    let remote = Remote::of(patient(&scene, 0.2)).start().await;
    let host = beside(&scene, &remote).await;
    remote.stop().await;
    match echo(&host, "a", "").await {
        Err(CallError::Unavailable { reason, may_have_run, attempts, .. }) => {
            assert!(matches!(reason, Lost::Unreachable(_)), "{reason:?}");
            assert_eq!((may_have_run, attempts), (false, 4));
        }
        other => panic!("not unavailable: {other:?}"),
    }
    answers(&host, "b").await;
    host.shutdown().await;
}
