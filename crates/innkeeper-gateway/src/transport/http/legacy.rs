//! Requests of the legacy era: sessions, event streams and resumption.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use http::{HeaderValue, Response, StatusCode};
use innkeeper_protocol::http::{LAST_EVENT_ID, SESSION_ID};
use innkeeper_protocol::{
    Incoming, MalformedKind, MalformedMessage, Message, RequestId, Revision, method,
};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::batch::add_to_batch;
use super::posted_requests::{Request, Requests};
use super::replication::forwarding::{outcomes, own_or_forward, unavailable};
use super::replication::place::{Place, events_gone, no_session};
use super::replication::placement::{find_place, find_session, resume, store_session};
use super::response::{
    SILENCE, StreamStart, accepted, all_events, json_response, logged_events, rejected,
    rpc_error_response, slow_json,
};
use super::running_requests::{RunningRequests, end_calls, finish};
use super::session::{GENERAL_STREAM, NewSession, Session};
use super::{Accepted, HttpRequest, HttpTransport, header_text, incoming, unexpected_message};
use crate::event_stream::EventStream;
use crate::metrics::{ClientTransport, RejectionReason};
use crate::owned_calls::{OwnedCalls, request_json};
use crate::quota::Reservation;
use crate::replicas::OwnedKey;
use crate::sink::MessageSink;
use crate::store_error::StoreError;
use crate::transport::incoming::JsonRpcRequest;

/// Time without a message after which a client gets an event with an id, at which it can resume at
/// another replica.
const PRIME_DELAY: Duration = Duration::from_millis(250);

/// Handles a POST. The reservation is the memory of its body.
pub(super) async fn post(
    from: &HttpRequest<'_>,
    accepts: Accepted,
    message: Message<'_>,
    reservation: Reservation,
) -> Response<Body> {
    if let Message::Single(Incoming::Request { id, method, params }) = &message
        && method == method::INITIALIZE
    {
        // Boxed to keep the futures of other requests small.
        return Box::pin(initialize(from, id, *params)).await;
    }
    let session = match find_session(from, &request_ids(&message)).await {
        Ok(session) => session,
        Err(response) => return *response,
    };
    match message {
        Message::Single(Incoming::Request { id, method, params }) => {
            let request = Request::new(id, &method, params);
            respond(from, &session, accepts, Requests::Single(request), reservation).await
        }
        Message::Single(message) => {
            incoming::accept(&from.transport.gateway, &session.client, message);
            accepted()
        }
        Message::Batch(messages) => batch(from, &session, accepts, messages, reservation).await,
    }
}

fn request_ids(message: &Message<'_>) -> Vec<RequestId> {
    match message {
        Message::Single(message) => request_id(message).into_iter().collect(),
        Message::Batch(messages) => messages.iter().flatten().filter_map(request_id).collect(),
    }
}

fn request_id(message: &Incoming<'_>) -> Option<RequestId> {
    match message {
        Incoming::Request { id, .. } => Some(id.clone()),
        Incoming::Notification { .. } | Incoming::Response { .. } => None,
    }
}

