//! Sessions that the server forgets, and servers that come back.

use innkeeper_host::{CallOptions, Event, Host};
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;

use super::{answers, beside, echo, hosting};
use crate::setup::{PATIENCE, Scene, text, until_told};

fn is_change(event: &Event) -> bool {
    matches!(event, Event::CatalogChanged { .. })
}

async fn grow(host: &Host) -> String {
    let grown = host.call_tool("a.grow", json!({})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&text(&grown)).unwrap();
    format!("a.{}", names.last().unwrap())
}

/// Fault 97.
#[tokio::test]
async fn a_session_that_is_gone_is_begun_once_more_and_the_call_runs_once() {
    for json in [false, true] {
        let scene = Scene::new();
        let gone = Fault::session_gone().on("tools/call").nth(2);
        let plan = Remote::of(scene.fx("a")).fault(gone);
        let plan = if json { plan.answers_as_json() } else { plan };
        let remote = plan.start().await;
        let host = beside(&scene, &remote).await;
        assert_eq!(echo(&host, "a", "one").await.unwrap(), "one");
        assert_eq!(echo(&host, "a", "two").await.unwrap(), "two");
        assert_eq!(echo(&host, "a", "three").await.unwrap(), "three");
        answers(&host, "b").await;
        let journal = scene.journal().of("a");
        let said: Vec<String> = journal
            .params("tools/call")
            .iter()
            .map(|call| call["arguments"]["message"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(said, ["one", "two", "three"], "a call was lost or ran twice");
        assert_eq!(journal.count("initialize"), 2);
        assert_eq!(journal.count("notifications/initialized"), 2);
        host.shutdown().await;
        assert_eq!(remote.pids(), [0_u32; 0], "the new session was ended too");
        scene.assert_gone().await;
    }
}

/// Fault 97.
#[tokio::test]
async fn many_calls_that_find_their_session_gone_begin_one_together() {
    let scene = Scene::new();
    let gone = Fault::session_gone().on("tools/call").nth(1);
    let remote = Remote::of(scene.fx("a")).fault(gone).start().await;
    let host = beside(&scene, &remote).await;
    let calls = (0..20).map(|number| {
        let host = host.clone();
        async move { echo(&host, "a", &number.to_string()).await.unwrap() }
    });
    let mut set = tokio::task::JoinSet::new();
    for call in calls {
        set.spawn(call);
    }
    let mut said = set.join_all().await;
    said.sort_by_key(|number| number.parse::<u32>().unwrap());
    assert_eq!(said, (0..20).map(|number| number.to_string()).collect::<Vec<_>>());
    let journal = scene.journal().of("a");
    assert_eq!((journal.count("initialize"), journal.count("tools/call")), (2, 20));
    host.shutdown().await;
}

/// Fault 97.
#[tokio::test]
async fn a_session_that_is_always_gone_ends_the_call_and_not_the_host() {
    let scene = Scene::new();
    let gone = Fault::session_gone().on("tools/call");
    let remote =
        Remote::of(scene.fx("a").key("retry", json!({"max": 0}))).fault(gone).start().await;
    let host = beside(&scene, &remote).await;
    echo(&host, "a", "").await.unwrap_err();
    assert_eq!(scene.journal().of("a").count("initialize"), 2, "begun anew more than once");
    answers(&host, "b").await;
    host.shutdown().await;
}

#[tokio::test]
async fn after_a_session_was_begun_anew_the_lists_are_read_and_their_changes_are_heard() {
    let scene = Scene::new();
    let gone = Fault::session_gone().on("tools/call").nth(1);
    let server = scene.fx("a").switch("--list-changed");
    // Changes come on the stream that belongs to no request, and no other way.
    let remote = Remote::of(server).answers_as_json().fault(gone).start().await;
    let host = beside(&scene, &remote).await;
    let mut events = host.events();
    answers(&host, "a").await;
    until_told(&mut events, is_change).await;
    let opened = |seen: &[innkeeper_testkit::Seen]| {
        seen.iter().filter(|seen| seen.method == "GET" && seen.status == Some(200)).count() == 2
    };
    remote.until(PATIENCE, opened).await;
    let tool = grow(&host).await;
    until_told(&mut events, is_change).await;
    host.call_tool(&tool, json!({})).await.unwrap();
    host.shutdown().await;
}

/// How many streams of the server's own were opened.
fn opened(seen: &[innkeeper_testkit::Seen]) -> usize {
    seen.iter().filter(|seen| seen.method == "GET" && seen.status == Some(200)).count()
}

#[tokio::test]
async fn a_stream_is_left_with_its_session_and_subscriptions_go_on_in_the_next_one() {
    let scene = Scene::new();
    // It says that the session is gone and keeps the stream of that session open.
    let gone = Fault::status(404).on("tools/call").nth(1);
    let server = scene.fx("a").switch("--touch");
    let remote = Remote::of(server).answers_as_json().fault(gone).start().await;
    let host = beside(&scene, &remote).await;
    let mut events = host.events();
    let kept = "fx://a/static";
    host.subscribe_resource(kept, None, CallOptions::default()).await.unwrap();
    remote.until(PATIENCE, |seen| opened(seen) == 1).await;
    answers(&host, "a").await;
    remote.until(PATIENCE, |seen| opened(seen) == 2).await;
    scene.journal_until(|journal| journal.count("resources/subscribe") == 2).await;
    host.call_tool("a.touch", json!({"uri": kept})).await.unwrap();
    let told = until_told(&mut events, |event| matches!(event, Event::ResourceUpdated { .. }));
    assert!(matches!(told.await, Event::ResourceUpdated { uri, .. } if uri == kept));
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_cannot_be_begun_anew_stays_and_the_call_that_noticed_has_not_run() {
    for failed in [
        Fault::status(200).rpc_error(-32603, "the store is down"),
        Fault::status(200).rpc_error(-32603, "the store is down").header("mcp-session-id", "new"),
        Fault::body(200, "text/event-stream", "data: {\"jsonrpc\":\"2.0\"}\n\n"),
        Fault::status(202),
        Fault::status(500),
        Fault::status(502),
        Fault::hang_up(),
        Fault::reset(),
    ] {
        let scene = Scene::new();
        let server = scene.fx("a").key("retry", json!({"max": 0}));
        let gone = Fault::status(404).on("tools/call").nth(1);
        let again = failed.clone().on("initialize").nth(2);
        let remote = Remote::of(server).fault(gone).fault(again).start().await;
        let host = beside(&scene, &remote).await;
        let (reason, may_have_run) = super::unavailable(echo(&host, "a", "").await);
        assert!(!may_have_run, "{failed:?}: {reason:?}");
        answers(&host, "a").await;
        let sessions: std::collections::HashSet<_> = remote
            .requests()
            .into_iter()
            .filter_map(|seen| seen.header("mcp-session-id").map(str::to_owned))
            .collect();
        assert_eq!(sessions.len(), 1, "{failed:?}");
        host.shutdown().await;
    }
}

#[tokio::test]
async fn a_stream_that_could_not_be_signed_in_for_is_asked_for_again_after_a_call_that_could() {
    let scene = Scene::new();
    let refused = Fault::status(401).on_http("GET").nth(1);
    let remote = Remote::of(scene.fx("a")).fault(refused).start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    remote.until(PATIENCE, |seen| seen.iter().any(|seen| seen.method == "GET")).await;
    let once_more = async {
        while opened(&remote.requests()) == 0 {
            answers(&host, "a").await;
        }
    };
    tokio::time::timeout(PATIENCE, once_more).await.expect("the stream is open");
    host.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_is_refused_whoever_signs_in_is_asked_for_once_more_and_then_left() {
    let scene = Scene::new();
    let refused = Fault::status(401).on_http("GET");
    let remote = Remote::of(scene.fx("a")).fault(refused).start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    for _ in 0..20 {
        answers(&host, "a").await;
    }
    let seen = remote.requests();
    // Others look for a way to sign in.
    let streams = seen.iter().filter(|seen| seen.header("accept") == Some("text/event-stream"));
    assert!((1..=2).contains(&streams.count()), "{seen:#?}");
    host.shutdown().await;
}

#[tokio::test]
async fn a_session_that_ends_while_nobody_calls_is_begun_anew_for_its_stream() {
    let scene = Scene::new();
    let gone = Fault::session_gone().on_http("GET").nth(2);
    let server = scene.fx("a").switch("--list-changed");
    let remote = Remote::of(server).answers_as_json().fault(gone).start().await;
    let host = beside(&scene, &remote).await;
    let mut events = host.events();
    remote.until(PATIENCE, |seen| seen.iter().any(|seen| seen.method == "GET")).await;
    remote.break_connections();
    let asked = |seen: &[innkeeper_testkit::Seen]| {
        seen.iter().filter(|seen| seen.method == "GET" && seen.status == Some(200)).count() == 2
    };
    remote.until(PATIENCE, asked).await;
    let tool = grow(&host).await;
    let grown = async {
        while host.call_tool(&tool, json!({})).await.is_err() {
            until_told(&mut events, is_change).await;
        }
    };
    tokio::time::timeout(PATIENCE, grown).await.expect("the change is heard");
    host.shutdown().await;
}

#[tokio::test]
async fn a_server_that_dies_and_comes_back_is_found_again() {
    let scene = Scene::new();
    let path = scene.path("fx.sock");
    let server = || scene.fx("a").key("retry", json!({"max": 0}));
    let remote = Remote::of(server()).on_unix_socket(&path).start().await;
    let host = hosting(&scene, [("a", remote.entry()), ("b", scene.fx("b").entry())]).await;
    answers(&host, "a").await;
    remote.stop().await;
    let (reason, may_have_run) = super::unavailable(echo(&host, "a", "").await);
    assert!(!may_have_run, "{reason:?}");
    assert!(matches!(reason, innkeeper_host::error::Lost::Unreachable(_)), "{reason:?}");
    answers(&host, "b").await;
    let _remote = Remote::of(server()).on_unix_socket(&path).start().await;
    assert_eq!(echo(&host, "a", "back again").await.unwrap(), "back again");
    host.shutdown().await;
}

#[tokio::test]
async fn every_message_after_the_handshake_names_its_session_and_revision() {
    let scene = Scene::new();
    let remote = Remote::of(scene.fx("a")).start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    answers(&host, "a").await;
    host.shutdown().await;
    let seen = remote.requests();
    let first = seen.iter().position(|seen| seen.rpc_method() == Some("initialize")).unwrap();
    for (place, seen) in seen.iter().enumerate() {
        let named = place > first;
        assert_eq!(seen.header("mcp-session-id").is_some(), named, "{seen:#?}");
        if named {
            assert_eq!(seen.header("mcp-protocol-version"), Some("2025-11-25"), "{seen:#?}");
        }
        let accepted = seen.header("accept").unwrap();
        assert!(accepted.contains("text/event-stream"), "{seen:#?}");
    }
    let sessions: std::collections::HashSet<_> =
        seen.iter().filter_map(|seen| seen.header("mcp-session-id")).collect();
    assert_eq!(sessions.len(), 1);
}

#[tokio::test]
async fn a_server_whose_own_stream_fails_answers_calls_all_the_same() {
    for fault in [Fault::status(500), Fault::html(), Fault::hang_up(), Fault::status(404)] {
        let scene = Scene::new();
        let remote = Remote::of(scene.fx("a")).fault(fault.on_http("GET")).start().await;
        let host = hosting(&scene, [("a", remote.entry())]).await;
        remote.until(PATIENCE, |seen| seen.iter().any(|seen| seen.method == "GET")).await;
        answers(&host, "a").await;
        assert_eq!(scene.journal().count("initialize"), 1);
        host.shutdown().await;
    }
}
