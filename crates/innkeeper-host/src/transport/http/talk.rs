//! What one conversation over Streamable HTTP knows: place, era, session, and how to begin anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{Revision, http};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::sync::{Notify, Semaphore, watch};
use tokio::time::timeout;

use super::super::Place;
use crate::server::session::{Fault, Inlet};

/// What answers may look like.
const ANSWERS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How long a server may take over the end of a session, or over what follows the beginning of
/// another.
pub(super) const CONTROL: Duration = Duration::from_secs(5);

/// Notifications and answers of ours sent at the same time: each needs a connection of its own, and
/// a server may ask for thousands.
const ASIDE: usize = 16;

/// What is known of the era.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::transport) enum Era {
    /// The handshake is not over.
    Unknown,
    /// With sessions.
    Legacy,
    /// Every request stands alone.
    Modern,
}

/// The `initialize` that began the session.
#[derive(Clone, Debug)]
pub(super) struct Hello {
    pub(super) id: u64,
    pub(super) body: Bytes,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Talk {
    place: Arc<Place>,
    pub(super) inlet: Inlet,
    session: watch::Sender<Option<HeaderValue>>,
    hello: Mutex<Option<Hello>>,
    /// Held while a session is begun anew: one at a time.
    pub(super) renewing: tokio::sync::Mutex<()>,
    /// The turns of what nobody waits for.
    pub(super) aside: Semaphore,
    /// Told of every request that the server took.
    taken: Notify,
}

impl Talk {
    pub(super) fn new(place: Arc<Place>, inlet: Inlet) -> Self {
        Self {
            place,
            inlet,
            session: watch::Sender::default(),
            hello: Mutex::default(),
            renewing: tokio::sync::Mutex::default(),
            aside: Semaphore::new(ASIDE),
            taken: Notify::new(),
        }
    }

    fn kept_hello(&self) -> MutexGuard<'_, Option<Hello>> {
        self.hello.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn era(&self) -> Era {
        match self.inlet.revision().map(Revision::era) {
            None => Era::Unknown,
            Some(innkeeper_protocol::Era::Legacy) => Era::Legacy,
            Some(innkeeper_protocol::Era::Modern) => Era::Modern,
        }
    }

    /// The session that requests belong to now.
    pub(super) fn session(&self) -> Option<HeaderValue> {
        self.session.borrow().clone()
    }

    /// Resolves once requests belong to another session than this one.
    pub(super) async fn left(&self, session: Option<&HeaderValue>) {
        // The sender lives in self, so the wait cannot fail.
        drop(self.session.subscribe().wait_for(|now| now.as_ref() != session).await);
    }

    /// What began the session.
    pub(super) fn hello(&self) -> Option<Hello> {
        self.kept_hello().clone()
    }

    /// The server has answered `initialize`.
    pub(super) fn begun(&self, hello: Hello, headers: &HeaderMap) {
        *self.kept_hello() = Some(hello);
        self.session.send_replace(headers.get(http::SESSION_ID).cloned());
    }

    /// A request with everything that each one carries, in a session if there is one.
    pub(super) fn ask(&self, verb: Method, session: Option<&HeaderValue>) -> RequestBuilder {
        let mut headers = self.place.headers.clone();
        let events = HeaderValue::from_static("text/event-stream");
        headers.insert(ACCEPT, if verb == Method::GET { events } else { ANSWERS });
        if let Some(session) = session {
            carry(&mut headers, http::SESSION_ID, session.clone());
        }
        if let Some(revision) = self.inlet.revision() {
            let revision = HeaderValue::from_static(revision.as_str());
            carry(&mut headers, http::PROTOCOL_VERSION, revision);
        }
        self.place.client.request(verb, self.place.url.clone()).headers(headers)
    }

    /// Sends a request, signed in.
    pub(super) async fn send(&self, request: RequestBuilder) -> Result<Response, Fault> {
        let response = self.place.send(request).await?;
        if response.status().is_success() {
            self.taken.notify_waiters();
        }
        Ok(response)
    }

    /// Resolves when the server takes a request that was sent after this was first polled.
    pub(super) async fn taken(&self) {
        self.taken.notified().await;
    }

    /// A POST of this message.
    pub(super) fn post(&self, session: Option<&HeaderValue>, body: Bytes) -> RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        self.ask(Method::POST, session).header(CONTENT_TYPE, json).body(body)
    }

    /// Ends the session at the server, if there is one and the server cares.
    pub(super) async fn leave(&self) {
        let session = self.session();
        if let Some(session) = session {
            let ended = self.place.send_once(self.ask(Method::DELETE, Some(&session)));
            let status = timeout(CONTROL, ended).await.ok().and_then(Result::ok);
            let status = status.map(|response| response.status());
            if status.is_none_or(|status| {
                !status.is_success() && status != StatusCode::METHOD_NOT_ALLOWED
            }) {
                tracing::debug!(server = self.inlet.server(), "the session may not have ended");
            }
        }
    }
}

/// Sets a header by the name that the specification writes.
fn carry(headers: &mut HeaderMap, name: &'static str, value: HeaderValue) {
    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
        headers.insert(name, value);
    }
}
