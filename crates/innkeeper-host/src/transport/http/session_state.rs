//! What a host reads and changes of a Streamable HTTP session: its id, and who ends it.

use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use bytes::Bytes;
use innkeeper_protocol::Revision;
use innkeeper_protocol::view::InitializeResult;
use reqwest::header::HeaderValue;
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::remote_session::RemoteSession;

/// The `initialize` request that started the session.
#[derive(Clone, Debug)]
pub(super) struct InitializeRequest {
    pub(super) id: u64,
    pub(super) body: Bytes,
}

/// The session of another host that a connection continues.
#[derive(Debug)]
struct ContinuedSession {
    id: HeaderValue,
    result: InitializeResult,
    revision: Revision,
}

#[derive(Debug)]
pub(crate) struct HttpSessionState {
    /// The digest of the address of the server.
    endpoint: String,
    /// The id of the current session, which `Debug` does not print.
    id: watch::Sender<Option<HeaderValue>>,
    initialize_request: Mutex<Option<InitializeRequest>>,
    initialize_result: OnceLock<Box<RawValue>>,
    continued: Option<ContinuedSession>,
    /// The session that this host does not end at the server: another host has it or will continue it.
    handed_over: Mutex<Option<HeaderValue>>,
}

impl HttpSessionState {
    /// Creates the state before the handshake. `endpoint` is the digest of the address.
    pub(in crate::transport) fn new(endpoint: String) -> Self {
        Self {
            endpoint,
            id: watch::Sender::default(),
            initialize_request: Mutex::default(),
            initialize_result: OnceLock::new(),
            continued: None,
            handed_over: Mutex::default(),
        }
    }

    /// Creates the state of a session that another host started. Until [`Self::end_on_close`], the connection does
    /// not end the session at the server.
    ///
    /// # Errors
    ///
    /// Returns why the session cannot be continued at this address.
    pub(in crate::transport) fn continuing(
        endpoint: &str,
        session: &RemoteSession,
    ) -> Result<Self, &'static str> {
        if session.endpoint != endpoint {
            return Err("the session belongs to another address or other headers");
        }
        let (result, revision) =
            session.negotiated().ok_or("the host does not know the revision of the session")?;
        let mut id = HeaderValue::from_str(&session.session_id)
            .map_err(|_| "the id of the session is no header value")?;
        id.set_sensitive(true);
        let body = session.initialize_request.clone().into();
        let request = InitializeRequest { id: session.initialize_id, body };
        Ok(Self {
            endpoint: session.endpoint.clone(),
            id: watch::Sender::new(Some(id.clone())),
            initialize_request: Mutex::new(Some(request)),
            initialize_result: OnceLock::from(session.initialize_result.clone()),
            continued: Some(ContinuedSession { id: id.clone(), result, revision }),
            handed_over: Mutex::new(Some(id)),
        })
    }

    /// Returns what the server returned to the host that started the continued session; `None` if the
    /// connection begins with a handshake.
    pub(crate) fn continued(&self) -> Option<(&InitializeResult, Revision)> {
        self.continued.as_ref().map(|continued| (&continued.result, continued.revision))
    }

    /// Returns whether this is the session that another host started.
    pub(super) fn is_continued(&self, session: Option<&HeaderValue>) -> bool {
        self.continued.as_ref().is_some_and(|continued| Some(&continued.id) == session)
    }

    pub(super) fn id(&self) -> Option<HeaderValue> {
        self.id.borrow().clone()
    }

    /// Resolves when the current session is not `session`.
    pub(super) async fn wait_change(&self, session: Option<&HeaderValue>) {
        // `self` owns the sender, so the wait cannot fail.
        let _ = self.id.subscribe().wait_for(|now| now.as_ref() != session).await;
    }

    fn lock_initialize_request(&self) -> MutexGuard<'_, Option<InitializeRequest>> {
        self.initialize_request.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the request that started the session.
    pub(super) fn initialize_request(&self) -> Option<InitializeRequest> {
        self.lock_initialize_request().clone()
    }

    /// Stores the session of a successful `initialize`.
    pub(super) fn set(&self, request: InitializeRequest, id: Option<&HeaderValue>) {
        *self.lock_initialize_request() = Some(request);
        let id = id.cloned().map(|mut id| {
            id.set_sensitive(true);
            id
        });
        self.id.send_replace(id);
    }

    /// Forgets the session, which has ended.
    pub(super) fn clear(&self) {
        self.id.send_replace(None);
    }

    /// Stores the result of the handshake of the legacy era.
    pub(crate) fn set_initialize_result(&self, result: Box<RawValue>) {
        // A connection has one handshake: a later `initialize` has the same result.
        let _ = self.initialize_result.set(result);
    }

    fn lock_handed_over(&self) -> MutexGuard<'_, Option<HeaderValue>> {
        self.handed_over.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Makes this connection responsible for the end of its session at the server.
    pub(crate) fn end_on_close(&self) {
        *self.lock_handed_over() = None;
    }

    /// Returns the session for another host; `None` if the server has no sessions.
    pub(crate) fn session(&self) -> Option<RemoteSession> {
        self.session_with_id(&self.id()?)
    }

    /// Returns the session for another host, and no longer ends the session at the server.
    pub(crate) fn hand_over(&self) -> Option<RemoteSession> {
        let id = self.id()?;
        *self.lock_handed_over() = Some(id.clone());
        self.session_with_id(&id)
    }

    fn session_with_id(&self, id: &HeaderValue) -> Option<RemoteSession> {
        let InitializeRequest { id: initialize_id, body } = self.initialize_request()?;
        Some(RemoteSession {
            session_id: id.to_str().ok()?.to_owned(),
            endpoint: self.endpoint.clone(),
            initialize_id,
            initialize_request: String::from_utf8(body.into()).ok()?,
            initialize_result: self.initialize_result.get()?.clone(),
        })
    }

    /// Returns whether another host continues this session.
    pub(super) fn is_handed_over(&self, session: &HeaderValue) -> bool {
        self.lock_handed_over().as_ref() == Some(session)
    }
}
