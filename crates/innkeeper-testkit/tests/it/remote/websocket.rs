//! Tests of WebSockets with valid and invalid frames.

use futures_util::{SinkExt, StreamExt};
use innkeeper_testkit::{Fault, RemoteServer, fixture};
use serde_json::Value;
use tokio::net::TcpStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::handshake::client::Response;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, client_async};

use super::http::{HttpExchange, within_timeout};
use super::{echo_call, initialize, initialized};
use crate::stdio_client::result_text;

type ClientSocket = WebSocketStream<TcpStream>;

async fn open_socket(remote: &RemoteServer) -> Result<(ClientSocket, Response), Error> {
    let mut request = remote.url().into_client_request().unwrap();
    request.headers_mut().insert("sec-websocket-protocol", "mcp".parse().unwrap());
    let address = remote.origin().trim_start_matches("http://");
    let stream = TcpStream::connect(address).await.unwrap();
    within_timeout(client_async(request, stream)).await
}

async fn send(socket: &mut ClientSocket, message: &Value) {
    socket.send(Message::text(message.to_string())).await.unwrap();
}

async fn next(socket: &mut ClientSocket) -> Result<Message, Error> {
    within_timeout(socket.next()).await.expect("a message")
}

async fn message(socket: &mut ClientSocket) -> Value {
    serde_json::from_str(next(socket).await.unwrap().to_text().unwrap()).unwrap()
}

/// Returns an initialized socket.
async fn open_initialized(remote: &RemoteServer) -> ClientSocket {
    let (mut socket, response) = open_socket(remote).await.unwrap();
    assert_eq!(response.headers()["sec-websocket-protocol"], "mcp");
    send(&mut socket, &initialize()).await;
    assert_eq!(message(&mut socket).await["id"], 1);
    send(&mut socket, &initialized()).await;
    socket
}

/// Sends a tool call to a server with this fault.
async fn call_with_fault(fault: Fault) -> (RemoteServer, ClientSocket) {
    let remote = RemoteServer::for_fixture(fixture("a"))
        .websocket()
        .fault(fault.on_rpc_method("tools/call"))
        .start()
        .await;
    let mut socket = open_initialized(&remote).await;
    send(&mut socket, &echo_call(2, "hello")).await;
    (remote, socket)
}

#[tokio::test]
async fn each_message_is_one_text_frame() {
    let remote = RemoteServer::for_fixture(fixture("a")).websocket().start().await;
    assert!(remote.url().starts_with("ws://127.0.0.1:"));
    assert_eq!(remote.config_entry()["type"], "websocket");
    let mut socket = open_initialized(&remote).await;
    send(&mut socket, &echo_call(2, "hello")).await;
    assert_eq!(result_text(&message(&mut socket).await), "hello");
    assert_eq!(remote.requests()[0].header("sec-websocket-protocol"), Some("mcp"));
    assert_eq!(remote.requests()[0].status, Some(101));
    socket.close(None).await.unwrap();
    assert!(matches!(next(&mut socket).await, Ok(Message::Close(_))));
    assert_eq!(HttpExchange::request(&remote, "GET", "/mcp", &[], None).await.status, 426);
}

#[tokio::test]
async fn a_server_that_ends_closes_the_socket() {
    let remote =
        RemoteServer::for_fixture(fixture("a").with("--crash-after", 1)).websocket().start().await;
    let mut socket = open_initialized(&remote).await;
    send(&mut socket, &echo_call(2, "x")).await;
    assert!(matches!(next(&mut socket).await, Ok(Message::Close(_))));
}

#[tokio::test]
async fn the_subprotocol_and_the_upgrade_can_be_refused() {
    let remote =
        RemoteServer::for_fixture(fixture("a")).websocket().without_subprotocol().start().await;
    // The client library itself rejects the response.
    assert!(open_socket(&remote).await.is_err());
    assert_eq!(remote.requests()[0].status, Some(101));
    let denied = Fault::status(401).header("www-authenticate", "Bearer").on_http_method("GET");
    let remote = RemoteServer::for_fixture(fixture("a")).websocket().fault(denied).start().await;
    let Err(Error::Http(response)) = open_socket(&remote).await else { panic!("no answer") };
    assert_eq!(
        (response.status(), &response.headers()["www-authenticate"]),
        (401.try_into().unwrap(), &"Bearer".parse().unwrap())
    );
}

#[tokio::test]
async fn an_answer_can_be_binary_fragmented_twice_over_lines_or_behind_pings() {
    let (_remote, mut socket) = call_with_fault(Fault::binary_frame()).await;
    assert!(matches!(next(&mut socket).await, Ok(Message::Binary(_))));
    let (_remote, mut socket) = call_with_fault(Fault::fragments(5)).await;
    assert_eq!(result_text(&message(&mut socket).await), "hello");
    let (_remote, mut socket) = call_with_fault(Fault::duplicate()).await;
    assert_eq!(message(&mut socket).await, message(&mut socket).await);
    let (_remote, mut socket) = call_with_fault(Fault::pretty_print()).await;
    let frame = next(&mut socket).await.unwrap();
    assert!(frame.to_text().unwrap().lines().count() > 5);
    let (_remote, mut socket) = call_with_fault(Fault::pings(3)).await;
    for _ in 0..3 {
        assert!(matches!(next(&mut socket).await, Ok(Message::Ping(_))));
    }
    assert_eq!(message(&mut socket).await["id"], 2);
}

#[tokio::test]
async fn a_long_frame_is_as_long_as_asked() {
    let (_remote, mut socket) = call_with_fault(Fault::prepend_message(3_000_000)).await;
    assert_eq!(next(&mut socket).await.unwrap().len(), 3_000_000);
    assert_eq!(message(&mut socket).await["id"], 2);
}

#[tokio::test]
async fn a_socket_can_end_without_a_close_frame() {
    for fault in [Fault::reset_before_response(), Fault::reset_mid_body()] {
        let (_remote, mut socket) = call_with_fault(fault).await;
        assert!(next(&mut socket).await.is_err());
    }
}

#[tokio::test]
async fn an_answer_can_stall_in_the_middle_of_its_frame() {
    let (_remote, mut socket) = call_with_fault(Fault::stall()).await;
    let short = std::time::Duration::from_millis(200);
    assert!(tokio::time::timeout(short, socket.next()).await.is_err());
}
