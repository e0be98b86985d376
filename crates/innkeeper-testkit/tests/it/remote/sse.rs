//! HTTP+SSE of the first revision, and falling back to it.

use innkeeper_testkit::{Endpoint, Fault, Journal, Remote, fx};

use super::http::{Http, soon};
use super::{PATIENCE, echo, initialize, initialized};
use crate::talk::text;

const EVENTS: (&str, &str) = ("Accept", "text/event-stream");

async fn open(remote: &Remote) -> Http {
    Http::ask(remote, "GET", "/sse", &[EVENTS], None).await
}

async fn post(remote: &Remote, path: &str, message: &serde_json::Value) -> Http {
    let json = [("Content-Type", "application/json")];
    Http::ask(remote, "POST", path, &json, Some(message)).await
}

/// A stream with its handshake done, and where to post.
async fn begin(remote: &Remote) -> (Http, String) {
    let mut stream = open(remote).await;
    let endpoint = stream.event().await;
    assert_eq!(endpoint.name.as_deref(), Some("endpoint"));
    assert_eq!(post(remote, &endpoint.data, &initialize()).await.status, 202);
    assert_eq!(stream.event().await.message()["id"], 1);
    assert_eq!(post(remote, &endpoint.data, &initialized()).await.status, 202);
    (stream, endpoint.data)
}

#[tokio::test]
async fn messages_are_posted_to_the_endpoint_and_answered_on_the_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote = Remote::of(fx("a").journal(&journal)).sse().start().await;
    assert!(remote.url().ends_with("/sse"));
    let (mut stream, endpoint) = begin(&remote).await;
    assert!(endpoint.starts_with("/message?sessionId="));
    assert_eq!(post(&remote, &endpoint, &echo(2, "hello")).await.status, 202);
    let event = stream.event().await;
    assert_eq!((event.name.as_deref(), text(&event.message())), (Some("message"), "hello"));
    assert_eq!(post(&remote, "/message?sessionId=no", &echo(2, "x")).await.status, 404);
    let second = begin(&remote).await;
    assert_eq!(remote.pids().len(), 2);
    drop(second);
    drop(stream);
    soon(async {
        while !remote.pids().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    })
    .await;
    assert_eq!(post(&remote, &endpoint, &echo(3, "x")).await.status, 404);
}

#[tokio::test]
async fn what_is_posted_to_the_stream_is_refused_so_that_clients_fall_back() {
    let remote = Remote::of(fx("a")).sse().start().await;
    assert_eq!(post(&remote, "/sse", &initialize()).await.status, 405);
    let remote = Remote::of(fx("a")).sse().refusing_post(404).start().await;
    assert_eq!(post(&remote, "/sse", &initialize()).await.status, 404);
    begin(&remote).await;
}

#[tokio::test]
async fn the_endpoint_can_be_absolute_elsewhere_or_never_said() {
    let remote = Remote::of(fx("a")).sse().endpoint(Endpoint::Absolute).start().await;
    let address = open(&remote).await.event().await.data;
    assert!(address.starts_with(&format!("{}/message?", remote.origin())));
    let elsewhere = Endpoint::At("http://127.0.0.2:9".to_owned());
    let remote = Remote::of(fx("a")).sse().endpoint(elsewhere).start().await;
    assert!(open(&remote).await.event().await.data.starts_with("http://127.0.0.2:9/message?"));
    let remote = Remote::of(fx("a")).sse().endpoint(Endpoint::Never).start().await;
    let (text, error) = open(&remote).await.half().await;
    assert!(text.is_empty() && error.is_none());
}

#[tokio::test]
async fn answers_on_the_stream_can_fail_as_those_of_a_request_do() {
    let stall = Fault::stall().on("tools/call").nth(2);
    let twice = Fault::twice().on("tools/call");
    let remote = Remote::of(fx("a")).sse().fault(stall).fault(twice).start().await;
    let (mut stream, endpoint) = begin(&remote).await;
    post(&remote, &endpoint, &echo(2, "x")).await;
    assert_eq!(stream.event().await, stream.event().await);
    post(&remote, &endpoint, &echo(3, "x")).await;
    let (half, error) = stream.half().await;
    assert!(half.starts_with("event: message\ndata: {") && error.is_none(), "{half}");
    let busy = Fault::status(503).on("tools/call").times(1);
    let remote = Remote::of(fx("a")).sse().fault(busy).start().await;
    let (_stream, endpoint) = begin(&remote).await;
    assert_eq!(post(&remote, &endpoint, &echo(2, "x")).await.status, 503);
    assert_eq!(post(&remote, &endpoint, &echo(3, "x")).await.status, 202);
}

#[tokio::test]
async fn a_server_that_ends_ends_the_stream() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let remote = Remote::of(fx("a").journal(&journal).with("--crash-after", 1)).sse();
    let remote = remote.start().await;
    let (mut stream, endpoint) = begin(&remote).await;
    post(&remote, &endpoint, &echo(2, "x")).await;
    stream.assert_ended().await;
    Journal::until(&journal, PATIENCE, |journal| !journal.events("exit").is_empty()).await;
}
