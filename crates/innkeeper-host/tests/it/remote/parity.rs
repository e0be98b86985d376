//! The same calls have the same results over every transport.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use innkeeper_host::{CallError, CallOptions, Host, HostEvent};
use innkeeper_testkit::remote::RemoteServerBuilder;
use innkeeper_testkit::{Fixture, RemoteServer};
use serde_json::{Map, Value, json};
use tokio::sync::mpsc;

use super::start_host;
use crate::setup::{TestEnv, result_text, wait_for_event};

/// More than one read buffer, frame or chunk of any layer.
const LARGE_RESULT_BYTES: usize = 5_000_000;

const NON_ASCII_TEXT: &str = "Žluťoučký 🐎 \u{2028}\u{feff}中文 \"\\/\n\r\t\u{1}";

/// The features that a transport lacks.
#[derive(Clone, Copy, Debug, Default)]
struct TransportGaps {
    /// Whether progress is missing, because there is no stream for it during the call.
    progress: bool,
    /// Whether list changes are missing.
    list_changes: bool,
}

const NO_GAPS: TransportGaps = TransportGaps { progress: false, list_changes: false };
/// In the modern era, list changes require a listen stream.
const NO_LIST_CHANGES: TransportGaps = TransportGaps { progress: false, list_changes: true };

/// Definitions and results of a server, in comparable form.
#[derive(Debug, PartialEq)]
struct ServerTranscript {
    definitions: Vec<String>,
    results: Vec<String>,
}

fn fixture(test_env: &TestEnv, era: &str) -> Fixture {
    let server =
        test_env.fixture("a").with("--era", era).with("--progress", 3).switch("--list-changed");
    server.with("--instructions", "Be kind.").config_key("unavailableAfterTimeouts", 9)
}

/// Returns every definition, byte for byte.
fn definitions(host: &Host) -> Vec<String> {
    let catalog = host.catalog();
    let server = catalog.server("a").unwrap();
    let listing = server.listing().unwrap();
    let mut all: Vec<String> = listing.tools.iter().map(|tool| tool.raw.to_string()).collect();
    all.extend(listing.prompts.iter().map(|prompt| prompt.raw.to_string()));
    all.extend(listing.resources.iter().map(|resource| resource.raw.to_string()));
    all.extend(listing.resource_templates.iter().map(|template| template.raw.to_string()));
    all.push(server.server_info().unwrap().to_string());
    all.extend(server.instructions().map(str::to_owned));
    all
}

/// Returns a result without the fields that only the modern era has.
fn normalized_result(raw: &str) -> String {
    let mut result: Value = serde_json::from_str(raw).unwrap();
    for member in ["_meta", "resultType", "ttlMs", "cacheScope"] {
        result.as_object_mut().unwrap().remove(member);
    }
    let text = result.to_string();
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    // Short texts stay readable in a failed comparison.
    if text.len() < 1000 { text } else { format!("{} bytes: {}", text.len(), hasher.finish()) }
}

async fn exercise(test_env: &TestEnv, host: &Host, gaps: TransportGaps) -> ServerTranscript {
    let definitions = definitions(host);
    let mut results = Vec::new();
    for (tool, arguments) in [
        ("a.echo", json!({"message": "hello"})),
        ("a.echo", json!({"message": NON_ASCII_TEXT})),
        ("a.add", json!({"a": 1, "b": 2})),
        ("a.a.b", json!({})),
        ("a.fail", json!({})),
        ("a.big", json!({"bytes": LARGE_RESULT_BYTES})),
    ] {
        let (sender, mut progress) = mpsc::channel(8);
        let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
        let result = host.call_tool_with(tool, arguments, options).await.unwrap();
        results.push(normalized_result(result.raw().get()));
        let steps: Vec<f64> =
            std::iter::from_fn(|| progress.try_recv().ok()).map(|step| step.progress).collect();
        if !gaps.progress {
            assert_eq!(steps, [1.0, 2.0, 3.0], "progress of {tool}");
        }
    }
    let greeted: Map<String, Value> = json!({"name": "Ada"}).as_object().unwrap().clone();
    let prompt = host.get_prompt("a.greet", &greeted, CallOptions::default()).await.unwrap();
    results.push(normalized_result(prompt.get()));
    let resource = host.read_resource("fx://a/static", None, CallOptions::default()).await.unwrap();
    results.push(normalized_result(resource.get()));
    let missing = host.read_resource("fx://a/no/such", Some("a"), CallOptions::default()).await;
    match missing {
        Err(CallError::Server { error, .. }) => results.push(format!("{error:?}")),
        other => panic!("no error of the server: {other:?}"),
    }
    time_out_call(test_env, host).await;
    if !gaps.list_changes {
        add_tool(host).await;
    }
    ServerTranscript { definitions, results }
}

/// Makes a call that times out and checks that the server receives its cancellation.
async fn time_out_call(test_env: &TestEnv, host: &Host) {
    let short_timeout = Some(Duration::from_millis(500));
    let options = CallOptions { timeout: short_timeout, ..CallOptions::default() };
    let result = host.call_tool_with("a.sleep", json!({"ms": 60_000}), options).await;
    assert!(matches!(result, Err(CallError::Timeout { .. })), "{result:?}");
    let journal =
        test_env.wait_for_journal(|journal| journal.count("notifications/cancelled") == 1).await;
    let call = journal.received("tools/call").last().unwrap().message["id"].clone();
    assert_eq!(journal.params("notifications/cancelled")[0]["requestId"], call);
}

