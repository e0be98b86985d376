//! An [`HttpClient`] for tests: records requests and plays responses, without a network.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt as _, StreamExt as _, stream};
use reqwest::StatusCode;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::client::{HttpClient, HttpError, IncomingResponse, OutgoingRequest};

/// A client in memory. Each request takes the next reply; a request without a reply panics.
#[derive(Debug, Default)]
pub(crate) struct InMemoryClient {
    replies: Mutex<VecDeque<InMemoryReply>>,
    requests: Mutex<Vec<OutgoingRequest>>,
    open_bodies: Arc<AtomicUsize>,
}

#[derive(Debug)]
pub(crate) enum InMemoryReply {
    Response(InMemoryResponse),
    /// No response: the request fails.
    Error(HttpError),
    /// No response and no end.
    Never,
}

/// A response with a body in chunks.
#[derive(Debug)]
pub(crate) struct InMemoryResponse {
    status: StatusCode,
    headers: HeaderMap,
    chunks: Vec<Bytes>,
    end: BodyEnd,
}

/// What follows the last chunk of a body.
#[derive(Debug)]
enum BodyEnd {
    Complete,
    Error(HttpError),
    Stall,
}

impl InMemoryResponse {
    pub(crate) fn new(status: u16, body: impl Into<Bytes>) -> Self {
        let status = StatusCode::from_u16(status).unwrap();
        let chunks = vec![body.into()];
        Self { status, headers: HeaderMap::new(), chunks, end: BodyEnd::Complete }
    }

    /// Creates a successful response.
    pub(crate) fn json(body: &Value) -> Self {
        Self::new(200, body.to_string())
    }

    pub(crate) fn with_header(mut self, name: &str, value: &str) -> Self {
        let name = HeaderName::try_from(name).unwrap();
        self.headers.append(name, HeaderValue::try_from(value).unwrap());
        self
    }

    pub(crate) fn with_chunk(mut self, chunk: impl Into<Bytes>) -> Self {
        self.chunks.push(chunk.into());
        self
    }

    /// The body ends with an error.
    pub(crate) fn with_error(self, error: HttpError) -> Self {
        Self { end: BodyEnd::Error(error), ..self }
    }

    /// The body does not end.
    pub(crate) fn stalled(self) -> Self {
        Self { end: BodyEnd::Stall, ..self }
    }
}

impl From<InMemoryResponse> for InMemoryReply {
    fn from(response: InMemoryResponse) -> Self {
        Self::Response(response)
    }
}

impl From<HttpError> for InMemoryReply {
    fn from(error: HttpError) -> Self {
        Self::Error(error)
    }
}

impl InMemoryClient {
    pub(crate) fn new<R: Into<InMemoryReply>>(replies: impl IntoIterator<Item = R>) -> Arc<Self> {
        let replies = Mutex::new(replies.into_iter().map(Into::into).collect());
        Arc::new(Self { replies, ..Self::default() })
    }

    /// Returns all requests in order.
    pub(crate) fn requests(&self) -> Vec<OutgoingRequest> {
        self.requests.lock().unwrap().clone()
    }

    /// Returns the number of bodies that are neither read to their end nor dropped.
    pub(crate) fn open_bodies(&self) -> usize {
        self.open_bodies.load(Ordering::Relaxed)
    }
}

impl HttpClient for InMemoryClient {
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<IncomingResponse, HttpError>> {
        async move {
            self.requests.lock().unwrap().push(request);
            let reply = self.replies.lock().unwrap().pop_front();
            let InMemoryResponse { status, headers, chunks, end } = match reply.unwrap() {
                InMemoryReply::Response(response) => response,
                InMemoryReply::Error(error) => return Err(error),
                InMemoryReply::Never => std::future::pending().await,
            };
            let end = match end {
                BodyEnd::Complete => stream::empty().boxed(),
                BodyEnd::Error(error) => stream::iter([Err(error)]).boxed(),
                BodyEnd::Stall => stream::pending().boxed(),
            };
            let open_body = OpenBody::new(&self.open_bodies);
            let chunks = stream::iter(chunks.into_iter().map(Ok)).chain(end);
            let body = chunks.inspect(move |_| open_body.keep()).boxed();
            Ok(IncomingResponse { status, headers, body })
        }
        .boxed()
    }
}

/// Counts a body until its drop.
struct OpenBody(Arc<AtomicUsize>);

impl OpenBody {
    fn new(count: &Arc<AtomicUsize>) -> Self {
        count.fetch_add(1, Ordering::Relaxed);
        Self(count.clone())
    }

    /// Does nothing: a closure that calls this function owns the value.
    fn keep(&self) {}
}

impl Drop for OpenBody {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
