//! Tests of HTTP faults.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fault, Journal, RemoteServer, fixture};
use tokio::io::AsyncReadExt;

use super::http::{HttpExchange, within_timeout};
use super::streamable::SessionClient;
use super::{RECEIVE_TIMEOUT, echo_call};
use crate::stdio_client::result_text;

/// Calls a tool on a server with this fault and returns the reply.
async fn call_with_fault(fault: Fault) -> (RemoteServer, HttpExchange) {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .fault(fault.on_rpc_method("tools/call"))
        .start()
        .await;
    let client = SessionClient::start_session(&remote).await;
    let reply = client.post(&echo_call(2, "hello")).await;
    (remote, reply)
}

/// As `call_with_fault`, with JSON responses.
async fn call_with_fault_as_json(fault: Fault) -> (RemoteServer, HttpExchange) {
    let plan = RemoteServer::for_fixture(fixture("a"))
        .with_json_responses()
        .fault(fault.on_rpc_method("tools/call"));
    let remote = plan.start().await;
    let client = SessionClient::start_session(&remote).await;
    let reply = client.post(&echo_call(2, "hello")).await;
    (remote, reply)
}

/// Sends a tool call without waiting for the response.
async fn send_with_fault(fault: Fault) -> (RemoteServer, HttpExchange) {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .fault(fault.on_rpc_method("tools/call"))
        .start()
        .await;
    let client = SessionClient::start_session(&remote).await;
    let reply = client.send(&echo_call(2, "hello")).await;
    (remote, reply)
}

#[tokio::test]
async fn a_status_comes_as_often_as_asked_with_its_headers_and_error() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let busy = Fault::status(503).header("retry-after", "1").on_rpc_method("tools/call").first_n(2);
    let plan = RemoteServer::for_fixture(fixture("a").journal(&journal)).fault(busy);
    let denied =
        Fault::status(429).rpc_error(-32000, "slower").on_rpc_method("tools/call").only_nth(4);
    let remote = plan.fault(denied).start().await;
    let client = SessionClient::start_session(&remote).await;
    for id in 2..4 {
        let mut reply = client.post(&echo_call(id, "x")).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
        assert!(reply.bytes().await.is_empty());
    }
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    assert_eq!(client.post(&echo_call(4, "x")).await.status, 200);
    let mut reply = client.post(&echo_call(5, "x")).await;
    assert_eq!((reply.status, &reply.json().await["id"]), (429, &5.into()));
    assert_eq!(client.post(&echo_call(6, "x")).await.status, 200);
    let requests = remote.requests();
    assert!(requests[2].fault.as_ref().is_some_and(|fault| fault.contains("503")));
    assert_eq!((requests[2].status, requests[4].fault.as_ref()), (Some(503), None));
}

#[tokio::test]
async fn an_answer_can_be_a_challenge_a_page_nothing_or_a_redirect() {
    let denied = Fault::status(401).header("www-authenticate", "Bearer realm=\"x\"");
    let (_remote, reply) = call_with_fault(denied).await;
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer realm=\"x\"")));
    let (_remote, mut reply) = call_with_fault(Fault::html_page()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html")));
    assert!(reply.bytes().await.starts_with(b"<!doctype html>"));
    let (_remote, mut reply) = call_with_fault(Fault::empty_response()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, None));
    assert!(reply.bytes().await.is_empty());
    let (_remote, reply) = call_with_fault(Fault::redirect(307, "http://127.0.0.2:9/mcp")).await;
    assert_eq!((reply.status, reply.header("location")), (307, Some("http://127.0.0.2:9/mcp")));
}

#[tokio::test]
async fn a_session_can_be_gone() {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .fault(Fault::session_gone().on_rpc_method("tools/call").only_nth(1));
    let remote = remote.start().await;
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.post(&echo_call(2, "x")).await.status, 404);
    assert_eq!(client.post(&echo_call(3, "x")).await.status, 404);
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.post(&echo_call(4, "x")).await.status, 200);
}

#[tokio::test]
async fn an_answer_can_have_another_content_type() {
    let (_remote, mut reply) = call_with_fault(Fault::content_type("text/plain")).await;
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(result_text(&reply.expect_event().await.message()), "hello");
}

#[tokio::test]
async fn an_answer_can_be_compressed() {
    for (json, (_remote, mut reply)) in [
        (false, call_with_fault(Fault::gzip()).await),
        (true, call_with_fault_as_json(Fault::gzip()).await),
    ] {
        assert_eq!(reply.header("content-encoding"), Some("gzip"));
        let packed = reply.bytes().await;
        assert!(packed.starts_with(&[0x1f, 0x8b]));
        let plain = gunzip(&packed);
        assert_eq!(plain.starts_with('{'), json, "{plain}");
        assert!(plain.contains("hello"));
    }
}

/// Decodes gzip data with the checks of the `gunzip` program.
#[expect(clippy::disallowed_methods, reason = "a second parser of the format")]
fn gunzip(packed: &[u8]) -> String {
    let mut gzip = Command::new("gzip");
    gzip.arg("-dc").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = gzip.spawn().unwrap();
    child.stdin.take().unwrap().write_all(packed).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout).unwrap()
}

