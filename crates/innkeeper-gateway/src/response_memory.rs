//! Limits the memory of responses that clients have not read.
//!
//! A small request can have a large response, and a client that does not read keeps the response in the
//! gateway. A response therefore counts from its end at the gateway until its bytes have left for the
//! client, wherever they wait: the reservation belongs to the bytes and ends with their last clone.

use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{Response, StatusCode};
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use innkeeper_protocol::RequestId;

use crate::error::RpcError;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::rejection::Rejection;

/// Maximum number of requests of one batch that run at the same time.
pub(crate) const MAX_CONCURRENT_OF_BATCH: usize = 16;

/// The bytes of an error without the id of its request. Reserved before a request runs, so that there
/// is always room to say what became of it.
const ERROR_BYTES: usize = 1 << 10;

/// Time after which a client can try again to send a request that had no room for its response.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Maximum size in bytes of a message before a response that is not counted: their queues have a
/// maximum number of messages.
const MAX_UNCOUNTED_BYTES: usize = 4 << 10;

/// The memory of the responses of all clients. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ResponseMemory(Arc<Quota>);

impl ResponseMemory {
    pub(crate) fn new(max_bytes: usize) -> Self {
        Self(Quota::new(max_bytes))
    }

    /// Reserves room for the errors of requests that have not run yet.
    pub(crate) fn reserve<'r>(
        &self,
        principal: &Principal,
        requests: impl IntoIterator<Item = &'r RequestId>,
    ) -> Result<ResponseRoom, ResponsesFull> {
        let ids = requests.into_iter().map(|id| max_json_bytes(id) + ERROR_BYTES);
        let bytes = ids.sum::<usize>().max(ERROR_BYTES);
        self.0.reserve(principal, bytes).map(ResponseRoom).map_err(|exceeded| {
            let share = self.0.share(principal);
            ResponsesFull::new(exceeded, share, self.0.maximum(), None)
        })
    }

    /// Counts a message that precedes a response; `None` if it has no room.
    pub(crate) fn hold_message(&self, principal: &Principal, message: Bytes) -> Option<Bytes> {
        if message.len() <= MAX_UNCOUNTED_BYTES {
            return Some(message);
        }
        let _reservation = self.0.reserve(principal, message.len()).ok()?;
        Some(Bytes::from_owner(HeldBytes { bytes: message, _reservation }))
    }
}

#[derive(Debug)]
pub(crate) struct ResponseRoom(Reservation);

impl ResponseRoom {
    /// Makes room for further bytes of a request that has run.
    fn grow(&mut self, bytes: usize) -> Result<(), ResponsesFull> {
        self.0.grow(bytes).map_err(|exceeded| {
            let share = self.0.share();
            let total = self.0.quota().maximum();
            ResponsesFull::new(exceeded, share, total, Some(bytes))
        })
    }

    /// Makes room for a response that has this number of bytes in all.
    fn grow_to(&mut self, bytes: usize) -> Result<(), ResponsesFull> {
        self.grow(bytes.saturating_sub(self.0.amount()))
            .map_err(|full| ResponsesFull { dropped: Some(bytes), ..full })
    }

    /// Counts a response until the last clone of its bytes is dropped. Without room, counts the error
    /// that `error` returns.
    pub(crate) fn hold(mut self, response: Bytes, error: impl FnOnce(&RpcError) -> Bytes) -> Bytes {
        let bytes = match self.grow_to(response.len()) {
            Ok(()) => response,
            Err(full) => {
                drop(response);
                error(&full.into())
            }
        };
        self.0.shrink_to(bytes.len());
        Bytes::from_owner(HeldBytes { bytes, _reservation: self.0 })
    }

    /// Counts an HTTP response whose length is known until its body has left.
    pub(crate) fn hold_response(
        mut self,
        response: Response<Body>,
    ) -> Result<Response<Body>, ResponsesFull> {
        let bytes = usize::try_from(response.body().size_hint().lower()).unwrap_or(usize::MAX);
        self.grow_to(bytes)?;
        self.0.shrink_to(bytes);
        let _reservation = self.0;
        Ok(response.map(|body| Body::new(HeldBody { body, _reservation })))
    }
}

#[derive(Debug)]
pub(crate) struct BatchRoom {
    room: Mutex<ResponseRoom>,
    /// Set when a response had no room.
    full: OnceLock<ResponsesFull>,
}

impl BatchRoom {
    /// Uses the room that was reserved for the errors of all requests of the batch.
    pub(crate) fn new(room: ResponseRoom) -> Self {
        Self { room: Mutex::new(room), full: OnceLock::new() }
    }

    /// Returns an error for a request that must not run any more.
    pub(crate) fn check(&self) -> Result<(), ResponsesFull> {
        self.full.get().map_or(Ok(()), |full| Err(ResponsesFull { dropped: None, ..*full }))
    }

    /// Makes room for the response of one request that has run.
    pub(crate) fn add(&self, bytes: usize) -> Result<(), ResponsesFull> {
        let mut room = self.room.lock().unwrap_or_else(PoisonError::into_inner);
        room.grow(bytes).inspect_err(|full| {
            self.full.get_or_init(|| *full);
        })
    }

