//! Streams that break off and are taken up where they did.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::error::Lost;
use innkeeper_host::{Answers, CallOptions, ServerRequest};
use innkeeper_testkit::{Fault, Remote, Seen};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{answers, beside, echo, file, unavailable};
use crate::setup::{PATIENCE, Scene, builder, text};

/// The GETs that take a stream up, and after which event.
fn taken_up(remote: &Remote) -> Vec<String> {
    let seen: Vec<Seen> = remote.requests();
    let gets = seen.iter().filter(|seen| seen.method == "GET");
    gets.filter_map(|seen| seen.header("last-event-id").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_stream_that_ends_before_the_answer_is_taken_up_after_its_last_event_when_it_says() {
    let scene = Scene::new();
    let pause = Duration::from_millis(700);
    let cut = Fault::cut().retry_in(pause).on("tools/call").nth(1);
    let remote = Remote::of(scene.fx("a")).fault(cut).start().await;
    let host = beside(&scene, &remote).await;
    let began = Instant::now();
    assert_eq!(echo(&host, "a", "at last").await.unwrap(), "at last");
    assert!(began.elapsed() >= pause, "it came back too early: {:?}", began.elapsed());
    let after = taken_up(&remote);
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(after[0].ends_with("_1"), "{after:?}");
    assert_eq!(scene.journal().of("a").count("tools/call"), 1);
    answers(&host, "b").await;
    host.shutdown().await;
}

/// Fault 92.
#[tokio::test]
async fn events_that_come_twice_are_taken_once() {
    let scene = Scene::new();
    let brief = Duration::from_millis(10);
    let cut = Fault::cut().retry_in(brief).repeating().on("tools/call").nth(1);
    let server = scene.fx("a").with("--progress", 3).switch("--ask-sampling");
    let remote = Remote::of(server).fault(cut).start().await;
    let asked = Arc::new(AtomicUsize::new(0));
    let callback = {
        let asked = asked.clone();
        move |_: ServerRequest| {
            asked.fetch_add(1, Ordering::Relaxed);
            async { Ok(json!("an answer")) }
        }
    };
    let builder = builder(scene.config_of(&file([("a", remote.entry())])));
    let host = builder.callback(&Answers::sampling(), callback).start().await.unwrap();
    let (sender, mut steps) = mpsc::channel(16);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("a.pid", (), options).await.unwrap();
    assert_eq!(text(&result).matches("an answer").count(), 1);
    let mut told = Vec::new();
    while let Some(step) = steps.recv().await {
        told.push(step.progress);
    }
    assert!(told.is_sorted_by(|one, next| one < next), "{told:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 1, "the application was asked twice");
    host.shutdown().await;
}

/// Fault 92.
#[tokio::test]
async fn a_stream_that_is_reset_in_the_middle_of_an_event_is_taken_up_where_it_has_ids() {
    let scene = Scene::new();
    let reset = Fault::reset().on("tools/call").nth(1);
    let remote = Remote::of(scene.fx("a")).with_event_ids().fault(reset).start().await;
    let host = beside(&scene, &remote).await;
    assert_eq!(echo(&host, "a", "whole").await.unwrap(), "whole");
    assert_eq!(taken_up(&remote).len(), 1);
    assert_eq!(scene.journal().of("a").count("tools/call"), 1);
    host.shutdown().await;
}

/// Fault 92.
#[tokio::test]
async fn without_ids_a_call_whose_stream_is_reset_may_have_run_and_is_not_sent_again() {
    for json in [false, true] {
        let scene = Scene::new();
        let reset = Fault::reset().on("tools/call").nth(1);
        let plan = Remote::of(scene.fx("a")).fault(reset);
        let plan = if json { plan.answers_as_json() } else { plan };
        let remote = plan.start().await;
        let host = beside(&scene, &remote).await;
        let (reason, may_have_run) = unavailable(echo(&host, "a", "").await);
        assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
        assert_eq!(scene.journal().of("a").count("tools/call"), 1);
        answers(&host, "b").await;
        answers(&host, "a").await;
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_server_that_wants_its_streams_taken_up_at_once_is_not_asked_without_a_pause() {
    let scene = Scene::new();
    let cut = Fault::cut().retry_in(Duration::ZERO).on("tools/call").nth(1);
    let nothing = Fault::body(200, "text/event-stream", "retry: 0\nid: 0_1\n\n").on_http("GET");
    let remote = Remote::of(scene.fx("a")).fault(cut).fault(nothing).start().await;
    let host = beside(&scene, &remote).await;
    let options = CallOptions { timeout: Some(Duration::from_secs(1)), ..CallOptions::default() };
    let called = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
    assert_eq!(called.unwrap_err().class(), innkeeper_host::ErrorClass::Timeout);
    let asked = taken_up(&remote).len();
    assert!((3..10).contains(&asked), "{asked} times in a second");
    host.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_taken_up_ends_the_call_as_one_that_may_have_run() {
    let scene = Scene::new();
    let cut = Fault::cut().retry_in(Duration::from_millis(1)).on("tools/call").nth(1);
    let refused = Fault::status(400).on_http("GET");
    let remote = Remote::of(scene.fx("a")).fault(cut).fault(refused).start().await;
    let host = beside(&scene, &remote).await;
    let (reason, may_have_run) = unavailable(echo(&host, "a", "").await);
    assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
    assert_eq!(scene.journal().of("a").count("tools/call"), 1);
    answers(&host, "a").await;
    host.shutdown().await;
}

#[tokio::test]
async fn the_stream_of_its_own_is_taken_up_after_its_last_event() {
    let scene = Scene::new();
    let server = scene.fx("a").switch("--list-changed");
    let remote = Remote::of(server).answers_as_json().with_event_ids().start().await;
    let host = beside(&scene, &remote).await;
    let mut events = host.events();
    let is_change = |event: &innkeeper_host::Event| {
        matches!(event, innkeeper_host::Event::CatalogChanged { .. })
    };
    host.call_tool("a.grow", json!({})).await.unwrap();
    crate::setup::until_told(&mut events, is_change).await;
    remote.break_connections();
    let again = |seen: &[Seen]| seen.iter().any(|seen| seen.header("last-event-id").is_some());
    remote.until(PATIENCE, again).await;
    host.call_tool("a.grow", json!({})).await.unwrap();
    crate::setup::until_told(&mut events, is_change).await;
    host.shutdown().await;
}
