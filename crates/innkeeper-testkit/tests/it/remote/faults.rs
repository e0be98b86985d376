//! The faults of HTTP, one by one.

use std::io::{ErrorKind, Write};
use std::process::{Command, Stdio};
use std::time::Duration;

use innkeeper_testkit::{Fault, Journal, Remote, fx};
use tokio::io::AsyncReadExt;

use super::http::{Http, soon};
use super::streamable::Client;
use super::{PATIENCE, echo};
use crate::talk::text;

/// The reply to a tool call at a server with this fault.
async fn called(fault: Fault) -> (Remote, Http) {
    let remote = Remote::of(fx("a")).fault(fault.on("tools/call")).start().await;
    let client = Client::begin(&remote).await;
    let reply = client.post(&echo(2, "hello")).await;
    (remote, reply)
}

/// The same at a server that answers with JSON.
async fn called_as_json(fault: Fault) -> (Remote, Http) {
    let plan = Remote::of(fx("a")).answers_as_json().fault(fault.on("tools/call"));
    let remote = plan.start().await;
    let client = Client::begin(&remote).await;
    let reply = client.post(&echo(2, "hello")).await;
    (remote, reply)
}

/// A tool call that is sent and not waited for.
async fn sent(fault: Fault) -> (Remote, Http) {
    let remote = Remote::of(fx("a")).fault(fault.on("tools/call")).start().await;
    let client = Client::begin(&remote).await;
    let reply = client.send(&echo(2, "hello")).await;
    (remote, reply)
}

#[tokio::test]
async fn a_status_comes_as_often_as_asked_with_its_headers_and_error() {
    let directory = tempfile::tempdir().unwrap();
    let journal = directory.path().join("journal");
    let busy = Fault::status(503).header("retry-after", "1").on("tools/call").times(2);
    let plan = Remote::of(fx("a").journal(&journal)).fault(busy);
    let denied = Fault::status(429).rpc_error(-32000, "slower").on("tools/call").nth(4);
    let remote = plan.fault(denied).start().await;
    let client = Client::begin(&remote).await;
    for id in 2..4 {
        let mut reply = client.post(&echo(id, "x")).await;
        assert_eq!((reply.status, reply.header("retry-after")), (503, Some("1")));
        assert!(reply.bytes().await.is_empty());
    }
    assert_eq!(Journal::read(&journal).count("tools/call"), 0);
    assert_eq!(client.post(&echo(4, "x")).await.status, 200);
    let mut reply = client.post(&echo(5, "x")).await;
    assert_eq!((reply.status, &reply.json().await["id"]), (429, &5.into()));
    assert_eq!(client.post(&echo(6, "x")).await.status, 200);
    let seen = remote.requests();
    assert!(seen[2].fault.as_ref().is_some_and(|fault| fault.contains("503")));
    assert_eq!((seen[2].status, seen[4].fault.as_ref()), (Some(503), None));
}

#[tokio::test]
async fn an_answer_can_be_a_challenge_a_page_nothing_or_a_redirect() {
    let denied = Fault::status(401).header("www-authenticate", "Bearer realm=\"x\"");
    let (_remote, reply) = called(denied).await;
    assert_eq!((reply.status, reply.header("www-authenticate")), (401, Some("Bearer realm=\"x\"")));
    let (_remote, mut reply) = called(Fault::html()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("text/html")));
    assert!(reply.bytes().await.starts_with(b"<!doctype html>"));
    let (_remote, mut reply) = called(Fault::empty()).await;
    assert_eq!((reply.status, reply.header("content-type")), (200, None));
    assert!(reply.bytes().await.is_empty());
    let (_remote, reply) = called(Fault::redirect(307, "http://127.0.0.2:9/mcp")).await;
    assert_eq!((reply.status, reply.header("location")), (307, Some("http://127.0.0.2:9/mcp")));
}

#[tokio::test]
async fn a_session_can_be_gone() {
    let remote = Remote::of(fx("a")).fault(Fault::session_gone().on("tools/call").nth(1));
    let remote = remote.start().await;
    let client = Client::begin(&remote).await;
    assert_eq!(client.post(&echo(2, "x")).await.status, 404);
    assert_eq!(client.post(&echo(3, "x")).await.status, 404);
    let client = Client::begin(&remote).await;
    assert_eq!(client.post(&echo(4, "x")).await.status, 200);
}

#[tokio::test]
async fn an_answer_can_have_another_content_type() {
    let (_remote, mut reply) = called(Fault::content_type("text/plain")).await;
    assert_eq!(reply.header("content-type"), Some("text/plain"));
    assert_eq!(text(&reply.event().await.message()), "hello");
}

