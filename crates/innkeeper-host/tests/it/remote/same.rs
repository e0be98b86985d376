//! One conversation, however the messages travel.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Event, Host};
use innkeeper_testkit::remote::Plan;
use innkeeper_testkit::{Fixture, Remote};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::hosting;
use crate::setup::{Scene, text, until_told};

/// More than a read buffer, a frame or a chunk of anything in between.
const LARGE: usize = 5_000_000;

const FOREIGN: &str = "Žluťoučký 🐎 \u{2028}\u{feff}中文 \"\\/\n\r\t\u{1}";

/// What a way of reaching a server leaves out.
#[derive(Clone, Copy, Debug, Default)]
struct Lacks {
    /// Progress has no stream that it could come on in time.
    progress: bool,
    /// Changes of lists are not told.
    changes: bool,
}

const NOTHING: Lacks = Lacks { progress: false, changes: false };
/// Changes of the newer era come to those who listen for them.
const CHANGES: Lacks = Lacks { progress: false, changes: true };

/// What was heard of a server, in words that can be compared.
#[derive(Debug, PartialEq)]
struct Heard {
    definitions: Vec<String>,
    results: Vec<String>,
}

fn fixture(scene: &Scene, era: &str) -> Fixture {
    let server = scene.fx("a").with("--era", era).with("--progress", 3).switch("--list-changed");
    server.with("--instructions", "Be kind.").key("unavailableAfterTimeouts", 9)
}

/// Every definition, byte for byte.
fn definitions(host: &Host) -> Vec<String> {
    let catalog = host.catalog();
    let server = catalog.server("a").unwrap();
    let offer = server.offer().unwrap();
    let mut all: Vec<String> = offer.tools.iter().map(|tool| tool.raw.to_string()).collect();
    all.extend(offer.prompts.iter().map(|prompt| prompt.raw.to_string()));
    all.extend(offer.resources.iter().map(|resource| resource.raw.to_string()));
    all.extend(offer.resource_templates.iter().map(|template| template.raw.to_string()));
    all.push(server.server_info().unwrap().to_string());
    all.extend(server.instructions().map(str::to_owned));
    all
}

/// A result without what only the newer era puts into each.
fn result(raw: &str) -> String {
    let mut result: Value = serde_json::from_str(raw).unwrap();
    for member in ["_meta", "resultType", "ttlMs", "cacheScope"] {
        result.as_object_mut().unwrap().remove(member);
    }
    let text = result.to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // Whole, where a difference can be read.
    if text.len() < 1000 { text } else { format!("{} bytes: {}", text.len(), hasher.finish()) }
}

async fn converse(scene: &Scene, host: &Host, lacks: Lacks) -> Heard {
    let definitions = definitions(host);
    let mut results = Vec::new();
    for (tool, arguments) in [
        ("a.echo", json!({"message": "hello"})),
        ("a.echo", json!({"message": FOREIGN})),
        ("a.add", json!({"a": 1, "b": 2})),
        ("a.a.b", json!({})),
        ("a.fail", json!({})),
        ("a.big", json!({"bytes": LARGE})),
    ] {
        let (sender, mut told) = mpsc::channel(8);
        let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
        let called = host.call_tool_with(tool, arguments, options).await.unwrap();
        results.push(result(called.raw().get()));
        let steps: Vec<f64> =
            std::iter::from_fn(|| told.try_recv().ok()).map(|step| step.progress).collect();
        if !lacks.progress {
            assert_eq!(steps, [1.0, 2.0, 3.0], "progress of {tool}");
        }
    }
    let greeted: Map<String, Value> = json!({"name": "Ada"}).as_object().unwrap().clone();
    let prompt = host.get_prompt("a.greet", &greeted, CallOptions::default()).await.unwrap();
    results.push(result(prompt.get()));
    let resource = host.read_resource("fx://a/static", None, CallOptions::default()).await.unwrap();
    results.push(result(resource.get()));
    let refused = host.read_resource("fx://a/no/such", Some("a"), CallOptions::default()).await;
    match refused {
        Err(CallError::Server { error, .. }) => results.push(format!("{error:?}")),
        other => panic!("no error of the server: {other:?}"),
    }
    cancel(scene, host).await;
    if !lacks.changes {
        grow(host).await;
    }
    Heard { definitions, results }
}

