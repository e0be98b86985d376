//! The trait through which every request to a model passes.

use std::error::Error;
use std::fmt;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use reqwest::header::HeaderMap;
use reqwest::{Method, StatusCode};

/// The cause of an [`HttpError`].
pub(crate) type HttpErrorSource = Box<dyn Error + Send + Sync>;

/// The body of a response, in chunks of any size. The stream ends after its first error.
pub(crate) type ChunkStream = BoxStream<'static, Result<Bytes, HttpError>>;

/// Sends HTTP requests. Providers share a client as an `Arc<dyn HttpClient>`.
///
/// A client follows no redirect and repeats no request. Dropping the future, or the body of the
/// response, ends the request. The caller applies deadlines and size limits.
pub(crate) trait HttpClient: fmt::Debug + Send + Sync {
    /// Sends a request and waits for the head of the response, whatever the status is.
    fn send(&self, request: OutgoingRequest) -> BoxFuture<'_, Result<IncomingResponse, HttpError>>;
}

/// A request with all its headers.
#[derive(Clone)]
pub(crate) struct OutgoingRequest {
    pub(crate) method: Method,
    /// The complete URL, which may contain a password.
    pub(crate) url: String,
    /// The headers; the value with the API key is marked as sensitive.
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
    /// The iteration of the run, counted from 1; 0 outside of a run. Not sent.
    pub(crate) iteration: u32,
}

/// Shows neither the URL nor the body; a sensitive header value prints a mask.
impl fmt::Debug for OutgoingRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OutgoingRequest")
            .field("method", &self.method)
            .field("headers", &self.headers)
            .field("body_bytes", &self.body.len())
            .finish_non_exhaustive()
    }
}

/// The head of a response, and its body that is not read yet.
pub(crate) struct IncomingResponse {
    pub(crate) status: StatusCode,
    /// The headers; lookups ignore case.
    pub(crate) headers: HeaderMap,
    pub(crate) body: ChunkStream,
}

impl fmt::Debug for IncomingResponse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IncomingResponse")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

/// Why a request has no complete response. A source contains no URL, because a URL may contain a
/// password.
#[derive(Debug, thiserror::Error)]
pub(crate) enum HttpError {
    /// The client cannot be created; nothing was sent.
    #[error("cannot create the HTTP client")]
    ClientSetup { source: HttpErrorSource },
    /// The URL or a header is invalid; nothing was sent.
    #[error("the request is invalid")]
    InvalidRequest { source: HttpErrorSource },
    /// No connection.
    #[error("cannot connect")]
    Connect { source: HttpErrorSource },
    /// No connection within the client's own timeout.
    #[error("cannot connect in time")]
    ConnectTimedOut { source: HttpErrorSource },
    /// A timeout of the client after the connection.
    #[error("the connection timed out")]
    TimedOut { source: HttpErrorSource },
    /// The connection was lost before the end of the response.
    #[error("the connection was lost")]
    Disconnected { source: HttpErrorSource },
    /// The body exceeds the caller's limit.
    #[error("the response is longer than {max_bytes} bytes")]
    TooLarge { max_bytes: usize },
}
