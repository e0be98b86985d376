//! One Streamable HTTP session with its target: builds and sends its requests, and ends it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use innkeeper_config::Secret;
use innkeeper_protocol::{Revision, http};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::sync::{Notify, Semaphore};
use tokio::time::{Instant, timeout};

use super::super::HttpTarget;
use super::super::sent_secrets::SentSecrets;
use super::session_state::{HttpSessionState, InitializeRequest};
use crate::error::UnavailableReason;
use crate::session::{InboundSink, RequestError};

const ACCEPTED_TYPES: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// Timeout for the `DELETE` of a session, and for the `initialized` notification of a new session.
pub(super) const CONTROL_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum number of notifications and responses sent concurrently: each needs a connection, and a
/// server can cause thousands.
pub(super) const MAX_CONCURRENT_NOTIFICATIONS: usize = 16;

/// The era of the server, as far as the handshake determined it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum NegotiatedEra {
    /// The handshake is not complete.
    Unknown,
    /// The era with sessions.
    Legacy,
    /// The era in which each request is independent.
    Modern,
}

/// The last re-initialization, which failed.
#[derive(Debug)]
pub(super) struct FailedReinitialize {
    pub(super) ended: Instant,
    pub(super) reason: UnavailableReason,
}

impl FailedReinitialize {
    /// Returns the error of a request that needs the session. That request was not sent.
    pub(super) fn request_error(&self) -> RequestError {
        RequestError::Unavailable { reason: self.reason.clone(), sent: false }
    }
}

#[derive(Debug)]
pub(super) struct HttpSession {
    target: Arc<HttpTarget>,
    pub(super) inbound: InboundSink,
    pub(super) state: Arc<HttpSessionState>,
    /// Locked during a re-initialization: one at a time. Contains the last failure.
    pub(super) reinitialize_lock: tokio::sync::Mutex<Option<FailedReinitialize>>,
    /// The permits for outgoing notifications and responses.
    pub(super) notification_permits: Semaphore,
    /// Notified of every request that the server accepted.
    accepted: Notify,
    /// Whether the server may have lost the session, so that the next request starts another one.
    is_doubtful: AtomicBool,
    /// Whether the server no longer has the negotiated revision.
    is_outdated: AtomicBool,
}

impl HttpSession {
    pub(super) fn new(
        target: Arc<HttpTarget>,
        inbound: InboundSink,
        state: Arc<HttpSessionState>,
    ) -> Self {
        Self {
            target,
            inbound,
            state,
            reinitialize_lock: tokio::sync::Mutex::default(),
            notification_permits: Semaphore::new(MAX_CONCURRENT_NOTIFICATIONS),
            accepted: Notify::new(),
            is_doubtful: AtomicBool::new(false),
            is_outdated: AtomicBool::new(false),
        }
    }

    pub(super) fn era(&self) -> NegotiatedEra {
        match self.inbound.revision().map(Revision::era) {
            None => NegotiatedEra::Unknown,
            Some(innkeeper_protocol::Era::Legacy) => NegotiatedEra::Legacy,
            Some(innkeeper_protocol::Era::Modern) => NegotiatedEra::Modern,
        }
    }

    pub(super) fn session_id(&self) -> Option<HeaderValue> {
        self.state.id()
    }

    /// Resolves when the current session is not `session`.
    pub(super) async fn wait_session_change(&self, session: Option<&HeaderValue>) {
        self.state.wait_change(session).await;
    }

    /// Stores the session of a successful `initialize`.
    pub(super) fn set_session(&self, init_request: InitializeRequest, headers: &HeaderMap) {
        // An empty id is none.
        let id = headers.get(http::SESSION_ID).filter(|id| !id.is_empty());
        self.state.set(init_request, id);
    }

    /// Builds a request with the common headers and the session id.
    pub(super) fn build_request(
        &self,
        method: Method,
        session: Option<&HeaderValue>,
    ) -> RequestBuilder {
        let mut headers = self.target.headers.clone();
        let events = HeaderValue::from_static("text/event-stream");
        headers.insert(ACCEPT, if method == Method::GET { events } else { ACCEPTED_TYPES });
        if let Some(session) = session {
            insert_header(&mut headers, http::SESSION_ID, session.clone());
        }
        if let Some(revision) = self.inbound.revision() {
            let revision = HeaderValue::from_static(revision.as_str());
            insert_header(&mut headers, http::PROTOCOL_VERSION, revision);
        }
        self.target.client.request(method, self.target.url.configured.clone()).headers(headers)
    }

    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, RequestError> {
        let response = self.target.send(request).await?;
        Ok(self.record_response(response))
    }

    /// Sends a request of the current session with credentials. A 401 without a challenge is returned
    /// if the session needed no token so far: some servers report an unknown session so.
    pub(super) async fn send_in_session(
        &self,
        request: RequestBuilder,
    ) -> Result<Response, RequestError> {
        let response = self.target.send_in_session(request).await?;
        Ok(self.record_response(response))
    }

    fn record_response(&self, mut response: Response) -> Response {
        if response.status().is_success() {
            self.accepted.notify_waiters();
        } else if let Some(Ok(id)) = self.session_id().as_ref().map(HeaderValue::to_str) {
            // Servers quote the id in the error for an unknown session.
            SentSecrets::attach(&mut response, &Secret::new(id));
        }
        response
    }

    /// Lets the next request start another session: the server may have lost this one.
    pub(super) fn doubt_session(&self) {
        self.is_doubtful.store(true, Ordering::Relaxed);
    }

    /// Starts another session if the server may have lost the current one.
    ///
    /// The error states that the caller's request was not sent.
    pub(super) async fn replace_doubtful_session(&self) -> Result<(), RequestError> {
        if !self.is_doubtful.load(Ordering::Relaxed)
            || !self.is_doubtful.swap(false, Ordering::Relaxed)
        {
            return Ok(());
        }
        let Some(session) = self.session_id() else { return Ok(()) };
        Box::pin(self.reinitialize(&session)).await.inspect_err(|_| self.doubt_session())
    }

    /// Records that the server has other sessions or another revision now.
    pub(super) fn mark_outdated(&self) {
        self.is_outdated.store(true, Ordering::Relaxed);
    }

    /// Returns whether only another handshake can reach the server.
    pub(super) fn is_outdated(&self) -> bool {
        self.is_outdated.load(Ordering::Relaxed)
    }

    /// Resolves when the server accepts a request that is sent after the first poll.
    pub(super) async fn wait_accepted(&self) {
        self.accepted.notified().await;
    }

    /// Builds a POST request with a JSON body.
    pub(super) fn build_post(&self, session: Option<&HeaderValue>, body: Bytes) -> RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        self.build_request(Method::POST, session).header(CONTENT_TYPE, json).body(body)
    }

    /// Ends the session on the server, if there is one that no other host continues.
    pub(super) async fn end_session(&self) {
        let session = self.session_id();
        if let Some(session) = session.filter(|session| !self.state.is_handed_over(session)) {
            let ended = self.target.send_once(self.build_request(Method::DELETE, Some(&session)));
            let status = timeout(CONTROL_TIMEOUT, ended).await.ok().and_then(Result::ok);
            let status = status.map(|response| response.status());
            if status.is_none_or(|status| {
                !status.is_success() && status != StatusCode::METHOD_NOT_ALLOWED
            }) {
                tracing::debug!(server = self.inbound.server(), "session end not confirmed");
            }
            self.state.clear();
        }
    }
}

/// Sets a header with the name from the specification.
fn insert_header(headers: &mut HeaderMap, name: &'static str, value: HeaderValue) {
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        headers.insert(name, value);
    }
}
