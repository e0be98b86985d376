//! HTTP+SSE of 2024-11-05: one event stream for each client, and a POST for each of its messages.
//!
//! The first event of a stream has the path for the POST requests. A stream is a session: the end of
//! the stream cancels the requests of its client.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::stream;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::replication::forwarding::{own_or_forward, unavailable};
use super::response::{self, KEEP_ALIVE, accepted, rejected};
use super::{
    Accepted, HttpRequest, HttpTransport, Origin, ReplicaTarget, check_content, discard,
    only_methods, parse,
};
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::replicas::{Claim, OwnedKey, Ownership};
use crate::store_error::StoreError;
use crate::transport::connection::{Connection, MessageSource};

pub(crate) const MESSAGES_PATH: &str = "/messages";

/// The parameter of the path with the id of the stream.
const SESSION_PARAMETER: &str = "sessionId";

/// All open streams by their ids.
#[derive(Debug, Default)]
pub(super) struct SseSessions(RwLock<HashMap<Box<str>, Arc<SseSession>>>);

/// One stream with its client.
#[derive(Debug)]
struct SseSession {
    connection: Connection,
    /// The place of the stream among all sessions.
    _slot: Reservation,
}

impl SseSessions {
    fn insert(&self, id: Box<str>, session: Arc<SseSession>) {
        self.0.write().unwrap_or_else(PoisonError::into_inner).insert(id, session);
    }

    /// Returns the stream with an id, if it belongs to this principal.
    fn find(&self, id: &str, principal: &Principal) -> Option<Arc<SseSession>> {
        let by_id = self.0.read().unwrap_or_else(PoisonError::into_inner);
        by_id.get(id).filter(|session| session.connection.client.principal == *principal).cloned()
    }

    fn end(&self, id: &str) {
        let session = self.0.write().unwrap_or_else(PoisonError::into_inner).remove(id);
        if let Some(session) = session {
            session.connection.end();
        }
    }
}

pub(crate) async fn open_stream(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: Principal,
    parts: &Parts,
) -> Response<Body> {
    if parts.method != Method::GET {
        let message = "use GET for the stream, and POST at the path in its first event; Streamable \
                       HTTP is at `/mcp`";
        return only_methods("GET", message);
    }
    if !Accepted::permits_events(&parts.headers) {
        return rejected(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `text/event-stream`",
        );
    }
    let (slot, id) = match transport.sessions.reserve(&principal) {
        Ok(reserved) => reserved,
        Err(rejection) => return rejection.into_response(),
    };
    let ownership = match own_stream(transport, &id).await {
        Ok(ownership) => ownership,
        Err(error) => return unavailable(&error),
    };
    let (connection, messages) = Connection::new(&transport.gateway, principal, endpoint);
    let session = Arc::new(SseSession { connection, _slot: slot });
    let prefix = forwarded_prefix(&parts.headers).unwrap_or_default();
    let path = format!("{prefix}{MESSAGES_PATH}?{SESSION_PARAMETER}={id}");
    transport.sse_sessions.insert(id.clone(), session.clone());
    let gateway = transport.gateway.clone();
    let answered = async move {
        gateway.drained().await;
        session.connection.requests.join().await;
    };
    let events = OpenStream {
        endpoint: Some(response::named_event("endpoint", &path)),
        messages,
        answered: Some(Box::pin(answered)),
        _session: OpenSession { transport: transport.clone(), id, ownership },
    };
    let events = stream::unfold(events, |mut events| async move {
        let next = events.next().await?;
        Some((next, events))
    });
    response::event_body(events)
}

/// Returns the path that a reverse proxy has removed from the start of that of the client: the client
/// sends its messages there.
fn forwarded_prefix(headers: &HeaderMap) -> Option<&str> {
    let prefix = headers.get("x-forwarded-prefix")?.to_str().ok()?.trim_end_matches('/');
    prefix.strip_prefix('/')?.split('/').all(is_path_segment).then_some(prefix)
}

fn is_path_segment(part: &str) -> bool {
    !matches!(part, "" | "." | "..")
        && part.chars().all(|c| c.is_ascii_alphanumeric() || "-._~".contains(c))
}

/// Ends its session at the end of the stream.
struct OpenSession {
    transport: Arc<HttpTransport>,
    id: Box<str>,
    /// `None` without replicas.
    ownership: Option<Arc<Ownership>>,
}

impl Drop for OpenSession {
    fn drop(&mut self) {
        self.transport.sse_sessions.end(&self.id);
        if let (Some(replication), Some(ownership)) =
            (&self.transport.replication, self.ownership.take())
        {
            // The task ends with the gateway: the key then expires.
            let _ = replication.ended.send(ownership);
        }
    }
}

