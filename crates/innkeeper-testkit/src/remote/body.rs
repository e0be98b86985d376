//! Responses: whole bodies, and bodies that are written as they come.

use std::convert::Infallible;

use bytes::Bytes;
use futures_util::stream;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::Frame;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// Pieces of a body not yet taken by the connection.
const PIECES: usize = 4;

/// Any response.
pub(super) type Reply = Response<UnsyncBoxBody<Bytes, Infallible>>;

/// A response with a whole body.
pub(super) fn whole(status: u16, content_type: Option<&str>, body: impl Into<Bytes>) -> Reply {
    let body = Full::new(body.into()).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if let Some(value) = content_type {
        set(&mut reply, CONTENT_TYPE.as_str(), value);
    }
    reply
}

/// A response without a body.
pub(super) fn empty(status: u16) -> Reply {
    whole(status, None, Bytes::new())
}

/// A refusal in the words of a gateway: an error that looks like JSON-RPC's and is none.
pub(super) fn refusal(status: u16) -> Reply {
    let error = json!({"error": {"code": status, "message": "not allowed"}});
    whole(status, Some("application/json"), error.to_string())
}

/// A response that is a JSON-RPC error.
pub(super) fn error(status: u16, id: &Value, code: i64, message: &str) -> Reply {
    let error = json!({"code": code, "message": message});
    let text = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    whole(status, Some("application/json"), text)
}

/// A response whose body is what is sent here; it ends when the sender is dropped.
pub(super) fn streamed(content_type: &str) -> (Sender<Bytes>, Reply) {
    let (sender, receiver) = channel(PIECES);
    let pieces = stream::unfold(receiver, |mut receiver: Receiver<Bytes>| async move {
        let piece = receiver.recv().await?;
        Some((Ok(Frame::data(piece)), receiver))
    });
    let mut reply = Response::new(StreamBody::new(pieces).boxed_unsync());
    set(&mut reply, CONTENT_TYPE.as_str(), content_type);
    (sender, reply)
}

/// Sets a header, in place of any of its name.
///
/// # Panics
///
/// When name or value cannot be sent.
pub(super) fn set(reply: &mut Reply, name: &str, value: &str) {
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else { panic!("`{name}: {value}` is no header") };
    reply.headers_mut().insert(name, value);
}
