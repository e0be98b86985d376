//! A WebSocket: one text frame for each message, or what faults make of it.

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

use super::body::{self, Reply};
use super::fault::Act;
use super::headers;
use super::pen::{self, filler, pretty};
use super::routes::Out;
use super::serve::{Ask, Served, Session};
use crate::Nonce;

/// The subprotocol.
const PROTOCOL: &str = "mcp";

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// The conversation is over without a close frame.
struct Abrupt;

/// Answers the request that opens a WebSocket.
pub(super) fn answer(served: &Arc<Served>, ask: Ask) -> Reply {
    if ask.head.uri.path() != served.plan().wire.path() {
        return body::empty(404);
    }
    let wanted = &ask.head.headers;
    let key = headers::text(wanted, "sec-websocket-key");
    let is_websocket = headers::text(wanted, "upgrade").is_some_and(|to| to == "websocket");
    let (Some(upgrade), Some(key), true) = (ask.upgrade, key, is_websocket) else {
        let mut reply = body::empty(426);
        body::set(&mut reply, "upgrade", "websocket");
        return reply;
    };
    let offered = wanted.get_all("sec-websocket-protocol").iter();
    let mut offered =
        offered.filter_map(|value| value.to_str().ok()).flat_map(|all| all.split(','));
    let agreed = served.plan().subprotocol && offered.any(|one| one.trim() == PROTOCOL);
    let Some(session) = served.begin(Nonce::new().as_str().to_owned()) else {
        return body::empty(503);
    };
    let mut reply = body::empty(101);
    body::set(&mut reply, "upgrade", "websocket");
    body::set(&mut reply, "connection", "upgrade");
    body::set(&mut reply, "sec-websocket-accept", &derive_accept_key(key.as_bytes()));
    if agreed {
        body::set(&mut reply, "sec-websocket-protocol", PROTOCOL);
    }
    let holder = Arc::clone(served);
    served.tasks().spawn(async move {
        let mut broken = holder.broken();
        tokio::select! {
            () = converse(&holder, &session, upgrade) => {}
            _ = broken.changed() => {}
        }
        holder.forget(&session.id);
    });
    reply
}

async fn converse(served: &Served, session: &Session, upgrade: OnUpgrade) {
    let Ok(upgraded) = upgrade.await else { return };
    let io = TokioIo::new(upgraded);
    let mut socket = WebSocketStream::from_raw_socket(io, Role::Server, None).await;
    let (waiting, mut lines) = session.bridge.open_general();
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
                    // The client may be gone before it could be told.
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
            // An answer to a close frame is on its way out.
            drop(socket.flush().await);
            return;
        }
    }
}

async fn receive(served: &Served, session: &Session, text: Bytes) -> Result<(), Abrupt> {
    let message: Value = serde_json::from_slice(&text).unwrap_or_default();
    let method = message.get("method").and_then(Value::as_str);
    let act = served.strike(None, method);
    if act == Some(Act::HangUp) {
        return Err(Abrupt);
    }
    if method.is_some() && message.get("id").is_some() {
        session.bridge.note(&message, act);
    }
    session.bridge.send(text).await;
    Ok(())
}

async fn send(socket: &mut Socket, out: Out) -> Result<(), Abrupt> {
    let text = |bytes: &[u8]| Frame::message(bytes.to_vec(), OpCode::Data(Data::Text), true);
    let frames = match &out.act {
        None => vec![text(&out.text)],
        Some(Act::Binary) => {
            vec![Frame::message(out.text.clone(), OpCode::Data(Data::Binary), true)]
        }
        Some(Act::Fragments(count)) => fragments(&out.text, *count),
        Some(Act::Pings(count)) => {
            let mut frames = vec![Frame::ping(&b"flood"[..]); *count];
            frames.push(text(&out.text));
            frames
        }
        Some(Act::Pretty) => vec![text(&pretty(&out.text))],
        Some(Act::Twice) => vec![text(&out.text); 2],
        Some(Act::Long(bytes)) => vec![text(filler(*bytes).as_bytes()), text(&out.text)],
        Some(act @ (Act::Stall(_) | Act::Reset)) => {
            let bytes = raw(text(&out.text))?;
            let (head, tail) = bytes.split_at(bytes.len() / 2);
            write(socket, head).await?;
            let Act::Stall(pause) = act else { return Err(Abrupt) };
            pen::rest(*pause).await;
            return write(socket, tail).await;
        }
        Some(Act::Delay(pause)) => {
            pen::rest(*pause).await;
            vec![text(&out.text)]
        }
        Some(_) => return Err(Abrupt),
    };
    for frame in frames {
        write(socket, &raw(frame)?).await?;
    }
    Ok(())
}

fn fragments(text: &[u8], count: usize) -> Vec<Frame> {
    let pieces: Vec<&[u8]> = text.chunks(text.len().div_ceil(count).max(1)).collect();
    let last = pieces.len().saturating_sub(1);
    let frame = |(number, piece): (usize, &&[u8])| {
        let data = if number == 0 { Data::Text } else { Data::Continue };
        Frame::message(piece.to_vec(), OpCode::Data(data), number == last)
    };
    pieces.iter().enumerate().map(frame).collect()
}

fn raw(frame: Frame) -> Result<Vec<u8>, Abrupt> {
    let mut bytes = Vec::with_capacity(frame.len());
    frame.format(&mut bytes).map_err(|_| Abrupt)?;
    Ok(bytes)
}

/// Writes bytes of frames as they are, behind what the socket itself still has to say.
async fn write(socket: &mut Socket, bytes: &[u8]) -> Result<(), Abrupt> {
    socket.flush().await.map_err(|_| Abrupt)?;
    let io = socket.get_mut();
    io.write_all(bytes).await.map_err(|_| Abrupt)?;
    io.flush().await.map_err(|_| Abrupt)
}
