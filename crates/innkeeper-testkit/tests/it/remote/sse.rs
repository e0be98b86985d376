//! Tests of HTTP+SSE and of the fallback to it.

use innkeeper_testkit::{AnnouncedEndpoint, Fault, Journal, RemoteServer, fixture};

use super::http::{HttpExchange, within_timeout};
use super::{RECEIVE_TIMEOUT, echo_call, initialize, initialized};
use crate::stdio_client::result_text;

const ACCEPT_EVENTS: (&str, &str) = ("Accept", "text/event-stream");

async fn open_stream(remote: &RemoteServer) -> HttpExchange {
    HttpExchange::request(remote, "GET", "/sse", &[ACCEPT_EVENTS], None).await
}

async fn post(remote: &RemoteServer, path: &str, message: &serde_json::Value) -> HttpExchange {
    let json = [("Content-Type", "application/json")];
    HttpExchange::request(remote, "POST", path, &json, Some(message)).await
}

/// Returns an initialized session: its stream and its message endpoint.
async fn start_session(remote: &RemoteServer) -> (HttpExchange, String) {
    let mut stream = open_stream(remote).await;
    let endpoint = stream.expect_event().await;
    assert_eq!(endpoint.name.as_deref(), Some("endpoint"));
    assert_eq!(post(remote, &endpoint.data, &initialize()).await.status, 202);
    assert_eq!(stream.expect_event().await.message()["id"], 1);
    assert_eq!(post(remote, &endpoint.data, &initialized()).await.status, 202);
    (stream, endpoint.data)
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_answered_on_the_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote = RemoteServer::for_fixture(fixture("a").journal(&journal)).sse().start().await;
    assert!(remote.url().ends_with("/sse"));
    let (mut stream, endpoint) = start_session(&remote).await;
    assert!(endpoint.starts_with("/message?sessionId="));
    assert_eq!(post(&remote, &endpoint, &echo_call(2, "hello")).await.status, 202);
    let event = stream.expect_event().await;
    assert_eq!((event.name.as_deref(), result_text(&event.message())), (Some("message"), "hello"));
    assert_eq!(post(&remote, "/message?sessionId=no", &echo_call(2, "x")).await.status, 404);
    let second = start_session(&remote).await;
    assert_eq!(remote.pids().len(), 2);
    drop(second);
    drop(stream);
    within_timeout(async {
        while !remote.pids().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(post(&remote, &endpoint, &echo_call(3, "x")).await.status, 404);
}

#[tokio::test]
async fn what_is_posted_to_the_stream_is_refused_so_that_clients_fall_back() {
    let remote = RemoteServer::for_fixture(fixture("a")).sse().start().await;
    assert_eq!(post(&remote, "/sse", &initialize()).await.status, 405);
    let remote = RemoteServer::for_fixture(fixture("a")).sse().reject_post_with(404).start().await;
    assert_eq!(post(&remote, "/sse", &initialize()).await.status, 404);
    start_session(&remote).await;
}

#[tokio::test]
async fn the_endpoint_can_be_absolute_elsewhere_or_never_announced() {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .sse()
        .endpoint(AnnouncedEndpoint::Absolute)
        .start()
        .await;
    let address = open_stream(&remote).await.expect_event().await.data;
    assert!(address.starts_with(&format!("{}/message?", remote.origin())));
    let elsewhere = AnnouncedEndpoint::Fixed("http://127.0.0.2:9".to_owned());
    let remote = RemoteServer::for_fixture(fixture("a")).sse().endpoint(elsewhere).start().await;
    assert!(
        open_stream(&remote)
            .await
            .expect_event()
            .await
            .data
            .starts_with("http://127.0.0.2:9/message?")
    );
    let remote = RemoteServer::for_fixture(fixture("a"))
        .sse()
        .endpoint(AnnouncedEndpoint::Never)
        .start()
        .await;
    let (text, error) = open_stream(&remote).await.partial_body().await;
    assert!(text.is_empty() && error.is_none());
}

#[tokio::test]
async fn answers_on_the_stream_can_fail_as_those_of_a_request_do() {
    let stall = Fault::stall().on_rpc_method("tools/call").only_nth(2);
    let duplicate_fault = Fault::duplicate().on_rpc_method("tools/call");
    let remote = RemoteServer::for_fixture(fixture("a"))
        .sse()
        .fault(stall)
        .fault(duplicate_fault)
        .start()
        .await;
    let (mut stream, endpoint) = start_session(&remote).await;
    post(&remote, &endpoint, &echo_call(2, "x")).await;
    assert_eq!(stream.expect_event().await, stream.expect_event().await);
    post(&remote, &endpoint, &echo_call(3, "x")).await;
    let (half, error) = stream.partial_body().await;
    assert!(half.starts_with("event: message\ndata: {") && error.is_none(), "{half}");
    let busy = Fault::status(503).on_rpc_method("tools/call").first_n(1);
    let remote = RemoteServer::for_fixture(fixture("a")).sse().fault(busy).start().await;
    let (_stream, endpoint) = start_session(&remote).await;
    assert_eq!(post(&remote, &endpoint, &echo_call(2, "x")).await.status, 503);
    assert_eq!(post(&remote, &endpoint, &echo_call(3, "x")).await.status, 202);
}

#[tokio::test]
async fn a_server_that_ends_ends_the_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote =
        RemoteServer::for_fixture(fixture("a").journal(&journal).with("--crash-after", 1)).sse();
    let remote = remote.start().await;
    let (mut stream, endpoint) = start_session(&remote).await;
    post(&remote, &endpoint, &echo_call(2, "x")).await;
    stream.assert_ended().await;
    Journal::wait_for(&journal, RECEIVE_TIMEOUT, |journal| !journal.events("exit").is_empty())
        .await;
}
