//! HTTP responses: JSON, event streams and errors.

use std::convert::Infallible;
use std::time::Duration;

use axum::body::{Body, BodyDataStream};
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::{Stream, StreamExt, TryStreamExt, stream};
use http::{HeaderValue, Response, StatusCode, header};
use innkeeper_protocol::RequestId;
use innkeeper_protocol::sse;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::error::RpcError;
use crate::event_stream::{EventReader, EventStream, StreamEvent};
use crate::metrics::{GatewayMetrics, OpenCount};
use crate::rejection::Rejection;

use super::super::incoming::error_line;

/// Interval of comments on a silent stream, so that proxies keep the connection.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Time without a message after which the response to a request starts: a client or a proxy gives up a
/// connection without a byte, many of them after 60 s.
pub(crate) const SILENCE: Duration = Duration::from_secs(5);

/// Estimated number of bytes of an event without its message.
const EVENT_OVERHEAD_BYTES: usize = 64;

/// Maximum size in bytes of a message that is copied into its event.
const MAX_COPIED_BYTES: usize = 16 << 10;

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

/// Returns the parts of an event. A large message is not copied, and counts as unread as long as one of
/// its parts waits.
pub(super) fn event(id: Option<&str>, message: &Bytes) -> Vec<Bytes> {
    let text = message.slice(..message.trim_ascii_end().len());
    // The encoder replaces line breaks.
    if text.len() <= MAX_COPIED_BYTES || memchr::memchr2(b'\n', b'\r', &text).is_some() {
        let mut bytes = Vec::with_capacity(message.len() + EVENT_OVERHEAD_BYTES);
        let data = sse::OutgoingData::Json(message);
        let event = sse::OutgoingEvent { id, data, ..sse::OutgoingEvent::default() };
        // The ids consist of digits, so they are valid.
        sse::write_event(&mut bytes, &event).unwrap_or_default();
        return vec![bytes.into()];
    }
    let head = match id {
        Some(id) => format!("id: {id}\ndata: ").into(),
        None => Bytes::from_static(b"data: "),
    };
    vec![head, text, Bytes::from_static(b"\n\n")]
}

/// Returns the body of an event stream whose events arrive in parts.
pub(super) fn event_body(
    events: impl Stream<Item = Vec<Bytes>> + Send + 'static,
) -> Response<Body> {
    let parts = events.flat_map(|parts| stream::iter(parts.into_iter().map(Ok::<_, Infallible>)));
    event_response(Body::from_stream(parts))
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

pub(super) fn named_event(name: &str, text: &str) -> Bytes {
    let mut bytes = Vec::new();
    let data = sse::OutgoingData::Text(text);
    let event = sse::OutgoingEvent { name: Some(name), data, ..sse::OutgoingEvent::default() };
    // The names are constants, so they are valid.
    sse::write_event(&mut bytes, &event).unwrap_or_default();
    bytes.into()
}

/// What precedes the messages of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StreamStart {
    /// Nothing: the first message is there.
    Message,
    /// An event without data: a client that loses its connection before the first message has its id.
    EmptyEvent,
    /// A comment, for a client that takes an event without data for a message.
    Comment,
}

/// Returns the events of a stream with a log, each with its id.
pub(super) fn logged_events(
    reader: EventReader,
    start: StreamStart,
    metrics: &GatewayMetrics,
) -> Response<Body> {
    let open = metrics.open_stream();
    let state = (reader, start, open);
    let events = stream::unfold(state, |(mut reader, start, open)| async move {
        let parts = match start {
            StreamStart::EmptyEvent => {
                reader.wait_known().await;
                vec![empty_event(&event_id(reader.stream_number(), 0))]
            }
            StreamStart::Comment => vec![keep_alive()],
            StreamStart::Message => match timeout(KEEP_ALIVE, reader.next()).await {
                Err(_) => vec![keep_alive()],
                Ok(None) => return None,
                Ok(Some(next)) => {
                    let id = event_id(reader.stream_number(), next.position);
                    event(Some(&id), &next.message)
                }
            },
        };
        Some((parts, (reader, StreamStart::Message, open)))
    });
    event_body(events)
}

/// Returns all events of a closed stream in one body.
pub(super) fn all_events(stream: &EventStream) -> Response<Body> {
    let events = stream.read_all();
    let number = stream.number;
    event_body(stream::iter(events).map(move |StreamEvent { position, message }| {
        event(Some(&event_id(number, position)), &message)
    }))
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

/// A JSON body whose text may not be there yet.
enum SlowBody<F> {
    /// White space, until the text is there.
    Waiting(F, Duration),
    Text(BodyDataStream),
}

/// Returns a JSON response that starts now and has white space before its text, so that nobody takes
/// the silence for the end of the connection. Dropping the body drops `text`; an error of `text` ends
/// the connection.
pub(crate) fn slow_json(
    text: impl Future<Output = Result<Body, axum::Error>> + Send + Unpin + 'static,
) -> Response<Body> {
    const SPACE: Bytes = Bytes::from_static(b"\n");
    let waiting = SlowBody::Waiting(text, Duration::ZERO);
    let parts = stream::try_unfold(waiting, |body| async move {
        let mut text = match body {
            SlowBody::Text(text) => text,
            SlowBody::Waiting(mut text, silence) => match timeout(silence, &mut text).await {
                Err(_) => return Ok(Some((SPACE, SlowBody::Waiting(text, KEEP_ALIVE)))),
                Ok(text) => text?.into_data_stream(),
            },
        };
        let part = text.try_next().await?;
        Ok::<_, axum::Error>(part.map(|part| (part, SlowBody::Text(text))))
    });
    response(StatusCode::OK, JSON, Body::from_stream(parts))
}

/// Returns the messages of a request and then its response. Dropping the body cancels the request.
/// Without a first message, a comment starts the stream.
pub(super) fn running_events(
    first: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    request: impl Future<Output = Bytes> + Send + Unpin + 'static,
    metrics: &GatewayMetrics,
) -> Response<Body> {
    let _open = metrics.open_stream();
    let first = first.map_or_else(|| vec![keep_alive()], |first| event(None, &first));
    let running = (Some(first), RunningRequest { request: Some(request), messages, _open });
    let events = stream::unfold(running, |(first, mut running)| async move {
        if let Some(first) = first {
            return Some((first, (None, running)));
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
        let parts = match next.await {
            Err(_) => vec![keep_alive()],
            Ok((message, false)) => event(None, &message),
            Ok((response, true)) => {
                running.request = None;
                let mut parts = Vec::new();
                while let Ok(message) = running.messages.try_recv() {
                    parts.extend(event(None, &message));
                }
                parts.extend(event(None, &response));
                parts
            }
        };
        Some((parts, (None, running)))
    });
    event_body(events)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_in_parts_is_the_event_of_the_encoder() {
        for length in [1, MAX_COPIED_BYTES - 2, MAX_COPIED_BYTES - 1, 5 * MAX_COPIED_BYTES] {
            let line = Bytes::from(format!("\"{}\"\n", "x".repeat(length)));
            for id in [None, Some("3-1")] {
                let mut expected = Vec::new();
                let data = sse::OutgoingData::Json(&line);
                let encoded = sse::OutgoingEvent { id, data, ..sse::OutgoingEvent::default() };
                sse::write_event(&mut expected, &encoded).unwrap();
                let parts = event(id, &line);
                assert_eq!(parts.len(), if length < MAX_COPIED_BYTES - 1 { 1 } else { 3 });
                assert_eq!(parts.concat(), expected, "{length}");
            }
        }
    }
}
