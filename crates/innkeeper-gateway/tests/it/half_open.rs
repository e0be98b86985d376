//! Real TCP connections whose clients send nothing, a part of a request, or read nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use http::Request;
use http_body_util::BodyExt;
use innkeeper_gateway::{GatewayBuilder, GatewayOptions};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::{JoinSet, yield_now};
use tokio::time::{Instant, timeout};
use tower::ServiceExt;

use crate::limits::local_access;
use crate::setup::{TEST_TIMEOUT, TestEnv};

/// The time that a client has in this test.
const REQUEST_TIME: Duration = Duration::from_secs(1);

/// Size of a result that the buffers of a connection with a small window do not take.
const LARGE_RESULT_BYTES: usize = 7_000_000;

/// Connects with a small window, so that an unread response stays in the gateway.
async fn connect(address: SocketAddr, start: &str) -> TcpStream {
    let socket = TcpSocket::new_v4().unwrap();
    socket.set_recv_buffer_size(4 << 10).unwrap();
    let mut stream = socket.connect(address).await.unwrap();
    stream.write_all(start.as_bytes()).await.unwrap();
    stream
}

async fn metrics(router: &Router) -> String {
    let request = Request::builder().uri("http://127.0.0.1/metrics").header("host", "127.0.0.1");
    let response = router.clone().oneshot(request.body(Body::empty()).unwrap()).await.unwrap();
    let body = response.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(body.to_vec()).unwrap()
}

async fn wait_for_metrics(router: &Router, expected: &[&str]) {
    let waiting = timeout(TEST_TIMEOUT, async {
        loop {
            let text = metrics(router).await;
            if expected.iter().all(|line| text.lines().any(|known| known == *line)) {
                return;
            }
            yield_now().await;
        }
    });
    assert!(waiting.await.is_ok(), "{expected:?}\n{}", metrics(router).await);
}

/// Attack: remote | clients open TCP connections and send nothing, half of a head, or do not read a
/// large response | the gateway ends each in its time and counts it | No unbounded wait
#[tokio::test]
async fn a_half_open_connection_is_closed_in_its_time_and_counted() {
    let test_env = TestEnv::new();
    let mut options = GatewayOptions::default();
    options.limits.request_time = REQUEST_TIME;
    let server = test_env.fixture("a");
    let gateway = test_env.gateway_with(GatewayBuilder::new(options), [server]).await;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let mut serving = JoinSet::new();
    let served = gateway.gateway.clone();
    serving.spawn(async move { served.serve_http(listener, local_access()).await });
    let router = gateway.router();
    let mut silent = connect(address, "").await;
    let mut half = connect(address, "POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-le").await;
    let started = Instant::now();
    wait_for_metrics(&router, &["innkeeper_gateway_connections 2"]).await;
    for stream in [&mut silent, &mut half] {
        let mut rest = Vec::new();
        timeout(TEST_TIMEOUT, stream.read_to_end(&mut rest)).await.unwrap().unwrap();
        assert_eq!(rest, b"", "the connection ends without a response");
    }
    assert!(started.elapsed() >= REQUEST_TIME / 2, "not at once");
    let arguments = format!("{{\"bytes\":{LARGE_RESULT_BYTES}}}");
    let call = format!(
        "POST /tools/a.big HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n\
         content-length: {}\r\n\r\n{arguments}",
        arguments.len()
    );
    let mut unread = connect(address, &call).await;
    let expected = [
        r#"innkeeper_gateway_closed_connections_total{reason="idle"} 2"#,
        r#"innkeeper_gateway_closed_connections_total{reason="unread"} 1"#,
        r#"innkeeper_gateway_closed_connections_total{reason="address_limit"} 0"#,
        "innkeeper_gateway_connections 0",
    ];
    wait_for_metrics(&router, &expected).await;
    let mut response = Vec::new();
    // The rest of the response is missing; the system may report a reset.
    let _ = timeout(TEST_TIMEOUT, unread.read_to_end(&mut response)).await.unwrap();
    assert!(response.len() < LARGE_RESULT_BYTES, "{} bytes", response.len());
}
