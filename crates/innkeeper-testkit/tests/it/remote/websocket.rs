//! WebSockets: frames as they should be, and as they should not.

use futures_util::{SinkExt, StreamExt};
use innkeeper_testkit::{Fault, Remote, fx};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::http::{Http, soon};
use super::{echo, initialize, initialized};
use crate::talk::text;

type Socket = WebSocketStream<TcpStream>;

async fn open(remote: &Remote) -> Result<(Socket, Response), Error> {
    let mut request = remote.url().into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
    let address = remote.origin().trim_start_matches("http://");
    let stream = TcpStream::connect(address).await.unwrap();
    soon(client_async(request, stream)).await
}

async fn send(socket: &mut Socket, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn next(socket: &mut Socket) -> Result<Message, Error> {
    soon(socket.next()).await.expect("a message")
}

async fn message(socket: &mut Socket) -> Value {
    serde_json::from_str(next(socket).await.unwrap().to_text().unwrap()).unwrap()
}

/// A socket with its handshake done.
async fn begin(remote: &Remote) -> Socket {
    let (mut socket, response) = open(remote).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    send(&mut socket, &initialize()).await;
    assert_eq!(message(&mut socket).await["id"], 1);
    send(&mut socket, &initialized()).await;
    socket
}

/// A socket to a server with this fault at its tool calls, one of them sent.
async fn called(fault: Fault) -> (Remote, Socket) {
    let remote = Remote::of(fx("a")).websocket().fault(fault.on("tools/call")).start().await;
    let mut socket = begin(&remote).await;
    send(&mut socket, &echo(2, "hello")).await;
    (remote, socket)
}

#[tokio::test]
async fn each_message_is_one_text_frame() {
    let remote = Remote::of(fx("a")).websocket().start().await;
    assert!(remote.url().starts_with("ws://127.0.0.1:"));
    assert_eq!(remote.entry()["type"], "websocket");
    let mut socket = begin(&remote).await;
    send(&mut socket, &echo(2, "hello")).await;
    assert_eq!(text(&message(&mut socket).await), "hello");
    assert_eq!(remote.requests()[0].header("sec-websocket-protocol"), Some("mcp"));
    assert_eq!(remote.requests()[0].status, Some(101));
    socket.close(None).await.unwrap();
    assert!(matches!(next(&mut socket).await, Ok(Message::Close(_))));
    assert_eq!(Http::ask(&remote, "GET", "/mcp", &[], None).await.status, 426);
}

#[tokio::test]
async fn a_server_that_ends_closes_the_socket() {
    let remote = Remote::of(fx("a").with("--crash-after", 1)).websocket().start().await;
    let mut socket = begin(&remote).await;
    send(&mut socket, &echo(2, "x")).await;
    assert!(matches!(next(&mut socket).await, Ok(Message::Close(_))));
}

#[tokio::test]
async fn the_subprotocol_and_the_upgrade_can_be_refused() {
    let remote = Remote::of(fx("a")).websocket().without_subprotocol().start().await;
    // The client library itself takes offence.
    assert!(open(&remote).await.is_err());
    assert_eq!(remote.requests()[0].status, Some(101));
    let denied = Fault::status(401).header("www-authenticate", "Bearer").on_http("GET");
    let remote = Remote::of(fx("a")).websocket().fault(denied).start().await;
    let Err(Error::Http(response)) = open(&remote).await else { panic!("no answer") };
    assert_eq!(
        (response.status(), &response.headers()["www-authenticate"]),
        (401.try_into().unwrap(), &"Bearer".parse().unwrap())
    );
}

#[tokio::test]
async fn an_answer_can_be_binary_fragmented_twice_over_lines_or_behind_pings() {
    let (_remote, mut socket) = called(Fault::binary()).await;
    assert!(matches!(next(&mut socket).await, Ok(Message::Binary(_))));
    let (_remote, mut socket) = called(Fault::fragments(5)).await;
    assert_eq!(text(&message(&mut socket).await), "hello");
    let (_remote, mut socket) = called(Fault::twice()).await;
    assert_eq!(message(&mut socket).await, message(&mut socket).await);
    let (_remote, mut socket) = called(Fault::pretty()).await;
    let frame = next(&mut socket).await.unwrap();
    assert!(frame.to_text().unwrap().lines().count() > 5);
    let (_remote, mut socket) = called(Fault::pings(3)).await;
    for _ in 0..3 {
        assert!(matches!(next(&mut socket).await, Ok(Message::Ping(_))));
    }
    assert_eq!(message(&mut socket).await["id"], 2);
}

#[tokio::test]
async fn a_long_frame_is_as_long_as_asked() {
    let (_remote, mut socket) = called(Fault::long(3_000_000)).await;
    assert_eq!(next(&mut socket).await.unwrap().len(), 3_000_000);
    assert_eq!(message(&mut socket).await["id"], 2);
}

#[tokio::test]
async fn a_socket_can_end_without_a_close_frame() {
    for fault in [Fault::hang_up(), Fault::reset()] {
        let (_remote, mut socket) = called(fault).await;
        assert!(next(&mut socket).await.is_err());
    }
}

#[tokio::test]
async fn an_answer_can_stall_in_the_middle_of_its_frame() {
    let (_remote, mut socket) = called(Fault::stall()).await;
    let short = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(short, socket.next()).await.is_err());
}