#[tokio::test]
async fn an_answer_can_be_compressed() {
    for (json, (_remote, mut reply)) in
        [(false, called(Fault::gzip()).await), (true, called_as_json(Fault::gzip()).await)]
    {
        assert_eq!(reply.header("content-encoding"), Some("gzip"));
        let packed = reply.bytes().await;
        assert!(packed.starts_with(&[0x1f, 0x8b]));
        let plain = unpacked(&packed);
        assert_eq!(plain.starts_with('{'), json, "{plain}");
        assert!(plain.contains("hello"));
    }
}

/// As the program of that name unpacks it, its checks included.
#[expect(clippy::disallowed_methods, reason = "another reader of the format")]
fn unpacked(packed: &[u8]) -> String {
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
    let (remote, mut reply) = sent(Fault::silence()).await;
    remote.until(PATIENCE, |seen| seen.len() == 3).await;
    let short = Duration::from_millis(200);
    assert!(tokio::time::timeout(short, reply.head()).await.is_err());
    assert_eq!(remote.requests()[2].status, None);
    let (_remote, mut reply) = sent(Fault::delay(short)).await;
    assert!(tokio::time::timeout(short / 2, reply.head()).await.is_err());
    soon(reply.head()).await.unwrap();
    assert_eq!(text(&reply.event().await.message()), "hello");
}

#[tokio::test]
async fn a_connection_can_be_reset_before_an_answer_or_in_its_middle() {
    let (_remote, mut reply) = sent(Fault::hang_up()).await;
    assert_eq!(soon(reply.head()).await.unwrap_err().kind(), ErrorKind::ConnectionReset);
    for (_remote, mut reply) in [called(Fault::reset()).await, called_as_json(Fault::reset()).await]
    {
        let (half, error) = reply.half().await;
        assert!(half.contains('{') && !half.contains("hello"), "{half}");
        assert_eq!(error.unwrap().kind(), ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn headers_can_have_no_end() {
    let (_remote, mut reply) = sent(Fault::endless_headers()).await;
    let mut read = vec![0; 4_000_000];
    soon(reply.stream.read_exact(&mut read)).await.unwrap();
    let read = String::from_utf8(read).unwrap();
    assert!(read.starts_with("HTTP/1.1 200 OK\r\nx-endless: ") && !read.contains("\r\n\r\n"));
}

#[tokio::test]
async fn an_answer_can_stall_in_its_middle() {
    let (_remote, mut reply) = called(Fault::stall()).await;
    let (half, error) = reply.half().await;
    assert!(half.contains("data: {") && !half.contains("\n\n") && error.is_none());
    let (_remote, mut reply) = called(Fault::stall_for(Duration::from_millis(50))).await;
    assert_eq!(text(&reply.event().await.message()), "hello");
    let (_remote, mut reply) = called_as_json(Fault::stall_for(Duration::from_millis(50))).await;
    assert_eq!(text(&reply.json().await), "hello");
}

#[tokio::test]
async fn a_cut_stream_is_taken_up_where_it_ended() {
    let fault = Fault::cut().retry_in(Duration::from_millis(20));
    for (repeats, fault) in [(false, fault.clone()), (true, fault.repeating())] {
        let remote = Remote::of(fx("a")).fault(fault.on("tools/call")).start().await;
        let client = Client::begin(&remote).await;
        let mut reply = client.post(&echo(2, "hello")).await;
        let prime = reply.event().await;
        assert_eq!((prime.retry.as_deref(), prime.data.as_str()), (Some("20"), ""));
        reply.assert_ended().await;
        let mut again = client.get(prime.id.as_deref()).await;
        let event = again.event().await;
        assert_eq!(text(&event.message()), "hello");
        if repeats {
            assert_eq!(again.event().await, event);
        }
        again.assert_ended().await;
        let mut after = client.get(event.id.as_deref()).await;
        let (rest, error) = after.half().await;
        assert!(rest.is_empty() && error.is_none());
    }
}

#[tokio::test]
async fn an_event_can_be_long_twice_or_over_several_lines() {
    let (_remote, mut reply) = called(Fault::long(1_000_000)).await;
    assert_eq!(reply.event().await.data.len(), 1_000_000);
    assert_eq!(text(&reply.event().await.message()), "hello");
    let (_remote, mut reply) = called(Fault::twice()).await;
    assert_eq!(reply.event().await, reply.event().await);
    reply.assert_ended().await;
    let (_remote, mut reply) = called(Fault::pretty()).await;
    let event = reply.event().await;
    assert!(event.data.contains('\n') && text(&event.message()) == "hello");
    let (_remote, mut reply) = called_as_json(Fault::long(1_000_000)).await;
    assert!(reply.bytes().await.len() > 1_000_000);
}

#[tokio::test]
async fn a_fault_can_be_for_an_http_method() {
    let remote = Remote::of(fx("a")).fault(Fault::status(502).on_http("GET").times(1));
    let remote = remote.start().await;
    let client = Client::begin(&remote).await;
    assert_eq!(client.get(None).await.status, 502);
    assert_eq!(client.get(None).await.status, 200);
}
