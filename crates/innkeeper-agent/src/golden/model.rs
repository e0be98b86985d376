//! The model of a recorded run, and that of a replay.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::future::{self, BoxFuture};
use futures_util::{FutureExt as _, StreamExt as _, stream};
use innkeeper_golden::{HttpResponseRecord, ReplyRecord, StreamEnd};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::clock::ReplayClock;
use super::failure::http_error;
use super::recorder::GoldenRecorder;
use super::script::Script;
use crate::transport::{ChunkStream, HttpClient, HttpError, IncomingResponse, OutgoingRequest};

/// Sends through another client, and records what is sent and received.
pub(super) struct RecordingClient {
    client: Arc<dyn HttpClient>,
    recorder: GoldenRecorder,
}

impl RecordingClient {
    pub(super) fn new(client: Arc<dyn HttpClient>, recorder: GoldenRecorder) -> Self {
        Self { client, recorder }
    }
}

impl fmt::Debug for RecordingClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecordingClient").field("client", &self.client).finish_non_exhaustive()
    }
}

impl HttpClient for RecordingClient {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<IncomingResponse, HttpError>> {
        async move {
            let exchange = self.recorder.on_request(&request);
            match self.client.send(request).await {
                Ok(response) => {
                    self.recorder.on_response(exchange, &response);
                    let body = recorded_body(response.body, self.recorder.clone(), exchange);
                    Ok(IncomingResponse { body, ..response })
                }
                Err(error) => {
                    self.recorder.on_send_error(exchange, &error);
                    Err(error)
                }
            }
        }
        .boxed()
    }
}

fn recorded_body(body: ChunkStream, recorder: GoldenRecorder, exchange: usize) -> ChunkStream {
    let chunks = recorder.clone();
    let end = async move {
        recorder.on_body_end(exchange);
        None
    };
    let body = body.inspect(move |chunk| chunks.on_chunk(exchange, chunk));
    body.chain(stream::once(end).filter_map(future::ready)).boxed()
}

/// Answers each request with the next recorded response.
pub(super) struct ReplayClient {
    script: Script,
    clock: ReplayClock,
}

impl ReplayClient {
    pub(super) fn new(script: Script, clock: ReplayClock) -> Self {
        Self { script, clock }
    }
}

impl fmt::Debug for ReplayClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplayClient").finish_non_exhaustive()
    }
}

impl HttpClient for ReplayClient {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<IncomingResponse, HttpError>> {
        async move {
            let started_at = self.clock.elapsed();
            let Some(reply) = self.script.take_reply(&request) else {
                // The replay ends; see `Script::missed`.
                return future::pending().await;
            };
            match reply {
                ReplyRecord::Http(response) => {
                    self.clock.sleep_until(at(started_at, response.ms)).await;
                    Ok(incoming_response(response, self.clock.clone(), started_at))
                }
                ReplyRecord::Failed { ms, kind, message } => {
                    self.clock.sleep_until(at(started_at, ms)).await;
                    Err(http_error(&kind, &message))
                }
                ReplyRecord::Silent {} => future::pending().await,
            }
        }
        .boxed()
    }
}

/// Returns the response of a record, whose chunks arrive at their times.
fn incoming_response(
    record: HttpResponseRecord,
    clock: ReplayClock,
    started_at: Duration,
) -> IncomingResponse {
    let mut headers = HeaderMap::new();
    for (name, value) in &record.headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            headers.append(name, value);
        }
    }
    let chunks = record.chunks.into_iter().map(|chunk| {
        let bytes = chunk.data.to_bytes().map(|bytes| Bytes::copy_from_slice(&bytes));
        (chunk.ms, Ok(bytes.unwrap_or_default()))
    });
    let (end, is_unread) = match record.end {
        StreamEnd::Complete { ms } => (Some((ms, None)), false),
        StreamEnd::Failed { ms, kind, message } => {
            (Some((ms, Some(Err(http_error(&kind, &message))))), false)
        }
        StreamEnd::Unread {} => (None, true),
    };
    let events = chunks.map(|(ms, chunk)| (ms, Some(chunk))).chain(end);
    let events = stream::iter(events.collect::<Vec<_>>()).filter_map(move |(ms, chunk)| {
        let arrival = clock.sleep_until(started_at.saturating_add(Duration::from_millis(ms)));
        async move {
            arrival.await;
            chunk
        }
    });
    let body = match is_unread {
        true => events.chain(stream::pending()).boxed(),
        false => events.boxed(),
    };
    // A record from a file may have any number.
    let status = StatusCode::from_u16(record.status).unwrap_or(StatusCode::BAD_GATEWAY);
    IncomingResponse { status, headers, body }
}

/// Returns the time so many milliseconds after the start of a request.
fn at(started_at: Duration, ms: u64) -> Duration {
    started_at.saturating_add(Duration::from_millis(ms))
}
