//! Interrupted streams and their resumption.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::error::UnavailableReason;
use innkeeper_host::{CallOptions, CallbackCapabilities, ServerRequest};
use innkeeper_testkit::{Fault, RecordedRequest, RemoteServer};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::{assert_responds, config_json, echo, start_host_with_neighbour, unavailable_error};
use crate::setup::{TEST_TIMEOUT, TestEnv, builder, result_text};

/// Returns the `Last-Event-ID` of each GET that resumes a stream.
fn resumed_streams(remote: &RemoteServer) -> Vec<String> {
    let requests: Vec<RecordedRequest> = remote.requests();
    let gets = requests.iter().filter(|request| request.method == "GET");
    gets.filter_map(|request| request.header("last-event-id").map(str::to_owned)).collect()
}

#[tokio::test]
async fn a_stream_that_ends_before_the_response_is_resumed_after_its_last_event_when_the_server_says()
 {
    let test_env = TestEnv::new();
    let delay = Duration::from_millis(700);
    let cut_fault =
        Fault::cut_stream().with_retry_delay(delay).on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(test_env.fixture("a")).fault(cut_fault).start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let started_at = Instant::now();
    assert_eq!(echo(&host, "a", "at last").await.unwrap(), "at last");
    assert!(started_at.elapsed() >= delay, "it came back too early: {:?}", started_at.elapsed());
    let after = resumed_streams(&remote);
    assert_eq!(after.len(), 1, "{after:?}");
    assert!(after[0].ends_with("_1"), "{after:?}");
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
    assert_responds(&host, "b").await;
    host.shutdown().await;
}

#[tokio::test]
async fn a_stream_of_a_session_that_is_gone_is_lost_at_once() {
    let test_env = TestEnv::new();
    let cut = Fault::cut_stream().with_retry_delay(Duration::from_millis(500));
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .fault(cut.on_rpc_method("tools/call").only_nth(1))
        .fault(Fault::session_gone().on_rpc_method("tools/call").only_nth(2))
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let (cut, renewed) = tokio::join!(echo(&host, "a", "cut"), async {
        test_env.wait_for_journal(|journal| journal.for_server("a").count("tools/call") == 1).await;
        echo(&host, "a", "renewed").await
    });
    assert_eq!(renewed.unwrap(), "renewed");
    let (reason, may_have_run) = unavailable_error(cut);
    assert!(may_have_run && matches!(reason, UnavailableReason::ConnectionLost(_)), "{reason:?}");
    assert!(resumed_streams(&remote).is_empty());
    host.shutdown().await;
}

/// Fault 92.
/// Attack: remote | a resumed stream repeats its events | progress, the request to the application
/// and the result arrive once | Own response
#[tokio::test]
async fn events_that_come_twice_are_taken_once() {
    let test_env = TestEnv::new();
    let short_delay = Duration::from_millis(10);
    let cut_fault = Fault::cut_stream()
        .with_retry_delay(short_delay)
        .replaying_twice()
        .on_rpc_method("tools/call")
        .only_nth(1);
    let server = test_env.fixture("a").with("--progress", 3).switch("--ask-sampling");
    let remote = RemoteServer::for_fixture(server).fault(cut_fault).start().await;
    let request_count = Arc::new(AtomicUsize::new(0));
    let callback = {
        let request_count = request_count.clone();
        move |_: ServerRequest| {
            request_count.fetch_add(1, Ordering::Relaxed);
            async { Ok(json!({"is": "an answer"})) }
        }
    };
    let builder = builder(test_env.config_from(&config_json([("a", remote.config_entry())])));
    let host = builder.callback(&CallbackCapabilities::sampling(), callback).start().await.unwrap();
    let (sender, mut steps) = mpsc::channel(16);
    let options = CallOptions { progress: Some(sender), ..CallOptions::default() };
    let result = host.call_tool_with("a.pid", (), options).await.unwrap();
    assert_eq!(result_text(&result).matches("an answer").count(), 1);
    let mut received = Vec::new();
    while let Some(step) = steps.recv().await {
        received.push(step.progress);
    }
    assert!(received.is_sorted_by(|one, next| one < next), "{received:?}");
    assert_eq!(request_count.load(Ordering::Relaxed), 1, "the application was asked twice");
    host.shutdown().await;
}

/// Fault 92.
#[tokio::test]
async fn a_stream_that_is_reset_in_the_middle_of_an_event_is_resumed_where_it_has_ids() {
    let test_env = TestEnv::new();
    let reset = Fault::reset_mid_body().on_rpc_method("tools/call").only_nth(1);
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .with_event_ids()
        .fault(reset)
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    assert_eq!(echo(&host, "a", "whole").await.unwrap(), "whole");
    assert_eq!(resumed_streams(&remote).len(), 1);
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
    host.shutdown().await;
}

