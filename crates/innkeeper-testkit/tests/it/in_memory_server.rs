//! Tests of the server in memory with a minimal client.

use std::time::Duration;

use innkeeper_testkit::{InMemoryServer, ServerFeatures};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::time::{Instant, timeout};

/// The parameters of a modern request without parameters of its own.
fn modern_params() -> Value {
    json!({"_meta": {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }})
}

/// The parameters of `initialize`, with the member `x`.
fn initialize_params() -> Value {
    let info = json!({"name": "test", "version": "1"});
    json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info, "x": 1})
}

struct TestClient {
    lines: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
}

impl TestClient {
    fn pair() -> (InMemoryServer, Self) {
        let (peer, reader, writer) = InMemoryServer::new();
        (peer, Self { lines: BufReader::new(reader).lines(), writer })
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn next_message(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        self.next_message().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_handshake_completes() {
    let (mut peer, mut client) = TestClient::pair();
    let prompts = Some(vec![json!({"name": "p"})]);
    let features = ServerFeatures { prompts, ..ServerFeatures::with_tools(&["one"]) };
    let start = async {
        let error = client.request(1, "server/discover", modern_params()).await;
        assert_eq!(error["error"]["code"], -32601);
        let response = client.request(2, "initialize", initialize_params()).await;
        assert_eq!(response["result"]["capabilities"], json!({"tools": {}, "prompts": {}}));
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let prompts = client.request(3, "prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"][0]["name"], "p");
        let tools = client.request(4, "tools/list", json!({})).await;
        assert_eq!(tools["result"]["tools"][0]["name"], "one");
    };
    let (request, ()) = tokio::join!(peer.handshake_legacy(&features), start);
    assert_eq!(request["params"]["x"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_modern_handshake_completes() {
    let (mut peer, mut client) = TestClient::pair();
    let features = ServerFeatures { list_changed: true, ..ServerFeatures::default() };
    let start = async {
        let discovered = client.request(1, "server/discover", modern_params()).await;
        assert_eq!(discovered["result"]["supportedVersions"], json!(["2026-07-28"]));
        let mut listen_params = modern_params();
        listen_params["notifications"] = json!({"toolsListChanged": true});
        let listening = client.request(2, "subscriptions/listen", listen_params).await;
        assert_eq!(listening["method"], "notifications/subscriptions/acknowledged");
        let tools = client.request(3, "tools/list", modern_params()).await;
        assert_eq!(tools["result"]["resultType"], "complete");
    };
    tokio::join!(peer.handshake_modern(&features), start);
    assert_eq!(peer.subscription_id(), Some(&json!(2)));
    peer.notify_list_changed("tools").await;
    let notification = client.next_message().await;
    assert_eq!(notification["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
}

#[tokio::test(start_paused = true)]
#[should_panic(
    expected = "expected `tools/call`, the client sent {\"jsonrpc\":\"2.0\",\"method\":\"notifications/example\"}"
)]
async fn another_message_than_expected_is_named() {
    let (mut peer, mut client) = TestClient::pair();
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/example"})).await;
    peer.expect("tools/call").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "`/params`: \"_meta\" is a required property")]
async fn a_message_that_violates_the_schema_of_the_specification_fails_the_test() {
    let (mut peer, mut client) = TestClient::pair();
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {}});
    client.send(request).await;
    peer.handshake_modern(&ServerFeatures::default()).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the client sent nothing")]
async fn a_message_that_never_comes_fails_instead_of_hanging() {
    let (mut peer, _client) = TestClient::pair();
    peer.expect("tools/call").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "expected one of [\"tools/list\"]")]
async fn a_list_that_was_not_offered_must_not_be_asked_for() {
    let (mut peer, mut client) = TestClient::pair();
    let start = async {
        client.request(1, "initialize", initialize_params()).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client.request(2, "prompts/list", json!({})).await;
    };
    let features = ServerFeatures::default();
    tokio::join!(peer.handshake_legacy(&features), start);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_not_asked_to_read_holds_its_client_up() {
    let (mut peer, _reader, mut writer) = InMemoryServer::with_pipe(16);
    let method = format!("notifications/example/{}", "x".repeat(100));
    let long = json!({"jsonrpc": "2.0", "method": method}).to_string() + "\n";
    let stuck = timeout(Duration::from_secs(5), writer.write_all(long.as_bytes())).await;
    assert!(stuck.is_err(), "nobody reads");
    let (rest, line) = tokio::join!(writer.write_all(&long.as_bytes()[16..]), peer.next_line());
    rest.unwrap();
    assert_eq!(line.unwrap() + "\n", long);
}

#[tokio::test(start_paused = true)]
async fn answers_notifications_requests_and_bytes_arrive_as_sent() {
    let (mut peer, mut client) = TestClient::pair();
    client.send(json!({"jsonrpc": "2.0", "id": 1, "method": "example/call"})).await;
    assert_eq!(peer.respond_to("example/call", json!({"content": []})).await["id"], 1);
    assert_eq!(client.next_message().await["result"], json!({"content": []}));
    peer.respond_error(&json!(2), -32000, "no").await;
    assert_eq!(client.next_message().await["error"], json!({"code": -32000, "message": "no"}));
    peer.notify("notifications/message", json!({"data": 1})).await;
    assert_eq!(client.next_message().await["params"]["data"], 1);
    peer.request(&json!("q"), "roots/list", json!({})).await;
    assert_eq!(client.next_message().await["method"], "roots/list");
    client.send(json!({"jsonrpc": "2.0", "id": "q", "result": {}})).await;
    assert!(peer.expect_response(&json!("q")).await["result"].is_object());
    peer.send_raw(b"{\"half\":").await;
    peer.send_raw(b"1}\n").await;
    assert_eq!(client.next_message().await["half"], 1);
}

#[tokio::test(start_paused = true)]
async fn either_side_sees_the_other_close() {
    let start = Instant::now();
    let (mut peer, mut client) = TestClient::pair();
    peer.close();
    assert!(client.lines.next_line().await.unwrap().is_none());
    client.send(json!({"jsonrpc": "2.0", "method": "notifications/example"})).await;
    peer.expect("notifications/example").await;
    drop(client);
    peer.expect_closed().await;
    peer.notify("into the void", json!({})).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}