/// Makes this replica the owner of a stream, so that the others know where its messages go.
async fn own_stream(
    transport: &HttpTransport,
    id: &str,
) -> Result<Option<Arc<Ownership>>, StoreError> {
    let Some(replication) = &transport.replication else { return Ok(None) };
    match replication.replicas.claim(&OwnedKey::Session(id.into()), true).await? {
        Claim::Owned(ownership) => Ok(Some(ownership)),
        Claim::Elsewhere(_) | Claim::Unknown => Ok(None),
    }
}

struct OpenStream {
    /// The first event.
    endpoint: Option<Bytes>,
    messages: mpsc::Receiver<Bytes>,
    /// Ends when the gateway closes and has answered the requests of the client.
    answered: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _session: OpenSession,
}

impl OpenStream {
    /// Returns the parts of the next event; `None` at the end.
    async fn next(&mut self) -> Option<Vec<Bytes>> {
        if let Some(first) = self.endpoint.take() {
            return Some(vec![first]);
        }
        let Some(answered) = &mut self.answered else {
            // The responses that arrived before the end.
            return self.messages.try_recv().ok().map(|message| response::event(None, &message));
        };
        tokio::select! {
            biased;
            message = self.messages.recv() => {
                message.map(|message| response::event(None, &message))
            }
            () = answered => {
                self.answered = None;
                Some(vec![response::keep_alive()])
            }
            () = sleep(KEEP_ALIVE) => Some(vec![response::keep_alive()]),
        }
    }
}

/// Passes the messages of one POST to the client of a stream. The responses go to the stream.
pub(crate) async fn receive_message(
    transport: &Arc<HttpTransport>,
    origin: Origin,
    request: Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if parts.method != Method::POST {
        return only_methods("POST", "use POST for the messages of an open stream");
    }
    if let Err(rejection) = check_content(&parts.headers) {
        discard(body).await;
        return rejection.into_response();
    }
    let (body, memory) = match transport.bodies.read(&origin.principal, body).await {
        Ok(read) => read,
        Err(rejection) => return rejection.into_response(),
    };
    let query = parts.uri.query().unwrap_or_default();
    let from = origin.request(transport, &parts, body.clone());
    let from = HttpRequest { target: ReplicaTarget::Messages(query), ..from };
    let Some(id) = session_id(query) else { return no_stream() };
    let Some(session) = transport.sse_sessions.find(id, &from.principal) else {
        return elsewhere(&from, id).await;
    };
    let message = match parse(&body) {
        Ok(message) => message,
        Err(response) => return *response,
    };
    let accepting = session.connection.accept(message, MessageSource::Post(memory));
    match timeout(transport.gateway.options.limits.request_time, accepting).await {
        Ok(()) => accepted(),
        Err(_) => rejected(
            StatusCode::SERVICE_UNAVAILABLE,
            "the client does not read its stream; read the responses first",
        ),
    }
}

/// Returns the response to a message for a stream that this replica does not have.
async fn elsewhere(from: &HttpRequest<'_>, id: &str) -> Response<Body> {
    if let Some(replication) = &from.transport.replication {
        let key = OwnedKey::Session(id.into());
        let owning = own_or_forward(from, replication, &key, false, &[]);
        if let Err(response) = Box::pin(owning).await {
            return *response;
        }
    }
    no_stream()
}

fn no_stream() -> Response<Body> {
    rejected(
        StatusCode::NOT_FOUND,
        "no stream has this `sessionId`, or it has ended; open a stream with GET `/sse`",
    )
}

fn session_id(query: &str) -> Option<&str> {
    let mut parameters = query.split('&').filter_map(|parameter| parameter.split_once('='));
    parameters.find(|(name, _)| *name == SESSION_PARAMETER).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_of_a_proxy_is_a_plain_path() {
        let of = |prefix: &'static str| {
            let value = http::HeaderValue::from_static(prefix);
            let headers = HeaderMap::from_iter([("x-forwarded-prefix".parse().unwrap(), value)]);
            forwarded_prefix(&headers).map(str::to_owned)
        };
        assert_eq!(of("/ai").as_deref(), Some("/ai"));
        assert_eq!(of("/ai/tools-2/").as_deref(), Some("/ai/tools-2"));
        for other in ["", "/", "ai", "//evil.example", "/a/../b", "/a?b", "https://evil.example/a"]
        {
            assert_eq!(of(other), None, "{other}");
        }
    }
}