/// Fault 92.
/// Attack: remote | the connection is reset in the middle of a response | the call fails as
/// possibly executed and is sent once | No repeated execution
#[tokio::test]
async fn without_ids_a_call_whose_stream_is_reset_may_have_run_and_is_not_sent_again() {
    for json in [false, true] {
        let test_env = TestEnv::new();
        let reset = Fault::reset_mid_body().on_rpc_method("tools/call").only_nth(1);
        let server_builder = RemoteServer::for_fixture(test_env.fixture("a")).fault(reset);
        let server_builder =
            if json { server_builder.with_json_responses() } else { server_builder };
        let remote = server_builder.start().await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let (reason, may_have_run) = unavailable_error(echo(&host, "a", "").await);
        assert!(
            matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run,
            "{reason:?}"
        );
        assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
        assert_responds(&host, "b").await;
        assert_responds(&host, "a").await;
        host.shutdown().await;
    }
}

/// Attack: remote | a stream ends at once and demands a retry after 0 ms | the host resumes the
/// stream fewer than 10 times per second | No unbounded wait
#[tokio::test]
async fn a_server_that_wants_its_streams_resumed_at_once_is_not_asked_without_a_pause() {
    let test_env = TestEnv::new();
    let cut_fault = Fault::cut_stream()
        .with_retry_delay(Duration::ZERO)
        .on_rpc_method("tools/call")
        .only_nth(1);
    let nothing =
        Fault::body(200, "text/event-stream", "retry: 0\nid: 0_1\n\n").on_http_method("GET");
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .fault(cut_fault)
        .fault(nothing)
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let options = CallOptions { timeout: Some(Duration::from_secs(1)), ..CallOptions::default() };
    let result = host.call_tool_with("a.echo", json!({"message": ""}), options).await;
    assert_eq!(result.unwrap_err().class(), innkeeper_host::ErrorClass::Timeout);
    let resume_count = resumed_streams(&remote).len();
    assert!((3..10).contains(&resume_count), "{resume_count} times in a second");
    host.shutdown().await;
}

#[tokio::test]
async fn a_stream_that_cannot_be_resumed_ends_the_call_as_one_that_may_have_run() {
    let test_env = TestEnv::new();
    let cut_fault = Fault::cut_stream()
        .with_retry_delay(Duration::from_millis(1))
        .on_rpc_method("tools/call")
        .only_nth(1);
    let bad_request = Fault::status(400).on_http_method("GET");
    let remote = RemoteServer::for_fixture(test_env.fixture("a"))
        .fault(cut_fault)
        .fault(bad_request)
        .start()
        .await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let (reason, may_have_run) = unavailable_error(echo(&host, "a", "").await);
    assert!(matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run, "{reason:?}");
    assert_eq!(resumed_streams(&remote).len(), 1);
    assert_eq!(test_env.journal().for_server("a").count("tools/call"), 1);
    assert_responds(&host, "a").await;
    host.shutdown().await;
}

/// Attack: remote | a stream ends before the response, and each attempt to resume it fails or finds
/// an empty stream | the host gives up after five attempts | No unbounded wait
#[tokio::test]
async fn a_stream_is_resumed_at_most_five_times_in_a_row_without_data() {
    let empty = Fault::body(200, "text/event-stream", "");
    for failure in [Fault::reset_before_response(), empty] {
        let test_env = TestEnv::new();
        let cut_fault = Fault::cut_stream()
            .with_retry_delay(Duration::from_millis(1))
            .on_rpc_method("tools/call")
            .only_nth(1);
        let remote = RemoteServer::for_fixture(test_env.fixture("a"))
            .fault(cut_fault)
            .fault(failure.on_http_method("GET"))
            .start()
            .await;
        let host = start_host_with_neighbour(&test_env, &remote).await;
        let (reason, may_have_run) = unavailable_error(echo(&host, "a", "").await);
        assert!(
            matches!(reason, UnavailableReason::ConnectionLost(_)) && may_have_run,
            "{reason:?}"
        );
        assert_eq!(resumed_streams(&remote).len(), 5);
        host.shutdown().await;
    }
}

#[tokio::test]
async fn the_servers_own_stream_is_resumed_after_its_last_event() {
    let test_env = TestEnv::new();
    let server = test_env.fixture("a").switch("--list-changed");
    let remote =
        RemoteServer::for_fixture(server).with_json_responses().with_event_ids().start().await;
    let host = start_host_with_neighbour(&test_env, &remote).await;
    let mut events = host.events();
    let is_change = |event: &innkeeper_host::HostEvent| {
        matches!(event, innkeeper_host::HostEvent::CatalogChanged { .. })
    };
    host.call_tool("a.grow", json!({})).await.unwrap();
    crate::setup::wait_for_event(&mut events, is_change).await;
    remote.reset_connections();
    let has_resumed = |requests: &[RecordedRequest]| {
        requests.iter().any(|request| request.header("last-event-id").is_some())
    };
    remote.wait_for(TEST_TIMEOUT, has_resumed).await;
    host.call_tool("a.grow", json!({})).await.unwrap();
    crate::setup::wait_for_event(&mut events, is_change).await;
    host.shutdown().await;
}
