//! What one conversation over Streamable HTTP knows: place, era, session, and how to begin anew.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use innkeeper_protocol::{Revision, envelope, http, method};
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use super::super::Place;
use super::refused;
use crate::error::Lost;
use crate::server::session::{Fault, Inlet};

/// What answers may look like.
const ANSWERS: HeaderValue = HeaderValue::from_static("application/json, text/event-stream");

/// How long a server may take to answer the beginning of another session: as for its first one,
/// unless that is configured.
const BEGINNING: Duration = Duration::from_secs(30);

/// How long a server may take over the end of a session, or over what follows the beginning of
/// another.
const CONTROL: Duration = Duration::from_secs(5);

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

#[derive(Debug, Default)]
struct State {
    session: Option<HeaderValue>,
    /// The body of the `initialize` that began the session.
    hello: Option<Bytes>,
}

/// One conversation.
#[derive(Debug)]
pub(super) struct Talk {
    place: Arc<Place>,
    pub(super) inlet: Inlet,
    state: Mutex<State>,
    /// Held while a session is begun anew: one at a time.
    renewing: tokio::sync::Mutex<()>,
    /// The turns of what nobody waits for.
    pub(super) aside: Semaphore,
}

impl Talk {
    pub(super) fn new(place: Arc<Place>, inlet: Inlet) -> Self {
        let (state, renewing) = (Mutex::default(), tokio::sync::Mutex::default());
        Self { place, inlet, state, renewing, aside: Semaphore::new(ASIDE) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
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
        self.state().session.clone()
    }

    /// The server has answered `initialize`.
    pub(super) fn begun(&self, hello: Bytes, headers: &HeaderMap) {
        let mut state = self.state();
        state.hello = Some(hello);
        state.session = headers.get(http::SESSION_ID).cloned();
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
        self.place.send(request).await
    }

    /// A POST of this message.
    pub(super) fn post(&self, session: Option<&HeaderValue>, body: Bytes) -> RequestBuilder {
        let json = HeaderValue::from_static("application/json");
        self.ask(Method::POST, session).header(CONTENT_TYPE, json).body(body)
    }

    /// Begins a new session in place of `gone`, which the server does not know any more, unless
    /// somebody else has done so meanwhile.
    pub(super) async fn renew(&self, gone: &HeaderValue) -> Result<(), Fault> {
        let _turn = self.renewing.lock().await;
        let (session, hello) = {
            let state = self.state();
            (state.session.clone(), state.hello.clone())
        };
        let Some(hello) = hello.filter(|_| session.as_ref() == Some(gone)) else { return Ok(()) };
        let server = self.inlet.server();
        tracing::warn!(server, "the session is gone, beginning another");
        let late = "it does not begin another session".into();
        let begun = timeout(BEGINNING, self.send(self.post(None, hello.clone()))).await;
        let late = |_| Fault::Lost { reason: Lost::Broken(late), sent: false };
        let mut response = begun.map_err(late)??;
        if !response.status().is_success() {
            return Err(refused(response).await);
        }
        let headers = response.headers().clone();
        // What it says of itself was learnt from the first one; the stream has to be read off.
        let mut left = self.inlet.limit();
        let rest = async {
            while let Ok(Some(chunk)) = response.chunk().await {
                left = left.saturating_sub(chunk.len());
                if left == 0 {
                    break;
                }
            }
        };
        drop(timeout(CONTROL, rest).await);
        let mut body = Vec::new();
        drop(envelope::write_notification(&mut body, method::INITIALIZED, None::<&()>));
        let told = self.send(self.post(headers.get(http::SESSION_ID), body.into()));
        drop(timeout(CONTROL, told).await);
        // Only now may others use it; whoever gives up before leaves the old one to be renewed.
        self.begun(hello, &headers);
        self.inlet.changed();
        Ok(())
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
