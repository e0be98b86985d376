//! Response bodies: complete or streaming.

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

/// Maximum number of queued body chunks.
const CHANNEL_CAPACITY: usize = 4;

pub(super) type HttpResponse = Response<UnsyncBoxBody<Bytes, Infallible>>;

pub(super) fn full_response(
    status: u16,
    content_type: Option<&str>,
    body: impl Into<Bytes>,
) -> HttpResponse {
    let body = Full::new(body.into()).boxed_unsync();
    let mut reply = Response::new(body);
    *reply.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::OK);
    if let Some(value) = content_type {
        set_header(&mut reply, CONTENT_TYPE.as_str(), value);
    }
    reply
}

/// A response without a body.
pub(super) fn empty_response(status: u16) -> HttpResponse {
    full_response(status, None, Bytes::new())
}

/// An error response as a gateway sends it: similar to a JSON-RPC error, but invalid.
pub(super) fn status_response(status: u16) -> HttpResponse {
    let error = json!({"error": {"code": status, "message": "not allowed"}});
    full_response(status, Some("application/json"), error.to_string())
}

pub(super) fn json_rpc_error(status: u16, id: &Value, code: i64, message: &str) -> HttpResponse {
    let error = json!({"code": code, "message": message});
    let text = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
    full_response(status, Some("application/json"), text)
}

/// A response with a streaming body; the body ends when the sender is dropped.
pub(super) fn streaming_response(content_type: &str) -> (Sender<Bytes>, HttpResponse) {
    let (sender, receiver) = channel(CHANNEL_CAPACITY);
    let chunks = stream::unfold(receiver, |mut receiver: Receiver<Bytes>| async move {
        let chunk = receiver.recv().await?;
        Some((Ok(Frame::data(chunk)), receiver))
    });
    let mut reply = Response::new(StreamBody::new(chunks).boxed_unsync());
    set_header(&mut reply, CONTENT_TYPE.as_str(), content_type);
    (sender, reply)
}

/// Sets a header and replaces existing values.
///
/// # Panics
///
/// If the name or the value is invalid.
pub(super) fn set_header(reply: &mut HttpResponse, name: &str, value: &str) {
    let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
    let (Ok(name), Ok(value)) = parsed else { panic!("invalid header `{name}: {value}`") };
    reply.headers_mut().insert(name, value);
}