#[tokio::test]
async fn a_head_can_be_late_or_never_come() {
    let (remote, mut reply) = send_with_fault(Fault::never_responds()).await;
    remote.wait_for(RECEIVE_TIMEOUT, |requests| requests.len() == 3).await;
    let short = Duration::from_millis(200);
    assert!(tokio::time::timeout(short, reply.read_head()).await.is_err());
    assert_eq!(remote.requests()[2].status, None);
    let (_remote, mut reply) = send_with_fault(Fault::delay(short)).await;
    assert!(tokio::time::timeout(short / 2, reply.read_head()).await.is_err());
    within_timeout(reply.read_head()).await.unwrap();
    assert_eq!(result_text(&reply.expect_event().await.message()), "hello");
}

#[tokio::test]
async fn a_connection_can_be_reset_before_an_answer_or_in_its_middle() {
    let (_remote, mut reply) = send_with_fault(Fault::reset_before_response()).await;
    assert_eq!(
        within_timeout(reply.read_head()).await.unwrap_err().kind(),
        ErrorKind::ConnectionReset
    );
    for (_remote, mut reply) in [
        call_with_fault(Fault::reset_mid_body()).await,
        call_with_fault_as_json(Fault::reset_mid_body()).await,
    ] {
        let (half, error) = reply.partial_body().await;
        assert!(half.contains('{') && !half.contains("hello"), "{half}");
        assert_eq!(error.unwrap().kind(), ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn headers_can_have_no_end() {
    let (_remote, mut reply) = send_with_fault(Fault::endless_headers()).await;
    let mut read = vec![0; 4_000_000];
    within_timeout(reply.stream.read_exact(&mut read)).await.unwrap();
    let read = String::from_utf8(read).unwrap();
    assert!(read.starts_with("HTTP/1.1 200 OK\r\nx-endless: ") && !read.contains("\r\n\r\n"));
}

#[tokio::test]
async fn an_answer_can_stall_in_its_middle() {
    let (_remote, mut reply) = call_with_fault(Fault::stall()).await;
    let (half, error) = reply.partial_body().await;
    assert!(half.contains("data: {") && !half.contains("\n\n") && error.is_none());
    let (_remote, mut reply) = call_with_fault(Fault::stall_for(Duration::from_millis(50))).await;
    assert_eq!(result_text(&reply.expect_event().await.message()), "hello");
    let (_remote, mut reply) =
        call_with_fault_as_json(Fault::stall_for(Duration::from_millis(50))).await;
    assert_eq!(result_text(&reply.json().await), "hello");
}

#[tokio::test]
async fn a_cut_stream_is_taken_up_where_it_ended() {
    let fault = Fault::cut_stream().with_retry_delay(Duration::from_millis(20));
    for (repeats, fault) in [(false, fault.clone()), (true, fault.replaying_twice())] {
        let remote = RemoteServer::for_fixture(fixture("a"))
            .fault(fault.on_rpc_method("tools/call"))
            .start()
            .await;
        let client = SessionClient::start_session(&remote).await;
        let mut reply = client.post(&echo_call(2, "hello")).await;
        let prime = reply.expect_event().await;
        assert_eq!((prime.retry.as_deref(), prime.data.as_str()), (Some("20"), ""));
        reply.assert_ended().await;
        let mut resumed = client.get(prime.id.as_deref()).await;
        let event = resumed.expect_event().await;
        assert_eq!(result_text(&event.message()), "hello");
        if repeats {
            assert_eq!(resumed.expect_event().await, event);
        }
        resumed.assert_ended().await;
        let mut after = client.get(event.id.as_deref()).await;
        let (rest, error) = after.partial_body().await;
        assert!(rest.is_empty() && error.is_none());
    }
}

#[tokio::test]
async fn an_event_can_be_long_twice_or_over_several_lines() {
    let (_remote, mut reply) = call_with_fault(Fault::prepend_message(1_000_000)).await;
    assert_eq!(reply.expect_event().await.data.len(), 1_000_000);
    assert_eq!(result_text(&reply.expect_event().await.message()), "hello");
    let (_remote, mut reply) = call_with_fault(Fault::duplicate()).await;
    assert_eq!(reply.expect_event().await, reply.expect_event().await);
    reply.assert_ended().await;
    let (_remote, mut reply) = call_with_fault(Fault::pretty_print()).await;
    let event = reply.expect_event().await;
    assert!(event.data.contains('\n') && result_text(&event.message()) == "hello");
    let (_remote, mut reply) = call_with_fault_as_json(Fault::prepend_message(1_000_000)).await;
    assert!(reply.bytes().await.len() > 1_000_000);
}

#[tokio::test]
async fn a_fault_can_be_for_an_http_method() {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .fault(Fault::status(502).on_http_method("GET").first_n(1));
    let remote = remote.start().await;
    let client = SessionClient::start_session(&remote).await;
    assert_eq!(client.get(None).await.status, 502);
    assert_eq!(client.get(None).await.status, 200);
}