/// Runs into the deadline of a call, of which the server has to learn.
async fn cancel(scene: &Scene, host: &Host) {
    let brief = Some(Duration::from_millis(500));
    let options = CallOptions { timeout: brief, ..CallOptions::default() };
    let late = host.call_tool_with("a.sleep", json!({"ms": 60_000}), options).await;
    assert!(matches!(late, Err(CallError::Timeout { .. })), "{late:?}");
    let journal =
        scene.journal_until(|journal| journal.count("notifications/cancelled") == 1).await;
    let call = journal.received("tools/call").last().unwrap().message["id"].clone();
    assert_eq!(journal.params("notifications/cancelled")[0]["requestId"], call);
}

async fn grow(host: &Host) {
    let mut events = host.events();
    let grown = host.call_tool("a.grow", json!({})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&text(&grown)).unwrap();
    until_told(&mut events, |event| matches!(event, Event::CatalogChanged { .. })).await;
    let added = format!("a.{}", names.last().unwrap());
    host.call_tool(&added, json!({})).await.unwrap();
}

async fn over_a_pipe(era: &str) -> Heard {
    let scene = Scene::new();
    let host = scene.start([fixture(&scene, era)]).await.unwrap();
    let lacks = if era == "legacy" { NOTHING } else { CHANGES };
    let heard = converse(&scene, &host, lacks).await;
    host.shutdown().await;
    scene.assert_gone().await;
    heard
}

/// Holds the conversation this way against the one over a pipe; gives the remote server.
async fn the_same(era: &str, lacks: Lacks, way: impl Fn(&Scene, Plan) -> Plan) -> Remote {
    let scene = Scene::new();
    let remote = way(&scene, Remote::of(fixture(&scene, era))).start().await;
    let host = hosting(&scene, [("a", remote.entry())]).await;
    let heard = converse(&scene, &host, lacks).await;
    assert_eq!(heard, over_a_pipe(era).await);
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    remote
}

/// How often a request of this HTTP method was answered with this status.
fn count(remote: &Remote, method: &str, status: u16) -> usize {
    let seen = remote.requests();
    seen.iter().filter(|seen| seen.method == method && seen.status == Some(status)).count()
}

#[tokio::test]
async fn both_eras_offer_the_same() {
    assert_eq!(over_a_pipe("modern").await.definitions, over_a_pipe("legacy").await.definitions);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_streams_of_events_says_what_a_pipe_says() {
    let remote = the_same("legacy", NOTHING, |_, plan| plan).await;
    assert_eq!(count(&remote, "DELETE", 200), 1);
    assert_eq!(count(&remote, "GET", 200), 1);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_of_the_newer_era_says_what_a_pipe_says() {
    let remote = the_same("modern", CHANGES, |_, plan| plan).await;
    assert_eq!(remote.requests().iter().filter(|seen| seen.method != "POST").count(), 0);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_answers_in_json_says_what_a_pipe_says() {
    let lacks = Lacks { progress: true, changes: false };
    the_same("legacy", lacks, |_, plan| plan.answers_as_json()).await;
    let lacks = Lacks { progress: true, changes: true };
    the_same("modern", lacks, |_, plan| plan.answers_as_json()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_without_a_stream_of_its_own_says_what_a_pipe_says() {
    let remote = the_same("legacy", NOTHING, |_, plan| plan.without_get()).await;
    assert_eq!(count(&remote, "GET", 405), 1, "it was asked for again");
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_ids_of_events_says_what_a_pipe_says() {
    the_same("legacy", NOTHING, |_, plan| plan.with_event_ids()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_without_sessions_says_what_a_pipe_says() {
    let remote = the_same("legacy", NOTHING, |_, plan| plan.without_session()).await;
    assert_eq!(remote.requests().iter().filter(|seen| seen.method == "DELETE").count(), 0);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn the_older_http_transport_says_what_a_pipe_says() {
    the_same("legacy", NOTHING, |_, plan| plan.sse()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_server_of_the_older_http_transport_is_found_behind_an_address_of_the_newer() {
    the_same("legacy", NOTHING, |_, plan| plan.sse().typed("http")).await;
    for status in [400, 404] {
        let scene = Scene::new();
        let plan = Remote::of(scene.fx("a")).sse().typed("http").refusing_post(status);
        let remote = plan.start().await;
        let host = hosting(&scene, [("a", remote.entry())]).await;
        assert_eq!(super::echo(&host, "a", "found").await.unwrap(), "found", "HTTP {status}");
        host.shutdown().await;
    }
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_websocket_says_what_a_pipe_says() {
    the_same("legacy", NOTHING, |_, plan| plan.websocket()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_websocket_of_the_newer_era_says_what_a_pipe_says() {
    the_same("modern", NOTHING, |_, plan| plan.websocket()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn http_through_a_unix_socket_says_what_a_pipe_says() {
    the_same("legacy", NOTHING, |scene, plan| plan.on_unix_socket(&scene.path("fx.sock"))).await;
}