    /// Counts the message with all responses, for which [`Self::add`] has made room.
    pub(crate) fn hold(self, message: Vec<u8>) -> Bytes {
        let room = self.room.into_inner().unwrap_or_else(PoisonError::into_inner);
        let ResponseRoom(mut reservation) = room;
        reservation.shrink_to(message.len());
        Bytes::from_owner(HeldBytes { bytes: message.into(), _reservation: reservation })
    }
}

/// The reason why there is no room for a response.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResponsesFull {
    exceeded: QuotaExceeded,
    /// The bytes that the client, or all clients together, may leave unread.
    maximum: usize,
    /// The size in bytes of the response of a request that has run.
    dropped: Option<usize>,
}

impl ResponsesFull {
    fn new(exceeded: QuotaExceeded, share: usize, total: usize, dropped: Option<usize>) -> Self {
        let maximum = match exceeded {
            QuotaExceeded::Own => share,
            QuotaExceeded::Total => total,
        };
        Self { exceeded, maximum, dropped }
    }

    /// Returns the HTTP response to a request that has no response of its own.
    pub(crate) fn rejection(self) -> Rejection {
        let rejection = Rejection::new(StatusCode::SERVICE_UNAVAILABLE, self.to_string());
        match self.dropped {
            None => rejection.with_retry_after(RETRY_DELAY),
            // A call should not be repeated without a thought.
            Some(_) => rejection,
        }
    }

    pub(crate) fn has_run(self) -> bool {
        self.dropped.is_some()
    }
}

impl std::fmt::Display for ResponsesFull {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.dropped {
            None => f.write_str("the request did not run")?,
            Some(bytes) => {
                write!(f, "the request ran, but its response of {bytes} bytes was dropped")?;
            }
        }
        let maximum = self.maximum;
        match self.exceeded {
            QuotaExceeded::Own => write!(
                f,
                ": unread responses of this client fill its {maximum} bytes; read responses sooner"
            ),
            QuotaExceeded::Total => write!(
                f,
                ": unread responses of all clients fill {maximum} bytes; read responses sooner, and \
                 try again later"
            ),
        }
    }
}

impl From<ResponsesFull> for RpcError {
    fn from(full: ResponsesFull) -> Self {
        Self::responses_full(full.to_string(), full.has_run())
    }
}

/// Returns at least the number of bytes that an id has as JSON.
fn max_json_bytes(id: &RequestId) -> usize {
    match id {
        RequestId::Integer(_) => "-9223372036854775808".len(),
        // Each byte escaped, and the quotes.
        RequestId::String(text) => text.len() * "\\u0000".len() + 2,
    }
}

struct HeldBytes {
    bytes: Bytes,
    _reservation: Reservation,
}

impl AsRef<[u8]> for HeldBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[derive(Debug)]
struct HeldBody {
    body: Body,
    _reservation: Reservation,
}

impl HttpBody for HeldBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(error: &RpcError) -> Bytes {
        error.message.clone().into()
    }

    /// Attack: remote | a client leaves its responses unread | a further response is dropped with an
    /// error that says so, a further request does not run, and another client gets its response |
    /// No unbounded memory
    #[test]
    fn unread_responses_of_a_client_fill_half_of_the_memory() {
        let memory = ResponseMemory::new(16 << 10);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let large = || Bytes::from(vec![b'x'; 6 << 10]);
        let reserve = |principal| memory.reserve(principal, [&RequestId::Integer(1)]);
        let unread = reserve(&ann).unwrap().hold(large(), error);
        assert_eq!(unread.len(), 6 << 10);
        let dropped = reserve(&ann).unwrap().hold(large(), error);
        let text = "the request ran, but its response of 6144 bytes was dropped: unread responses of \
                    this client fill its 8192 bytes; read responses sooner";
        assert_eq!(dropped, text);
        let full = [reserve(&ann).unwrap()];
        let refused = reserve(&ann).unwrap_err();
        assert!(refused.to_string().starts_with("the request did not run: "), "{refused}");
        assert_eq!(refused.rejection().status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(reserve(&ben).unwrap().hold(large(), error).len(), 6 << 10);
        let rest = unread.slice(1..);
        drop((full, unread));
        assert_eq!(reserve(&ann).unwrap().hold(large(), error), text, "a part is not sent yet");
        drop(rest);
        assert_eq!(reserve(&ann).unwrap().hold(large(), error).len(), 6 << 10);
        drop(dropped);
        assert_eq!(memory.0.total(), 0);
    }

    #[test]
    fn a_body_counts_until_it_is_dropped() {
        let memory = ResponseMemory::new(16 << 10);
        let reserve = || memory.reserve(&Principal::new("ann"), None).unwrap();
        let response = |bytes| Response::new(Body::from(vec![b'x'; bytes]));
        let held = reserve().hold_response(response(6 << 10)).unwrap();
        assert_eq!((memory.0.total(), held.body().size_hint().exact()), (6 << 10, Some(6 << 10)));
        assert!(reserve().hold_response(response(6 << 10)).unwrap_err().has_run());
        drop(held);
        assert_eq!(memory.0.total(), 0);
    }
}