async fn batch(
    from: &HttpRequest<'_>,
    session: &Arc<Session>,
    accepts: Accepted,
    messages: Vec<Result<Incoming<'_>, MalformedMessage>>,
    reservation: Reservation,
) -> Response<Body> {
    let revision = session.client.settings.identity().map(|identity| identity.revision);
    if !revision.is_some_and(Revision::allows_batches) {
        let error = unexpected_message("batch: the protocol revision of the session has none");
        return rpc_error_response(StatusCode::BAD_REQUEST, None, &error);
    }
    if let Some(Err(malformed)) = messages.last()
        && malformed.kind == MalformedKind::BatchTooLarge
    {
        let error = incoming::malformed_error(malformed);
        return rpc_error_response(StatusCode::BAD_REQUEST, malformed.id.as_ref(), &error);
    }
    let mut requests = Vec::new();
    let mut errors = Vec::new();
    for (index, message) in messages.into_iter().enumerate() {
        let counted = from.transport.gateway.traffic.count_batched(&from.principal, index);
        match message {
            Ok(Incoming::Request { id, method, params }) => {
                requests.push(Request::new(id, &method, params).counted(counted));
            }
            // A message above the rate starts no work: it ends a request, or answers one of a server.
            Ok(other) => incoming::accept(&from.transport.gateway, &session.client, other),
            // The others run (JSON-RPC 2.0, 6).
            Err(malformed) => {
                let error = incoming::malformed_error(&malformed);
                add_to_batch(&mut errors, &incoming::error_line(malformed.id.as_ref(), &error));
            }
        }
    }
    match (requests.is_empty(), errors.is_empty()) {
        (true, true) => accepted(),
        (true, false) => {
            errors.extend_from_slice(b"]\n");
            json_response(StatusCode::BAD_REQUEST, errors.into())
        }
        (false, _) => {
            let requests = Requests::Batch { requests, errors };
            respond(from, session, accepts, requests, reservation).await
        }
    }
}

/// Creates a session and returns the result of `initialize` with its id.
async fn initialize(
    from: &HttpRequest<'_>,
    id: &RequestId,
    params: Option<&RawValue>,
) -> Response<Body> {
    let transport = from.transport;
    let session = match create_session(from, id).await {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let mut opening = OpeningSession { transport, session: &session, is_open: false };
    match transport.gateway.methods.subscriptions.add_legacy(&session.client) {
        Ok(subscription) => {
            let subscription = Arc::new(subscription);
            session.subscription.get_or_init(|| subscription);
        }
        Err(error) => {
            return rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
        }
    }
    let connected = connected(from, &session, None);
    let request = JsonRpcRequest { id, method: method::INITIALIZE, params };
    let line =
        incoming::respond_connected(&transport.gateway, &connected, &MessageSink::None, request)
            .await;
    let line = line.unwrap_or_default();
    if session.client.settings.identity().is_none() {
        return json_response(StatusCode::BAD_REQUEST, line);
    }
    if !store_session(transport, &session).await {
        let reason = "the session is not stored".to_owned();
        return unavailable(&StoreError { reason });
    }
    opening.is_open = true;
    let mut response = json_response(StatusCode::OK, line);
    // The id consists of ASCII characters.
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
}

/// Creates a session at the replica that must own it.
async fn create_session(
    from: &HttpRequest<'_>,
    request: &RequestId,
) -> Result<Arc<Session>, Box<Response<Body>>> {
    let HttpRequest { transport, endpoint, principal, .. } = from;
    let reserved = transport.sessions.reserve(principal).map_err(|rejection| {
        transport.gateway.traffic.metrics.count_rejection(RejectionReason::Sessions);
        Box::new(rejection.into_response())
    });
    let (slot, id) = reserved?;
    let ownership = match &transport.replication {
        None => None,
        Some(replication) => {
            let key = transport.gateway.servers.owned_key(principal, Some(&id), *endpoint);
            let key = key.unwrap_or_else(|| OwnedKey::Session(id.clone()));
            let requests = std::slice::from_ref(request);
            let owning = own_or_forward(from, replication, &key, true, requests);
            let ownership = Box::pin(owning).await?;
            ownership.map(|ownership| (ownership, replication.stream_queue.clone()))
        }
    };
    let principal = principal.clone();
    let general = EventStream::new(GENERAL_STREAM);
    let new = NewSession { id, principal, endpoint: *endpoint, ownership, general };
    Ok(transport.sessions.create(slot, new))
}

/// A session whose client does not have its id yet. Dropping the value ends the session, also if the
/// client leaves before its response.
struct OpeningSession<'a> {
    transport: &'a HttpTransport,
    session: &'a Session,
    is_open: bool,
}

impl Drop for OpeningSession<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            self.transport.end_session(&self.session.id);
        }
    }
}

