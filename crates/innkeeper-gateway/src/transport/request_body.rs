//! Reads the body of an HTTP request within limits.

use std::time::Duration;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, StatusCode, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

/// The reason why the body of a request cannot be used.
#[derive(Debug, thiserror::Error)]
pub(crate) enum BodyError {
    #[error("the `Content-Type` must be `application/json`")]
    NotJson,
    #[error("the body is longer than {limit} bytes")]
    TooLong { limit: usize },
    #[error("the body cannot be read: {0}")]
    Unreadable(#[source] Box<dyn std::error::Error + Send + Sync>),
    #[error("the body did not arrive within {} s", time.as_secs_f64())]
    TimedOut { time: Duration },
}

impl BodyError {
    /// Returns the status of the response.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::NotJson => StatusCode::UNSUPPORTED_MEDIA_TYPE,
            Self::TooLong { .. } => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Unreadable(_) => StatusCode::BAD_REQUEST,
            Self::TimedOut { .. } => StatusCode::REQUEST_TIMEOUT,
        }
    }
}

/// Returns an error unless the headers announce JSON.
pub(crate) fn check_is_json(headers: &HeaderMap) -> Result<(), BodyError> {
    let value = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let kind = value.unwrap_or_default().split(';').next().unwrap_or_default().trim();
    let is_json = kind.eq_ignore_ascii_case("application/json");
    if is_json { Ok(()) } else { Err(BodyError::NotJson) }
}

/// Reads a body of at most `limit` bytes in at most `time`.
pub(crate) async fn read_body(
    limit: usize,
    time: Duration,
    body: Body,
) -> Result<Bytes, BodyError> {
    let reading = Limited::new(body, limit).collect();
    match timeout(time, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(BodyError::TooLong { limit }),
        Ok(Err(error)) => Err(BodyError::Unreadable(error)),
        Err(_) => Err(BodyError::TimedOut { time }),
    }
}
