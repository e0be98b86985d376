//! HTTP responses: JSON, event streams and errors.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use http::{HeaderValue, Response, StatusCode, header};
use innkeeper_protocol::RequestId;
use innkeeper_protocol::sse;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::RpcError;
use crate::event_stream::{EventReader, EventStream};
use crate::metrics::{GatewayMetrics, OpenCount};
use crate::rejection::Rejection;

use super::super::incoming::error_line;

/// Interval of comments on a silent stream, so that proxies keep the connection.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Estimated number of bytes of an event without its message.
const EVENT_OVERHEAD_BYTES: usize = 64;

const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENTS: HeaderValue = HeaderValue::from_static("text/event-stream");
const NO_CACHE: HeaderValue = HeaderValue::from_static("no-cache, no-transform");

fn response(status: StatusCode, kind: HeaderValue, body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    response.headers_mut().insert(header::CONTENT_TYPE, kind);
    response
}

/// Returns one message as JSON.
pub(super) fn json_response(status: StatusCode, line: Bytes) -> Response<Body> {
    response(status, JSON, Body::from(line))
}

/// Returns an error that belongs to no JSON-RPC request.
pub(super) fn rejected(status: StatusCode, message: &str) -> Response<Body> {
    Rejection::new(status, message).into_response()
}

/// Returns a JSON-RPC error.
pub(super) fn rpc_error_response(
    status: StatusCode,
    id: Option<&RequestId>,
    error: &RpcError,
) -> Response<Body> {
    json_response(status, error_line(id, error))
}

/// Returns the response for notifications and responses of a client.
pub(super) fn accepted() -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::ACCEPTED;
    response
}

pub(crate) fn event_response(body: Body) -> Response<Body> {
    let mut response = response(StatusCode::OK, EVENTS, body);
    let headers = response.headers_mut();
    headers.insert(header::CACHE_CONTROL, NO_CACHE);
    // Reverse proxies must not collect events.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}

pub(super) fn event(id: Option<&str>, message: &[u8]) -> Bytes {
    let mut bytes = Vec::with_capacity(message.len() + EVENT_OVERHEAD_BYTES);
    write_event(&mut bytes, id, message);
    bytes.into()
}

/// Returns an event with an id and empty data (2025-11-25, Streamable HTTP).
fn empty_event(id: &str) -> Bytes {
    let mut bytes = Vec::new();
    let data = sse::OutgoingData::Text("");
    let event = sse::OutgoingEvent { id: Some(id), data, ..sse::OutgoingEvent::default() };
    // The ids consist of digits, so they are valid.
    sse::write_event(&mut bytes, &event).unwrap_or_default();
    bytes.into()
}

/// Returns a comment, which clients ignore.
pub(crate) fn keep_alive() -> Bytes {
    Bytes::from_static(sse::KEEP_ALIVE)
}

/// Returns an event with a type and a text.
pub(super) fn named_event(name: &str, text: &str) -> Bytes {
    let mut bytes = Vec::new();
    let data = sse::OutgoingData::Text(text);
    let event = sse::OutgoingEvent { name: Some(name), data, ..sse::OutgoingEvent::default() };
    // The names are constants, so they are valid.
    sse::write_event(&mut bytes, &event).unwrap_or_default();
    bytes.into()
}

/// Returns the events of a stream with a log, each with its id.
/// With `primed`, an event without data precedes them: a client that loses its connection before the
/// first message has its id.
pub(super) fn logged_events(
    reader: EventReader,
    primed: bool,
    metrics: &GatewayMetrics,
) -> Response<Body> {
    let open = metrics.open_stream();
    let state = (reader, primed, open);
    let events = stream::unfold(state, |(mut reader, primed, open)| async move {
        if primed {
            reader.wait_known().await;
            let id = event_id(reader.stream_number(), 0);
            return Some((Ok::<_, Infallible>(empty_event(&id)), (reader, false, open)));
        }
        match timeout(KEEP_ALIVE, reader.next()).await {
            Err(_) => Some((Ok(keep_alive()), (reader, false, open))),
            Ok(None) => None,
            Ok(Some(next)) => {
                let id = event_id(reader.stream_number(), next.position);
                Some((Ok(event(Some(&id), &next.message)), (reader, false, open)))
            }
        }
    });
    event_response(Body::from_stream(events))
}

/// Returns all events of a closed stream in one body.
pub(super) fn all_events(stream: &EventStream) -> Response<Body> {
    let events = stream.read_all();
    let size: usize = events.iter().map(|event| event.message.len() + EVENT_OVERHEAD_BYTES).sum();
    let mut body = Vec::with_capacity(size);
    for event in events {
        write_event(&mut body, Some(&event_id(stream.number, event.position)), &event.message);
    }
    event_response(Body::from(body))
}

/// Returns the id of an event, which `Last-Event-ID` repeats.
fn event_id(stream: u64, position: u64) -> String {
    format!("{stream}-{position}")
}

/// The state of an event stream whose request runs while the client reads.
struct RunningRequest<F> {
    request: Option<F>,
    messages: mpsc::Receiver<Bytes>,
    _open: OpenCount,
}

/// Returns the messages of a request and then its response. Dropping the body cancels the request.
pub(super) fn running_events(
    first: Bytes,
    messages: mpsc::Receiver<Bytes>,
    request: impl Future<Output = Bytes> + Send + Unpin + 'static,
    metrics: &GatewayMetrics,
) -> Response<Body> {
    let _open = metrics.open_stream();
    let running = (Some(first), RunningRequest { request: Some(request), messages, _open });
    let events = stream::unfold(running, |(first, mut running)| async move {
        if let Some(first) = first {
            return Some((Ok::<_, Infallible>(event(None, &first)), (None, running)));
        }
        let Some(request) = &mut running.request else {
            // The messages before the response.
            return None;
        };
        let next = timeout(KEEP_ALIVE, async {
            tokio::select! {
                biased;
                Some(message) = running.messages.recv() => (message, false),
                response = request => (response, true),
            }
        });
        let bytes = match next.await {
            Err(_) => keep_alive(),
            Ok((message, false)) => event(None, &message),
            Ok((response, true)) => {
                running.request = None;
                let mut bytes = Vec::new();
                while let Ok(message) = running.messages.try_recv() {
                    write_event(&mut bytes, None, &message);
                }
                write_event(&mut bytes, None, &response);
                bytes.into()
            }
        };
        Some((Ok(bytes), (None, running)))
    });
    event_response(Body::from_stream(events))
}

/// Appends a message as one event.
fn write_event(bytes: &mut Vec<u8>, id: Option<&str>, message: &[u8]) {
    let data = sse::OutgoingData::Json(message);
    let event = sse::OutgoingEvent { id, data, ..sse::OutgoingEvent::default() };
    // The ids consist of digits, so they are valid.
    sse::write_event(bytes, &event).unwrap_or_default();
}
