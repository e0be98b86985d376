//! Tests of connections with clients that stall, in paused time.

use std::convert::Infallible;

use axum::body::Body;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::*;

/// The time that a client has in these tests.
const PROGRESS_TIME: Duration = Duration::from_secs(10);

/// A length that no buffer of a connection takes at once.
const LARGE: usize = 1 << 20;

/// A server whose routes answer with small, large, endless and silent bodies.
fn server() -> Server {
    let mut options = GatewayOptions::default();
    options.limits.request_time = PROGRESS_TIME;
    let event = || Ok::<_, Infallible>(Bytes::from_static(b"data: x\n\n"));
    let endless = move || async move { Body::from_stream(stream::repeat_with(event)) };
    let silent = || async { Body::from_stream(stream::pending::<Result<Bytes, Infallible>>()) };
    let router = Router::new()
        .route("/", get(async || "ok"))
        .route("/body", post(async |body: String| body))
        .route("/large", get(async || vec![b'x'; LARGE]))
        .route("/endless", get(endless))
        .route("/silent", get(silent));
    Server {
        builder: builder(&options),
        routes: TowerToHyperService::new(router),
        progress_time: PROGRESS_TIME,
        principals: PrincipalLimit::new(usize::MAX),
    }
}

/// A client on a connection with small buffers.
struct TestClient {
    stream: DuplexStream,
    serving: JoinSet<Option<Stall>>,
    connected: Instant,
}

impl TestClient {
    async fn send(bytes: &[u8]) -> Self {
        Self::send_until(bytes, std::future::pending()).await
    }

    async fn send_until(bytes: &[u8], closing: impl Future<Output = ()> + Send + 'static) -> Self {
        let (mut stream, far) = tokio::io::duplex(4 << 10);
        let mut serving = JoinSet::new();
        serving
            .spawn(async move { server().serve_connection(far, Peer::default(), closing).await });
        stream.write_all(bytes).await.unwrap();
        Self { stream, serving, connected: Instant::now() }
    }

    /// Returns the time until the gateway ended the connection, and the reason.
    async fn end(mut self) -> (Duration, Option<Stall>) {
        let stall = self.serving.join_next().await.unwrap().unwrap();
        (self.connected.elapsed(), stall)
    }

    async fn read_until(&mut self, text: &str) {
        let mut read = String::new();
        while !read.contains(text) {
            read.push(self.stream.read_u8().await.unwrap().into());
        }
    }
}

fn request(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nhost: x\r\n\r\n").into_bytes()
}

/// The bytes that open a connection of HTTP/2 whose streams have a window of `window` bytes, and a
/// request.
fn http2_request(path: &str, window: u32) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS with SETTINGS_INITIAL_WINDOW_SIZE.
    bytes.extend([0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4]);
    bytes.extend(window.to_be_bytes());
    // `:method: GET`, `:scheme: http`, `:path` and `:authority` without an index.
    let mut head = vec![0x82, 0x86, 0x04, u8::try_from(path.len()).unwrap()];
    head.extend(path.as_bytes());
    head.extend([0x01, 1, b'x']);
    // HEADERS with END_STREAM and END_HEADERS on stream 1.
    bytes.extend([0, 0, u8::try_from(head.len()).unwrap(), 1, 5, 0, 0, 0, 1]);
    bytes.extend(head);
    bytes
}

/// Attack: remote | a client opens connections and sends nothing, a part of the preface of HTTP/2, a
/// part of a head, or no second request | each connection ends | No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_connection_ends_if_no_request_arrives_in_time() {
    for start in [&b""[..], b"P", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"GET / HTTP/1.1\r\nho"] {
        let (elapsed, stall) = TestClient::send(start).await.end().await;
        let text = String::from_utf8_lossy(start);
        assert_eq!(stall, Some(Stall::Idle), "{text:?}");
        assert!((PROGRESS_TIME..=PROGRESS_TIME + FAREWELL_TIME).contains(&elapsed), "{text:?}");
    }
    let mut idle = TestClient::send(&request("/")).await;
    idle.read_until("ok").await;
    let (elapsed, stall) = idle.end().await;
    assert!(elapsed <= PROGRESS_TIME + FAREWELL_TIME);
    assert_eq!(stall, Some(Stall::Idle));
}

#[tokio::test(start_paused = true)]
async fn a_new_connection_gets_its_first_response_although_the_gateway_closes() {
    let mut client = TestClient::send_until(b"", std::future::ready(())).await;
    sleep(FIRST_REQUEST_TIME / 2).await;
    client.stream.write_all(&request("/")).await.unwrap();
    client.read_until("ok").await;
    assert_eq!(client.end().await.1, None);
    let silent = TestClient::send_until(b"", std::future::ready(())).await;
    assert_eq!(silent.end().await, (FIRST_REQUEST_TIME, None));
}