fn connected(
    from: &HttpRequest<'_>,
    session: &Session,
    calls: Option<Arc<OwnedCalls>>,
) -> incoming::Connected {
    incoming::Connected {
        transport: ClientTransport::Http,
        client: session.client.clone(),
        subscription: session.subscription.get().cloned(),
        header_trace: from.transport.gateway.methods.header_trace(&from.parts.headers),
        calls,
    }
}

/// Responds with JSON, or with an event stream if a message or some seconds precede the response. The
/// requests continue without the connection of their client.
async fn respond(
    from: &HttpRequest<'_>,
    session: &Arc<Session>,
    accepts: Accepted,
    requests: Requests,
    reservation: Reservation,
) -> Response<Body> {
    let transport = from.transport;
    let request_ids: Vec<RequestId> =
        requests.all().iter().map(|request| request.id.clone()).collect();
    let room = match transport.gateway.traffic.responses.reserve(&from.principal, &request_ids) {
        Ok(room) => room,
        Err(full) => return full.rejection().into_response(),
    };
    let stream = session.streams.create();
    let sink = match accepts.events {
        true => MessageSink::Stream(stream.clone())
            .counted(&transport.gateway.traffic.responses, &from.principal),
        false => MessageSink::None,
    };
    let calls = from.owned_calls(session.ownership().cloned(), Some((&session.id, stream.number)));
    let changes_session = requests.changes_session();
    let remember = || {
        session.remember(&stream, &request_ids.iter().map(request_json).collect::<Vec<_>>());
    };
    // Another replica owns the session, and the messages of the stream are gone.
    let lost = || outcomes(from, &request_ids, |_| true).unwrap_or_else(accepted);
    let gateway = transport.gateway.clone();
    let connected = connected(from, session, calls.clone());
    let stored_by = transport.clone();
    let stored = session.clone();
    let responding = Box::pin(async move {
        let _reservation = reservation;
        let line = requests.respond(&gateway, &connected, &sink, room).await;
        if changes_session {
            Box::pin(store_session(&stored_by, &stored)).await;
        }
        line
    });
    let mut running = RunningRequests {
        responding: Some(responding),
        transport: transport.clone(),
        stream: stream.clone(),
        calls: calls.clone(),
        activity: Some(session.activity()),
    };
    let silence = if is_resumable_elsewhere(session) { PRIME_DELAY } else { SILENCE };
    let first = tokio::select! {
        biased;
        line = running.responses() => {
            if !stream.has_messages() {
                from.keep_records(calls.as_deref());
                return match line {
                    Some(line) => json_response(StatusCode::OK, line),
                    // The requests ended with the session, and not by their client.
                    None if session.is_lost() => lost(),
                    None => accepted(),
                };
            }
            // The messages and the response arrived together.
            finish(&stream, line);
            remember();
            if session.replicated.is_some() {
                let events = stored_events(transport, &stream, calls);
                return events.unwrap_or_else(lost);
            }
            let response = all_events(&stream);
            transport.finished_streams.add(&session.client.principal, &stream);
            return response;
        }
        () = stream.wait_first(), if accepts.events => StreamStart::Message,
        () = sleep(silence), if accepts.events => match understands_empty_events(session) {
            true => StreamStart::EmptyEvent,
            false => StreamStart::Comment,
        },
        () = sleep(SILENCE), if !accepts.events => return slow_json_response(running),
    };
    remember();
    drop(running);
    let metrics = &transport.gateway.traffic.metrics;
    let reader = stream.read_after(0);
    reader.map_or_else(lost, |reader| logged_events(reader, first, metrics))
}

/// Returns the responses as JSON whose body has started, for a client that reads no event streams.
fn slow_json_response(mut running: RunningRequests) -> Response<Body> {
    let responses = async move {
        let line = running.responses().await;
        line.map(Body::from).ok_or_else(|| axum::Error::new("the requests have no response"))
    };
    slow_json(Box::pin(responses))
}

