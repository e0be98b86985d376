//! Finds connections without progress: without a request, or with a client that does not read.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::Response;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::SetOnce;
use tokio::time::{Instant, sleep_until};

/// Maximum size in bytes of the part of a body that the connection takes at once, so that the watch
/// sees the progress of a large body.
const MAX_FRAME_BYTES: usize = 16 << 10;

/// The reason why a connection makes no progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stall {
    /// No request is in flight.
    Idle,
    /// The client does not read a response.
    Unread,
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Idle => "no request arrived in time",
            Self::Unread => "the client does not read a response",
        })
    }
}

#[derive(Debug)]
pub(super) struct ConnectionWatch {
    limit: Duration,
    requests: Mutex<Requests>,
    /// Set when the first request starts.
    is_used: SetOnce<()>,
}

#[derive(Debug)]
struct Requests {
    /// For each request by its number, the time since which its response waits for the client;
    /// `None` while the client waits.
    in_flight: HashMap<u64, Option<Instant>>,
    next: u64,
    /// The end of the last request.
    idle_since: Instant,
}

impl ConnectionWatch {
    /// Creates the watch of a new connection, which may make no progress for `limit`.
    pub(super) fn new(limit: Duration) -> Arc<Self> {
        let requests = Requests { in_flight: HashMap::new(), next: 0, idle_since: Instant::now() };
        Arc::new(Self { limit, requests: Mutex::new(requests), is_used: SetOnce::new() })
    }

    fn requests(&self) -> MutexGuard<'_, Requests> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a request as in flight until the guard is dropped.
    pub(super) fn start_request(self: &Arc<Self>) -> WatchedRequest {
        let mut requests = self.requests();
        let number = requests.next;
        requests.next += 1;
        requests.in_flight.insert(number, None);
        drop(requests);
        if number == 0 {
            // Only the first request sets the cell.
            let _ = self.is_used.set(());
        }
        WatchedRequest { watch: self.clone(), number }
    }

    /// Waits until the first request has started.
    pub(super) async fn first_request(&self) {
        self.is_used.wait().await;
    }

    /// Waits until the connection has made no progress for the limit.
    pub(super) async fn stalled(&self) -> Stall {
        loop {
            let now = Instant::now();
            let next_check = {
                let requests = self.requests();
                let (since, stall) = if requests.in_flight.is_empty() {
                    (requests.idle_since, Stall::Idle)
                } else {
                    let waiting = requests.in_flight.values().flatten().min();
                    (waiting.copied().unwrap_or(now), Stall::Unread)
                };
                if now.duration_since(since) >= self.limit {
                    return stall;
                }
                since + self.limit
            };
            sleep_until(next_check).await;
        }
    }
}

/// A request whose response has not ended.
#[derive(Debug)]
pub(super) struct WatchedRequest {
    watch: Arc<ConnectionWatch>,
    number: u64,
}

impl WatchedRequest {
    /// Returns the response with a body that reports its progress.
    pub(super) fn response(self, response: Response<Body>) -> Response<Body> {
        self.set_waiting(Some(Instant::now()));
        response.map(|body| Body::new(WatchedBody { body, rest: Bytes::new(), request: self }))
    }

    /// Sets the time since which the response waits for the client.
    fn set_waiting(&self, since: Option<Instant>) {
        self.watch.requests().in_flight.insert(self.number, since);
    }
}

impl Drop for WatchedRequest {
    fn drop(&mut self) {
        let mut requests = self.watch.requests();
        requests.in_flight.remove(&self.number);
        requests.idle_since = Instant::now();
    }
}

/// A body in parts of limited size.
#[derive(Debug)]
struct WatchedBody {
    body: Body,
    /// The rest of the current frame of the body.
    rest: Bytes,
    request: WatchedRequest,
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = &mut *self;
        let mut data = std::mem::take(&mut this.rest);
        if data.is_empty() {
            let polled = Pin::new(&mut this.body).poll_frame(context);
            // The connection has room, and waits for the body.
            this.request.set_waiting(None);
            let frame = match polled {
                Poll::Ready(Some(Ok(frame))) => frame,
                other => return other,
            };
            data = match frame.into_data() {
                Ok(data) => data,
                Err(other) => return Poll::Ready(Some(Ok(other))),
            };
        }
        this.rest = data.split_off(data.len().min(MAX_FRAME_BYTES));
        this.request.set_waiting(Some(Instant::now()));
        Poll::Ready(Some(Ok(Frame::data(data))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = u64::try_from(self.rest.len()).unwrap_or(u64::MAX);
        let hint = self.body.size_hint();
        let mut with_rest = SizeHint::new();
        with_rest.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            with_rest.set_upper(upper.saturating_add(rest));
        }
        with_rest
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::BodyExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    /// Attack: remote | a client opens a connection and sends no request | the connection ends |
    /// No unbounded wait
    #[tokio::test(start_paused = true)]
    async fn a_connection_without_a_request_stalls_and_one_with_a_running_request_does_not() {
        let watch = ConnectionWatch::new(LIMIT);
        let started = Instant::now();
        assert_eq!(watch.stalled().await, Stall::Idle);
        assert_eq!(started.elapsed(), LIMIT);
        let request = watch.start_request();
        let running = tokio::time::timeout(10 * LIMIT, watch.stalled()).await;
        assert!(running.is_err(), "a request may run");
        drop(request);
        let ended = Instant::now();
        assert_eq!(watch.stalled().await, Stall::Idle);
        assert_eq!(ended.elapsed(), LIMIT);
    }

    /// Attack: remote | a client does not read its response | the connection ends | No unbounded
    /// memory
    #[tokio::test(start_paused = true)]
    async fn a_response_that_nobody_reads_stalls_and_a_silent_one_does_not() {
        let watch = ConnectionWatch::new(LIMIT);
        let silent = futures_util::stream::pending::<Result<Bytes, std::convert::Infallible>>();
        let response = Response::new(Body::from_stream(silent));
        let mut silent = watch.start_request().response(response).into_body();
        let polled = tokio::time::timeout(10 * LIMIT, silent.frame()).await;
        assert!(polled.is_err());
        let running = tokio::time::timeout(10 * LIMIT, watch.stalled()).await;
        assert!(running.is_err(), "the client waits for events");
        let large = Response::new(Body::from(vec![b'x'; MAX_FRAME_BYTES + 1]));
        let mut large = watch.start_request().response(large).into_body();
        assert_eq!(large.size_hint().exact(), Some(MAX_FRAME_BYTES as u64 + 1));
        let started = Instant::now();
        assert_eq!(watch.stalled().await, Stall::Unread);
        assert_eq!(started.elapsed(), LIMIT);
        let first = large.frame().await.unwrap().unwrap().into_data().unwrap();
        assert_eq!((first.len(), large.size_hint().exact()), (MAX_FRAME_BYTES, Some(1)));
        let read = Instant::now();
        assert_eq!(watch.stalled().await, Stall::Unread, "the second part is not read");
        assert_eq!(read.elapsed(), LIMIT);
        assert!(!large.is_end_stream());
        large.frame().await.unwrap().unwrap();
        assert!(large.is_end_stream());
    }
}