/// Attack: remote | a client sends a head one byte at a time | the time counts for the whole head |
/// No unbounded wait
#[tokio::test(start_paused = true)]
async fn a_head_that_arrives_byte_by_byte_has_the_time_of_one_request() {
    let mut client = TestClient::send(b"GET / HTTP/1.1\r\nx: ").await;
    loop {
        tokio::select! {
            biased;
            _ = client.serving.join_next() => break,
            () = sleep(Duration::from_secs(1)) => {}
        }
        if client.stream.write_all(b"x").await.is_err() {
            break;
        }
    }
    assert!(client.connected.elapsed() <= PROGRESS_TIME + 2 * FAREWELL_TIME);
}

/// Attack: remote | a client requests a large response or a stream of events and reads none of it,
/// also with a window of 0 in HTTP/2 | the connection ends, and its buffers with it | No unbounded
/// memory
#[tokio::test(start_paused = true)]
async fn a_connection_ends_if_its_client_does_not_read() {
    let requests = [
        request("/large"),
        request("/endless"),
        http2_request("/large", 0),
        http2_request("/endless", 0),
        http2_request("/large", 1 << 15),
    ];
    for (number, request) in requests.into_iter().enumerate() {
        let (elapsed, stall) = TestClient::send(&request).await.end().await;
        assert_eq!(stall, Some(Stall::Unread), "case {number}");
        // The connection can take one more part when the time is checked.
        let limit = 2 * PROGRESS_TIME + FAREWELL_TIME;
        assert!((PROGRESS_TIME..=limit).contains(&elapsed), "case {number}: {elapsed:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_slow_reader_gets_its_whole_response_and_a_silent_stream_stays_open() {
    let mut slow = TestClient::send(&request("/large")).await;
    slow.read_until("\r\n\r\n").await;
    let mut part = vec![0; LARGE / 16];
    for _ in 0..16 {
        sleep(PROGRESS_TIME / 2).await;
        slow.stream.read_exact(&mut part).await.unwrap();
    }
    let mut silent = TestClient::send(&request("/silent")).await;
    silent.read_until("\r\n\r\n").await;
    assert!(timeout(10 * PROGRESS_TIME, silent.serving.join_next()).await.is_err());
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let mut requests = Vec::new();
    for number in 0..100 {
        let body = format!("body {number};");
        let length = body.len();
        let head = format!("POST /body HTTP/1.1\r\nhost: x\r\ncontent-length: {length}");
        requests.extend(format!("{head}\r\n\r\n{body}").into_bytes());
    }
    let mut client = TestClient::send(b"").await;
    let (mut reader, mut writer) = tokio::io::split(client.stream);
    let writing = async move { writer.write_all(&requests).await.unwrap() };
    let reading = async {
        let mut read = String::new();
        for number in 0..100 {
            let body = format!("body {number};");
            while !read.contains(&body) {
                read.push(reader.read_u8().await.unwrap().into());
            }
            read.clear();
        }
    };
    timeout(PROGRESS_TIME, async { tokio::join!(writing, reading) }).await.unwrap();
    client.serving.abort_all();
}

/// Attack: remote | a client sends heads of the maximum size and number of headers, and larger ones |
/// the larger ones have status 431 | No unbounded memory
#[tokio::test]
async fn a_head_has_a_maximum_size_and_number_of_headers() {
    let options = GatewayOptions::default();
    // The connection is closed by the client after the response.
    let start = "GET / HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    let headers = |count: usize| format!("{start}{}\r\n", "a: b\r\n".repeat(count - 2));
    let bytes = |size: usize| {
        let filler = size - start.len() - "a: \r\n\r\n".len();
        format!("{start}a: {}\r\n\r\n", "x".repeat(filler))
    };
    let cases = [
        (headers(MAX_HEADERS), "200"),
        (headers(MAX_HEADERS + 1), "431"),
        (bytes(options.limits.max_head_bytes), "200"),
        (bytes(2 * options.limits.max_head_bytes + 1), "431"),
    ];
    for (number, (head, status)) in cases.into_iter().enumerate() {
        let mut client = TestClient::send(b"").await;
        // The gateway may answer before it has read all.
        let _ = client.stream.write_all(head.as_bytes()).await;
        let mut line = [0; 12];
        client.stream.read_exact(&mut line).await.unwrap();
        assert_eq!(std::str::from_utf8(&line).unwrap(), format!("HTTP/1.1 {status}"), "{number}");
    }
}
