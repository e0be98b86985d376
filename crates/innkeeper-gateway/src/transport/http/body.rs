//! Reads the bodies of requests, with limits of size, time and memory.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use bytes::{Buf as _, Bytes, BytesMut};
use http::StatusCode;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time::timeout;

use crate::options::GatewayOptions;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::rejection::Rejection;

/// Maximum memory in bytes of the requests in flight of all clients together, if it has room for
/// [`MIN_BODIES`] bodies of the maximum size.
pub(crate) const MAX_REQUESTS_BYTES: usize = 512 << 20;

/// Minimum number of bodies of the maximum size that have room at one time.
const MIN_BODIES: usize = 4;

/// The memory of a request in flight apart from its body, as an estimate.
pub(crate) const REQUEST_BYTES: usize = 16 << 10;

/// Time after which a client can try again to send a request that had no room.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// Time for the rest of a body that nobody needs.
const DISCARD_TIME: Duration = Duration::from_secs(2);

/// Some clients send it before their JSON (RFC 8259, 8.1).
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

#[derive(Debug)]
pub(crate) struct BodyReader {
    maximum: usize,
    time: Duration,
    memory: Arc<Quota>,
}

impl BodyReader {
    pub(crate) fn new(options: &GatewayOptions) -> Self {
        let maximum = options.limits.max_body_bytes;
        let time = options.limits.request_time;
        let memory = maximum.saturating_add(REQUEST_BYTES).saturating_mul(MIN_BODIES);
        Self { maximum, time, memory: Quota::new(memory.max(MAX_REQUESTS_BYTES)) }
    }

    /// Reads a body. The memory is reserved until the reservation is dropped.
    pub(crate) async fn read(
        &self,
        principal: &Principal,
        body: Body,
    ) -> Result<(Bytes, Reservation), Rejection> {
        let reading = timeout(self.time, self.read_all(principal, body)).await;
        reading.unwrap_or_else(|_| {
            Err(Rejection::new(
                StatusCode::REQUEST_TIMEOUT,
                format!(
                    "the body did not arrive within {} s (`serve.limits.requestSeconds`)",
                    self.time.as_secs_f64()
                ),
            ))
        })
    }

    async fn read_all(
        &self,
        principal: &Principal,
        mut body: Body,
    ) -> Result<(Bytes, Reservation), Rejection> {
        if body.size_hint().lower() > u64::try_from(self.maximum).unwrap_or(u64::MAX) {
            discard(body).await;
            return Err(self.too_long());
        }
        let mut reservation = self.memory.reserve(principal, REQUEST_BYTES).map_err(no_memory)?;
        // Frames can be small parts of large buffers, so their bytes are copied.
        let mut read = BytesMut::new();
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| {
                Rejection::new(
                    StatusCode::BAD_REQUEST,
                    format!("the body is not readable: {error}"),
                )
            })?;
            let Ok(data) = frame.into_data() else { continue };
            if read.len() + data.len() > self.maximum {
                drop(read);
                discard(body).await;
                return Err(self.too_long());
            }
            reservation.grow(data.len()).map_err(no_memory)?;
            read.extend_from_slice(&data);
        }
        if read.starts_with(BYTE_ORDER_MARK) {
            read.advance(BYTE_ORDER_MARK.len());
        }
        Ok((read.freeze(), reservation))
    }

    fn too_long(&self) -> Rejection {
        Rejection::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body is longer than {} bytes (`serve.limits.bodyBytes`)", self.maximum),
        )
    }
}

/// Reads on for a moment, so that a client that still sends its body reads the response (RFC 9112,
/// 9.6): a connection that closes with unread bytes loses the response.
pub(crate) async fn discard(mut body: Body) {
    let reading = async { while let Some(Ok(_)) = body.frame().await {} };
    timeout(DISCARD_TIME, reading).await.ok();
}

fn no_memory(exceeded: QuotaExceeded) -> Rejection {
    let message = match exceeded {
        QuotaExceeded::Own => {
            "the requests of this client have their maximum memory; send the request again after a \
             response"
        }
        QuotaExceeded::Total => {
            "the requests of all clients have their maximum memory; send the request again later"
        }
    };
    Rejection::new(StatusCode::SERVICE_UNAVAILABLE, message).with_retry_after(RETRY_DELAY)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use futures_util::stream;

    use super::*;

    fn reader(max_body_bytes: usize) -> BodyReader {
        let mut options = GatewayOptions::default();
        options.limits.max_body_bytes = max_body_bytes;
        BodyReader::new(&options)
    }

    /// A body without a length whose frames have these sizes.
    fn frames(sizes: &[usize]) -> Body {
        let frames: Vec<_> =
            sizes.iter().map(|size| Ok::<_, Infallible>(vec![b'x'; *size])).collect();
        Body::from_stream(stream::iter(frames))
    }

    async fn status(reader: &BodyReader, body: Body) -> Result<usize, StatusCode> {
        let read = reader.read(&Principal::new("ann"), body).await;
        read.map(|(body, _)| body.len()).map_err(|rejection| rejection.status())
    }

    #[tokio::test]
    async fn a_body_of_the_maximum_size_is_read_and_one_byte_more_is_not() {
        let reader = reader(10);
        for (sizes, expected) in [
            (&[10][..], Ok(10)),
            (&[1; 10], Ok(10)),
            (&[11], Err(StatusCode::PAYLOAD_TOO_LARGE)),
            (&[1; 11], Err(StatusCode::PAYLOAD_TOO_LARGE)),
        ] {
            assert_eq!(status(&reader, frames(sizes)).await, expected, "{sizes:?}");
        }
        let with_length = Body::from(vec![b'x'; 11]);
        assert_eq!(status(&reader, with_length).await, Err(StatusCode::PAYLOAD_TOO_LARGE));
    }

    /// Attack: remote | a client sends a body that never ends | the gateway answers after the time
    /// for a request and forgets the body | No unbounded wait
    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_end_has_a_time_limit() {
        let reader = reader(10);
        let started = tokio::time::Instant::now();
        let body = Body::from_stream(stream::pending::<Result<Vec<u8>, Infallible>>());
        assert_eq!(status(&reader, body).await, Err(StatusCode::REQUEST_TIMEOUT));
        assert_eq!(started.elapsed(), Duration::from_secs(30));
    }

    /// Attack: remote | a client has as many bodies in flight as it can | further ones are refused,
    /// and the bodies of another client are read | No unbounded memory
    #[tokio::test]
    async fn the_memory_of_requests_is_limited_and_shared() {
        let reader = reader(8 << 20);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let share = MAX_REQUESTS_BYTES / 2;
        let own = reader.memory.reserve(&ann, share - REQUEST_BYTES - 4).unwrap();
        let (_, last) = reader.read(&ann, frames(&[4])).await.unwrap();
        let refused = reader.read(&ann, frames(&[1])).await.unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(reader.read(&ben, frames(&[4])).await.unwrap().0.len(), 4);
        drop((own, last));
        assert_eq!(status(&reader, frames(&[4])).await, Ok(4));
    }
}
