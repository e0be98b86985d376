//! The WebSocket transport: one text frame per message, with faults.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use serde_json::Value;
use tokio::io::AsyncWriteExt;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::protocol::frame::Frame;
use tokio_tungstenite::tungstenite::protocol::frame::coding::{Data, OpCode};

use super::body::{self, HttpResponse};
use super::body_writer::{self, filler_message, pretty_print};
use super::fault::FaultAction;
use super::headers;
use super::routes::OutboundMessage;
use super::server::{IncomingRequest, McpSession, ServerState};
use crate::ProcessTag;

const SUBPROTOCOL: &str = "mcp";

type WebSocket = WebSocketStream<TokioIo<Upgraded>>;

/// The end of the connection without a close frame.
struct AbruptClose;

/// Responds to the upgrade request of a WebSocket.
pub(super) fn respond(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    if request.head.uri.path() != served.config().transport.path() {
        return body::empty_response(404);
    }
    let wanted = &request.head.headers;
    let key = headers::header_text(wanted, "sec-websocket-key");
    let is_websocket = headers::header_text(wanted, "upgrade").is_some_and(|to| to == "websocket");
    let (Some(upgrade), Some(key), true) = (request.upgrade, key, is_websocket) else {
        let mut reply = body::empty_response(426);
        body::set_header(&mut reply, "upgrade", "websocket");
        return reply;
    };
    let subprotocols = wanted.get_all("sec-websocket-protocol").iter();
    let mut subprotocols =
        subprotocols.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(','));
    let agreed =
        served.config().accept_subprotocol && subprotocols.any(|name| name.trim() == SUBPROTOCOL);
    let Some(session) = served.start_session(ProcessTag::new().as_str().to_owned()) else {
        return body::empty_response(503);
    };
    let mut reply = body::empty_response(101);
    body::set_header(&mut reply, "upgrade", "websocket");
    body::set_header(&mut reply, "connection", "upgrade");
    body::set_header(&mut reply, "sec-websocket-accept", &derive_accept_key(key.as_bytes()));
    if agreed {
        body::set_header(&mut reply, "sec-websocket-protocol", SUBPROTOCOL);
    }
    let holder = Arc::clone(served);
    served.tasks().spawn(async move {
        let mut reset = holder.reset_signal();
        tokio::select! {
            () = serve_socket(&holder, &session, upgrade) => {}
            _ = reset.changed() => {}
        }
        holder.end_session(&session.id);
    });
    reply
}

async fn serve_socket(served: &ServerState, session: &McpSession, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let io = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let (waiting, mut lines) = session.bridge.open_general_stream();
    for out in waiting {
        if send(&mut socket, out).await.is_err() {
            return;
        }
    }
    loop {
        let done = tokio::select! {
            out = lines.recv() => match out {
                Some(out) => send(&mut socket, out).await.is_err(),
                None => {
                    // The client may have closed the connection already.
                    drop(socket.close(None).await);
                    true
                }
            },
            message = socket.next() => match message {
                Some(Ok(Message::Text(text))) => {
                    receive(served, session, Bytes::from(text)).await.is_err()
                }
                Some(Ok(Message::Binary(bytes))) => {
                    receive(served, session, bytes).await.is_err()
                }
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_))) => false,
                Some(Ok(Message::Close(_)) | Err(_)) | None => true,
            },
        };
        if done {
            // The close frame of the reply is still unsent.
            let _ = socket.flush().await;
            return;
        }
    }
}

async fn receive(
    served: &ServerState,
    session: &McpSession,
    text: Bytes,
) -> Result<(), AbruptClose> {
    let message: Value = serde_json::from_slice(&text).unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str);
    let action = served.match_fault(None, method);
    if action == Some(FaultAction::ResetBeforeResponse) {
        return Err(AbruptClose);
    }
    if method.is_some() && message.get("id").is_some() {
        session.bridge.register_request(&message, action);
    }
    session.bridge.send(text).await;
    Ok(())
}

async fn send(socket: &mut WebSocket, out: OutboundMessage) -> Result<(), AbruptClose> {
    let frames = match &out.fault {
        None => vec![text_frame(&out.text)],
        Some(FaultAction::BinaryFrame) => {
            vec![Frame::message(out.text.clone(), OpCode::Data(Data::Binary), true)]
        }
        Some(FaultAction::Fragments(count)) => fragment_frames(&out.text, *count),
        Some(FaultAction::Pings(count)) => {
            let mut frames = vec![Frame::ping(&b"flood"[..]); *count];
            frames.push(text_frame(&out.text));
            frames
        }
        Some(FaultAction::PrettyPrint) => vec![text_frame(&pretty_print(&out.text))],
        Some(FaultAction::Duplicate) => vec![text_frame(&out.text); 2],
        Some(FaultAction::PrependMessage(bytes)) => {
            vec![text_frame(filler_message(*bytes).as_bytes()), text_frame(&out.text)]
        }
        Some(action @ (FaultAction::Stall(_) | FaultAction::ResetMidBody)) => {
            let bytes = encode_frame(text_frame(&out.text))?;
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            write_bytes(socket, head).await?;
            let FaultAction::Stall(delay) = action else { return Err(AbruptClose) };
            body_writer::pause_or_hang(*delay).await;
            return write_bytes(socket, tail).await;
        }
        Some(FaultAction::Delay(delay)) => {
            body_writer::pause_or_hang(*delay).await;
            vec![text_frame(&out.text)]
        }
        Some(_) => return Err(AbruptClose),
    };
    for frame in frames {
        write_bytes(socket, &encode_frame(frame)?).await?;
    }
    Ok(())
}

fn fragment_frames(text: &[u8], count: usize) -> Vec<Frame> {
    let chunks: Vec<&[u8]> = text.chunks(text.len().div_ceil(count).max(1)).collect();
    let last = chunks.len().saturating_sub(1);
    let frames = chunks.iter().enumerate().map(|(number, chunk)| {
        let data = if number == 0 { Data::Text } else { Data::Continue };
        Frame::message(chunk.to_vec(), OpCode::Data(data), number == last)
    });
    frames.collect()
}

fn encode_frame(frame: Frame) -> Result<Vec<u8>, AbruptClose> {
    let mut bytes = Vec::with_capacity(frame.len());
    frame.format(&mut bytes).map_err(|_| AbruptClose)?;
    Ok(bytes)
}

/// Writes raw frame bytes after the socket's own pending output.
async fn write_bytes(socket: &mut WebSocket, bytes: &[u8]) -> Result<(), AbruptClose> {
    socket.flush().await.map_err(|_| AbruptClose)?;
    let io = socket.get_mut();
    io.write_all(bytes).await.map_err(|_| AbruptClose)?;
    io.flush().await.map_err(|_| AbruptClose)
}

fn text_frame(bytes: &[u8]) -> Frame {
    Frame::message(bytes.to_vec(), OpCode::Data(Data::Text), true)
}