async fn add_tool(host: &Host) {
    let mut events = host.events();
    let grown = host.call_tool("a.grow", json!({})).await.unwrap();
    let names: Vec<String> = serde_json::from_str(&result_text(&grown)).unwrap();
    wait_for_event(&mut events, |event| matches!(event, HostEvent::CatalogChanged { .. })).await;
    let added = format!("a.{}", names.last().unwrap());
    host.call_tool(&added, json!({})).await.unwrap();
}

async fn over_stdio(era: &str) -> ServerTranscript {
    let test_env = TestEnv::new();
    let host = test_env.start([fixture(&test_env, era)]).await.unwrap();
    let gaps = if era == "legacy" { NO_GAPS } else { NO_LIST_CHANGES };
    let transcript = exercise(&test_env, &host, gaps).await;
    host.shutdown().await;
    test_env.assert_gone().await;
    transcript
}

/// Compares the transcript over this transport with the transcript over stdio, and returns the
/// remote server.
async fn assert_same_as_stdio(
    era: &str,
    gaps: TransportGaps,
    transport: impl Fn(&TestEnv, RemoteServerBuilder) -> RemoteServerBuilder,
) -> RemoteServer {
    let test_env = TestEnv::new();
    let remote =
        transport(&test_env, RemoteServer::for_fixture(fixture(&test_env, era))).start().await;
    let host = start_host(&test_env, [("a", remote.config_entry())]).await;
    let transcript = exercise(&test_env, &host, gaps).await;
    assert_eq!(transcript, over_stdio(era).await);
    let report = host.shutdown().await;
    assert!(report.is_clean(), "{report:?}");
    remote
}

/// Returns the number of requests with this HTTP method and response status.
fn request_count(remote: &RemoteServer, method: &str, status: u16) -> usize {
    let requests = remote.requests();
    requests
        .iter()
        .filter(|request| request.method == method && request.status == Some(status))
        .count()
}

#[tokio::test]
async fn both_eras_offer_the_same() {
    assert_eq!(over_stdio("modern").await.definitions, over_stdio("legacy").await.definitions);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_event_streams_says_what_stdio_says() {
    let remote = assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| server_builder).await;
    assert_eq!(request_count(&remote, "DELETE", 200), 1);
    assert_eq!(request_count(&remote, "GET", 200), 1);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_of_the_modern_era_says_what_stdio_says() {
    let remote =
        assert_same_as_stdio("modern", NO_LIST_CHANGES, |_, server_builder| server_builder).await;
    assert_eq!(remote.requests().iter().filter(|seen| seen.method != "POST").count(), 0);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_json_responses_says_what_stdio_says() {
    let gaps = TransportGaps { progress: true, list_changes: false };
    assert_same_as_stdio("legacy", gaps, |_, server_builder| server_builder.with_json_responses())
        .await;
    let gaps = TransportGaps { progress: true, list_changes: true };
    assert_same_as_stdio("modern", gaps, |_, server_builder| server_builder.with_json_responses())
        .await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_without_a_server_stream_says_what_stdio_says() {
    let remote =
        assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| server_builder.without_get())
            .await;
    assert_eq!(request_count(&remote, "GET", 405), 1, "it was asked for again");
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_with_event_ids_says_what_stdio_says() {
    assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| server_builder.with_event_ids())
        .await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn streamable_http_without_sessions_says_what_stdio_says() {
    let remote = assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| {
        server_builder.without_session()
    })
    .await;
    assert_eq!(remote.requests().iter().filter(|seen| seen.method == "DELETE").count(), 0);
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn the_older_http_transport_says_what_stdio_says() {
    assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| server_builder.sse()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_server_of_the_older_http_transport_is_found_behind_an_address_of_the_newer() {
    assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| {
        server_builder.sse().with_type_name("http")
    })
    .await;
    for status in [400, 404] {
        let test_env = TestEnv::new();
        let server_builder = RemoteServer::for_fixture(test_env.fixture("a"))
            .sse()
            .with_type_name("http")
            .reject_post_with(status);
        let remote = server_builder.start().await;
        let host = start_host(&test_env, [("a", remote.config_entry())]).await;
        assert_eq!(super::echo(&host, "a", "found").await.unwrap(), "found", "HTTP {status}");
        host.shutdown().await;
    }
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_websocket_says_what_stdio_says() {
    assert_same_as_stdio("legacy", NO_GAPS, |_, server_builder| server_builder.websocket()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn a_websocket_of_the_modern_era_says_what_stdio_says() {
    assert_same_as_stdio("modern", NO_GAPS, |_, server_builder| server_builder.websocket()).await;
}

/// Proves: N11, FR2.3
#[tokio::test]
async fn http_through_a_unix_socket_says_what_stdio_says() {
    assert_same_as_stdio("legacy", NO_GAPS, |test_env, server_builder| {
        server_builder.on_unix_socket(&test_env.path("fx.sock"))
    })
    .await;
}
