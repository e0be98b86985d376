//! Messages at the limit of what is taken, and one byte past it.

use innkeeper_host::error::{Lost, ProtocolFault};
use innkeeper_host::{CallError, Event, Host, ServerState};
use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Fault, Remote};
use serde_json::json;

use super::{answers, beside, forgiving, protocol_fault, unavailable};
use crate::setup::{Scene, text, until_told};

/// The most bytes of one message.
const LIMIT: usize = 16 << 20;

async fn big(host: &Host, bytes: usize) -> Result<usize, CallError> {
    let called = host.call_tool("a.big", json!({"bytes": bytes})).await;
    called.map(|result| text(&result).len())
}

/// What of the next answer of the tool `big` is not its text.
fn around(scene: &Scene) -> usize {
    let journal = scene.journal().of("a");
    let last = journal.received("tools/call").last().unwrap().message["id"].as_u64().unwrap();
    let result = json!({"content": [{"type": "text", "text": ""}]});
    json!({"jsonrpc": "2.0", "id": last + 1, "result": result}).to_string().len()
}

/// Asks for an answer as long as the limit, then for one that is a byte longer.
async fn around_the_limit(way: impl Fn(Plan) -> Plan) -> (Host, Remote, Scene, CallError) {
    let scene = Scene::new();
    let remote = way(Remote::of(forgiving(&scene))).start().await;
    let host = beside(&scene, &remote).await;
    answers(&host, "a").await;
    let fits = LIMIT - around(&scene);
    assert_eq!(big(&host, fits).await.unwrap(), fits);
    let error = big(&host, LIMIT - around(&scene) + 1).await.unwrap_err();
    answers(&host, "b").await;
    (host, remote, scene, error)
}

/// Fault 91.
#[tokio::test]
async fn an_answer_over_the_limit_is_a_protocol_error_and_the_next_one_is_given() {
    for way in [|plan| plan, Plan::answers_as_json, Plan::sse] {
        let (host, _remote, _scene, error) = around_the_limit(way).await;
        let fault = protocol_fault::<()>(Err(error));
        assert!(matches!(fault, ProtocolFault::TooLarge { limit: LIMIT }), "{fault:?}");
        answers(&host, "a").await;
        host.shutdown().await;
    }
}

/// Fault 99: a WebSocket cannot be read on behind a message that is not read.
#[tokio::test]
async fn an_answer_over_the_limit_ends_a_websocket_and_nobody_elses_connection() {
    let (host, _remote, _scene, error) = around_the_limit(Plan::websocket).await;
    let mut events = host.events();
    let (reason, may_have_run) = unavailable::<()>(Err(error));
    assert!(matches!(reason, Lost::Broken(_)) && may_have_run, "{reason:?}");
    if host.status()["a"].state != ServerState::Unavailable {
        until_told(&mut events, |event| matches!(event, Event::Unavailable { .. })).await;
    }
    answers(&host, "b").await;
    host.shutdown().await;
}

/// Fault 91.
#[tokio::test]
async fn a_hundred_megabytes_that_nobody_asked_for_are_dropped_and_the_answer_is_given() {
    let scene = Scene::new();
    let flood = Fault::long(100 << 20).on("tools/call").nth(1);
    let remote = Remote::of(forgiving(&scene)).fault(flood).start().await;
    let host = beside(&scene, &remote).await;
    answers(&host, "a").await;
    answers(&host, "b").await;
    host.shutdown().await;
}

/// Fault 96: what is counted is what is read, whatever the server says of its length.
#[tokio::test]
async fn a_hundred_megabytes_of_nothing_before_an_answer_in_json_are_too_much() {
    let scene = Scene::new();
    let flood = Fault::long(100 << 20).on("tools/call").nth(1);
    let remote = Remote::of(forgiving(&scene)).answers_as_json().fault(flood).start().await;
    let host = beside(&scene, &remote).await;
    let fault = protocol_fault(super::echo(&host, "a", "").await);
    assert!(matches!(fault, ProtocolFault::TooLarge { limit: LIMIT }), "{fault:?}");
    answers(&host, "a").await;
    answers(&host, "b").await;
    host.shutdown().await;
}
