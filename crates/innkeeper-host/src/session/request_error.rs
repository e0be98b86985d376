//! Why a request has no result.

use innkeeper_protocol::ErrorObject;
use serde_json::value::RawValue;

use super::Budgeted;
use crate::error::{CallErrorKind, ProtocolError, UnavailableReason};

/// The reason a request has no result.
#[derive(Debug)]
pub(crate) enum RequestError {
    /// The server responded with an error object.
    ErrorResponse(ErrorObject),
    /// The response is invalid.
    Protocol(ProtocolError),
    /// The request is longer than a message may be; the request was not sent.
    TooLarge { bytes: usize, limit: usize },
    /// The server is unavailable; `sent` is true if the server may have received the request.
    Unavailable { reason: UnavailableReason, sent: bool },
    /// The deadline passed without a response.
    Timeout,
}

impl RequestError {
    /// Returns the kind of the call error that results from this error.
    pub(crate) fn kind(&self) -> CallErrorKind {
        match self {
            Self::ErrorResponse(_) => CallErrorKind::Server,
            Self::Protocol(_) => CallErrorKind::Protocol,
            Self::TooLarge { .. } => CallErrorKind::Validation,
            Self::Unavailable { .. } => CallErrorKind::Unavailable,
            Self::Timeout => CallErrorKind::Timeout,
        }
    }
}

/// The outcome of one request: the raw result with its memory reservation, or an error.
pub(crate) type RequestResult = Result<Budgeted<Box<RawValue>>, RequestError>;
