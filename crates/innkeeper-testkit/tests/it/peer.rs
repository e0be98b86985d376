//! The server in memory, played against a client of a few lines.

use std::time::Duration;

use innkeeper_testkit::{Offer, Peer};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::time::{Instant, timeout};

const META: &str = "io.modelcontextprotocol/protocolVersion";

struct Client {
    lines: Lines<BufReader<DuplexStream>>,
    writer: DuplexStream,
}

impl Client {
    fn pair() -> (Peer, Self) {
        let (peer, reader, writer) = Peer::new();
        (peer, Self { lines: BufReader::new(reader).lines(), writer })
    }

    async fn send(&mut self, message: Value) {
        self.writer.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn message(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    async fn request(&mut self, id: u64, method: &str, params: Value) -> Value {
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params})).await;
        self.message().await
    }
}

#[tokio::test(start_paused = true)]
async fn a_legacy_start_is_played_through() {
    let (mut peer, mut client) = Client::pair();
    let prompts = Some(vec![json!({"name": "p"})]);
    let offer = Offer { prompts, ..Offer::tools(&["one"]) };
    let start = async {
        let refusal = client.request(1, "server/discover", json!({})).await;
        assert_eq!(refusal["error"]["code"], -32601);
        let answer = client.request(2, "initialize", json!({"x": 1})).await;
        assert_eq!(answer["result"]["capabilities"], json!({"tools": {}, "prompts": {}}));
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        let prompts = client.request(3, "prompts/list", json!({})).await;
        assert_eq!(prompts["result"]["prompts"][0]["name"], "p");
        let tools = client.request(4, "tools/list", json!({})).await;
        assert_eq!(tools["result"]["tools"][0]["name"], "one");
    };
    let (request, ()) = tokio::join!(peer.handshake_legacy(&offer), start);
    assert_eq!(request["params"]["x"], 1);
}

#[tokio::test(start_paused = true)]
async fn a_modern_start_is_played_through() {
    let (mut peer, mut client) = Client::pair();
    let offer = Offer { list_changed: true, ..Offer::default() };
    let start = async {
        let found = client.request(1, "server/discover", json!({})).await;
        assert_eq!(found["result"]["supportedVersions"], json!(["2026-07-28"]));
        let params = json!({"_meta": {META: "2026-07-28"}});
        let heard = client.request(2, "subscriptions/listen", params.clone()).await;
        assert_eq!(heard["method"], "notifications/subscriptions/acknowledged");
        let tools = client.request(3, "tools/list", params).await;
        assert_eq!(tools["result"]["resultType"], "complete");
    };
    tokio::join!(peer.handshake_modern(&offer), start);
    assert_eq!(peer.listening(), Some(&json!(2)));
    peer.list_changed("tools").await;
    let told = client.message().await;
    assert_eq!(told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"], 2);
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "expected `tools/call`, the client sent {\"method\":\"ping\"}")]
async fn another_message_than_expected_is_named() {
    let (mut peer, mut client) = Client::pair();
    client.send(json!({"method": "ping"})).await;
    peer.expect("tools/call").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "the client sent nothing")]
async fn a_message_that_never_comes_fails_instead_of_hanging() {
    let (mut peer, _client) = Client::pair();
    peer.expect("tools/call").await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "expected one of [\"tools/list\"]")]
async fn a_list_that_was_not_offered_must_not_be_asked_for() {
    let (mut peer, mut client) = Client::pair();
    let start = async {
        client.request(1, "initialize", json!({})).await;
        client.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        client.request(2, "prompts/list", json!({})).await;
    };
    let offer = Offer::default();
    tokio::join!(peer.handshake_legacy(&offer), start);
}

#[tokio::test(start_paused = true)]
async fn a_peer_that_is_not_asked_to_read_holds_its_client_up() {
    let (mut peer, _reader, mut writer) = Peer::with_pipe(16);
    let long = json!({"method": "x".repeat(100)}).to_string() + "\n";
    let stuck = timeout(Duration::from_secs(5), writer.write_all(long.as_bytes())).await;
    assert!(stuck.is_err(), "nobody reads");
    let (rest, line) = tokio::join!(writer.write_all(&long.as_bytes()[16..]), peer.next_line());
    rest.unwrap();
    assert_eq!(line.unwrap() + "\n", long);
}

#[tokio::test(start_paused = true)]
async fn answers_notifications_requests_and_bytes_arrive_as_sent() {
    let (mut peer, mut client) = Client::pair();
    client.send(json!({"id": 1, "method": "tools/call"})).await;
    assert_eq!(peer.answer("tools/call", json!({"content": []})).await["id"], 1);
    assert_eq!(client.message().await["result"], json!({"content": []}));
    peer.reply_error(&json!(2), -32000, "no").await;
    assert_eq!(client.message().await["error"], json!({"code": -32000, "message": "no"}));
    peer.notify("notifications/message", json!({"data": 1})).await;
    assert_eq!(client.message().await["params"]["data"], 1);
    peer.request(&json!("q"), "roots/list", json!({})).await;
    assert_eq!(client.message().await["method"], "roots/list");
    client.send(json!({"id": "q", "result": {}})).await;
    assert!(peer.expect_response(&json!("q")).await["result"].is_object());
    peer.raw(b"{\"half\":").await;
    peer.raw(b"1}\n").await;
    assert_eq!(client.message().await["half"], 1);
}

#[tokio::test(start_paused = true)]
async fn either_side_sees_the_other_close() {
    let start = Instant::now();
    let (mut peer, mut client) = Client::pair();
    peer.close();
    assert!(client.lines.next_line().await.unwrap().is_none());
    client.send(json!({"method": "still heard"})).await;
    peer.expect("still heard").await;
    drop(client);
    peer.expect_closed().await;
    peer.notify("into the void", json!({})).await;
    assert_eq!(start.elapsed(), Duration::ZERO);
}