/// Returns the events of a finished stream when they are stored; `None` if they are gone.
fn stored_events(
    transport: &HttpTransport,
    stream: &Arc<EventStream>,
    calls: Option<Arc<OwnedCalls>>,
) -> Option<Response<Body>> {
    let finished = stream.clone();
    transport.gateway.tasks.spawn(async move { end_calls(&finished, calls).await });
    let metrics = &transport.gateway.traffic.metrics;
    stream.read_after(0).map(|reader| logged_events(reader, StreamStart::Message, metrics))
}

/// Returns whether the client understands an event without data, and another replica could continue.
fn is_resumable_elsewhere(session: &Session) -> bool {
    session.replicated.is_some() && understands_empty_events(session)
}

/// Returns whether the client reads an event without data as an id, and not as a broken message.
fn understands_empty_events(session: &Session) -> bool {
    let revision = session.client.settings.identity().map(|identity| identity.revision);
    revision >= Some(Revision::V2025_11_25)
}

/// Opens the stream for messages that belong to no request, or resumes a stream.
pub(super) async fn get(from: &HttpRequest<'_>) -> Response<Body> {
    if header_text(&from.parts.headers, SESSION_ID).is_none() {
        return super::no_stream_without_session();
    }
    if !Accepted::permits_events(&from.parts.headers) {
        return rejected(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `text/event-stream`",
        );
    }
    let place = match find_place(from, &[]).await {
        Ok(place) => place,
        Err(response) => return *response,
    };
    // A client that has received no event can send an empty id.
    let last = header_text(&from.parts.headers, LAST_EVENT_ID).filter(|id| !id.is_empty());
    let position = match last.map(parse_event_id) {
        None => None,
        Some(Some(position)) => Some(position),
        Some(None) => {
            let message = "`Last-Event-ID` is not an id of this gateway; leave the header out";
            return rejected(StatusCode::BAD_REQUEST, message);
        }
    };
    let replication = from.transport.replication.as_ref();
    let reader = match (&place, position, replication) {
        (Place::Here(session), None, _) => Some(session.streams.general.read_latest()),
        (Place::Here(session), Some((stream, position)), _) if session.is_own_stream(stream) => {
            session.streams.find(stream).and_then(|stream| stream.read_after(position))
        }
        (place, Some((stream, position)), Some(replication)) => {
            let (id, ownership) = match place {
                Place::Here(session) => (&session.id, session.ownership()),
                Place::Ended { id, ownership } => (id, Some(ownership)),
            };
            let Some(ownership) = ownership else { return events_gone() };
            match Box::pin(resume(replication, ownership, id, stream, position)).await {
                Ok(stream) => stream.read_after(position),
                Err(response) => return *response,
            }
        }
        (Place::Ended { .. }, None, _) => return no_session(),
        (_, Some(_), None) => None,
    };
    let Some(reader) = reader else { return events_gone() };
    let metrics = &from.transport.gateway.traffic.metrics;
    match place {
        Place::Here(session) => {
            let reader = reader.with_activity(session.activity());
            logged_events(reader, StreamStart::Message, metrics)
        }
        Place::Ended { .. } => logged_events(reader, StreamStart::Message, metrics),
    }
}

/// Returns the stream and the position of an event.
fn parse_event_id(id: &str) -> Option<(u64, u64)> {
    let (stream, position) = id.split_once('-')?;
    Some((stream.parse().ok()?, position.parse().ok()?))
}

/// Ends a session.
pub(super) async fn delete(from: &HttpRequest<'_>) -> Response<Body> {
    let session = match find_session(from, &[]).await {
        Ok(session) => session,
        Err(response) => return *response,
    };
    if let Some(session) = from.transport.sessions.remove(&session.id) {
        from.transport.close_session(&session);
        // A later request of the client must not find the session at any replica.
        if let Some(releasing) = from.transport.release(&session)
            && let Err(error) = releasing.await
        {
            return unavailable(&error);
        }
    }
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}
