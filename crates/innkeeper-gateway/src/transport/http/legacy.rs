//! Requests of the legacy era: sessions, event streams and resumption.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::FuturesOrdered;
use http::{HeaderValue, Response, StatusCode};
use innkeeper_protocol::http::{LAST_EVENT_ID, SESSION_ID};
use innkeeper_protocol::{Incoming, MalformedMessage, Message, RequestId, Revision, method};
use serde_json::value::RawValue;
use tokio::time::sleep;

use super::forwarding::{outcomes, own_or_forward, unavailable};
use super::placement::{Place, find_place, find_session, no_session, resume, store_session};
use super::response::{
    accepted, all_events, json_response, logged_events, rejected, rpc_error_response,
};
use super::session::{GENERAL_STREAM, NewSession, Session};
use super::{Accepted, HttpRequest, HttpTransport, header_text, incoming, unexpected_message};
use crate::client::{RequestGuard, RequestRejection};
use crate::error::RpcError;
use crate::event_stream::EventStream;
use crate::gateway::GatewayInner;
use crate::metrics::{ClientTransport, RejectionReason};
use crate::owned_calls::{OwnedCalls, request_json};
use crate::quota::Reservation;
use crate::rate_limits::RateExceeded;
use crate::replicas::OwnedKey;
use crate::response_memory::{BatchRoom, MAX_CONCURRENT_OF_BATCH, ResponseRoom};
use crate::sink::MessageSink;
use crate::store_error::StoreError;

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
        // In a box: each request would have room for the future.
        return Box::pin(initialize(from, (id, *params))).await;
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

/// Returns the ids of the requests of a message.
fn request_ids(message: &Message<'_>) -> Vec<RequestId> {
    let id = |message: &Incoming<'_>| match message {
        Incoming::Request { id, .. } => Some(id.clone()),
        Incoming::Notification { .. } | Incoming::Response { .. } => None,
    };
    match message {
        Message::Single(message) => id(message).into_iter().collect(),
        Message::Batch(messages) => messages.iter().flatten().filter_map(id).collect(),
    }
}

async fn batch(
    from: &HttpRequest<'_>,
    session: &Arc<Session>,
    accepts: Accepted,
    messages: Vec<Result<Incoming<'_>, MalformedMessage>>,
    reservation: Reservation,
) -> Response<Body> {
    let revision = session.client.identity().map(|identity| identity.revision);
    if !revision.is_some_and(Revision::allows_batches) {
        let error = unexpected_message("batch: the protocol revision of the session has none");
        return rpc_error_response(StatusCode::BAD_REQUEST, None, &error);
    }
    if let Some(Err(malformed)) = messages.iter().find(|message| message.is_err()) {
        let error = incoming::malformed_error(malformed);
        return rpc_error_response(StatusCode::BAD_REQUEST, malformed.id.as_ref(), &error);
    }
    let mut requests = Vec::new();
    for (index, message) in messages.into_iter().flatten().enumerate() {
        let counted = from.transport.gateway.count_batched(&from.principal, index);
        match message {
            Incoming::Request { id, method, params } => {
                requests.push(Request { counted, ..Request::new(id, &method, params) });
            }
            // A message above the rate starts no work: it ends a request, or answers one of a server.
            other => incoming::accept(&from.transport.gateway, &session.client, other),
        }
    }
    if requests.is_empty() {
        return accepted();
    }
    respond(from, session, accepts, Requests::Batch(requests), reservation).await
}

/// Creates a session and returns the result of `initialize` with its id.
async fn initialize(
    from: &HttpRequest<'_>,
    (id, params): (&RequestId, Option<&RawValue>),
) -> Response<Body> {
    let transport = from.transport;
    let session = match create_session(from, id).await {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let mut opening = OpeningSession { transport, session: &session, is_open: false };
    match transport.gateway.add_legacy_subscriber(&session.client) {
        Ok(subscription) => {
            let subscription = Arc::new(subscription);
            session.subscription.get_or_init(|| subscription);
        }
        Err(error) => {
            return rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
        }
    }
    let connected = connected(from, &session, None);
    let request = (id, method::INITIALIZE, params);
    let line =
        incoming::respond_connected(&transport.gateway, &connected, &MessageSink::None, request)
            .await;
    let line = line.unwrap_or_default();
    if session.client.identity().is_none() {
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
        transport.gateway.metrics.count_rejection(RejectionReason::Sessions);
        Box::new(rejection.into_response())
    });
    let (slot, id) = reserved?;
    let ownership = match &transport.gateway.replication {
        None => None,
        Some(replication) => {
            let key = transport.gateway.owned_key(principal, Some(&id), *endpoint);
            let key = key.unwrap_or_else(|| OwnedKey::Session(id.clone()));
            let requests = std::slice::from_ref(request);
            let owning = own_or_forward(from, replication, &key, true, requests);
            let ownership = Box::pin(owning).await?;
            ownership.map(|ownership| (ownership, replication.stream_queue.clone()))
        }
    };
    let (principal, general) = (principal.clone(), EventStream::new(GENERAL_STREAM));
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
        header_trace: from.transport.gateway.header_trace(from.headers),
        calls,
    }
}

/// A request of a session.
struct Request {
    id: RequestId,
    method: String,
    params: Option<Box<RawValue>>,
    /// Whether the request is above the rate of its client.
    counted: Result<(), RateExceeded>,
}

impl Request {
    fn new(id: RequestId, method: &str, params: Option<&RawValue>) -> Self {
        let params = params.map(ToOwned::to_owned);
        Self { id, method: method.to_owned(), params, counted: Ok(()) }
    }

    fn error_line(&self, error: &RpcError) -> Bytes {
        incoming::error_line(Some(&self.id), error)
    }

    async fn respond(
        &self,
        gateway: &Arc<GatewayInner>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        started: Result<RequestGuard, RequestRejection>,
    ) -> Option<Bytes> {
        let request = (&self.id, &*self.method, self.params.as_deref());
        incoming::respond_started(gateway, connected, started, sink, request).await
    }

    /// Responds as one of a batch. `started` is `None` for a request above the rate.
    async fn respond_in_batch(
        &self,
        gateway: &Arc<GatewayInner>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        started: Option<Result<RequestGuard, RequestRejection>>,
        room: &BatchRoom,
    ) -> Option<Bytes> {
        if let Err(exceeded) = self.counted {
            return Some(self.error_line(&RpcError::from_rate(exceeded)));
        }
        if let Err(full) = room.check() {
            return Some(self.error_line(&full.into()));
        }
        let line = self.respond(gateway, connected, sink, started?).await?;
        match room.add(line.len()) {
            Ok(()) => Some(line),
            Err(full) => Some(self.error_line(&full.into())),
        }
    }
}

/// The requests of one POST.
enum Requests {
    Single(Request),
    Batch(Vec<Request>),
}

impl Requests {
    fn all(&self) -> &[Request] {
        match self {
            Self::Single(request) => std::slice::from_ref(request),
            Self::Batch(requests) => requests,
        }
    }

    /// Returns whether a request changes what the next replica needs of the session.
    fn changes_session(&self) -> bool {
        self.all().iter().any(|request| {
            [method::LOGGING_SET_LEVEL, method::RESOURCES_SUBSCRIBE, method::RESOURCES_UNSUBSCRIBE]
                .contains(&&*request.method)
        })
    }

    /// Handles the requests, those of a batch at most [`MAX_CONCURRENT_OF_BATCH`] at the same time.
    /// Returns the message with the responses; `None` if the client cancelled all requests.
    async fn respond(
        &self,
        gateway: &Arc<GatewayInner>,
        connected: &incoming::Connected,
        sink: &MessageSink,
        room: ResponseRoom,
    ) -> Option<Bytes> {
        match self {
            Self::Single(request) => {
                let started = connected.client.start_request(&request.id);
                let line = request.respond(gateway, connected, sink, started).await?;
                Some(room.hold(line, |error| request.error_line(error)))
            }
            Self::Batch(requests) => {
                let room = BatchRoom::new(room);
                // The client can cancel a request that waits.
                let start = |request: &Request| {
                    let is_permitted = request.counted.is_ok();
                    is_permitted.then(|| connected.client.start_request(&request.id))
                };
                let started: Vec<_> = requests.iter().map(start).collect();
                let mut waiting = requests.iter().zip(started);
                let (mut running, mut message) = (FuturesOrdered::new(), Vec::new());
                loop {
                    let free = MAX_CONCURRENT_OF_BATCH - running.len();
                    for (request, started) in waiting.by_ref().take(free) {
                        running.push_back(
                            request.respond_in_batch(gateway, connected, sink, started, &room),
                        );
                    }
                    match running.next().await {
                        None => break,
                        Some(None) => {}
                        Some(Some(line)) => add_to_batch(&mut message, &line),
                    }
                }
                drop(running);
                if message.is_empty() {
                    return None;
                }
                message.extend_from_slice(b"]\n");
                Some(room.hold(message))
            }
        }
    }
}

/// Responds with JSON, or with an event stream if a message precedes the response. Requests on an
/// event stream continue without the connection of their client.
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
    let room = match transport.gateway.responses.reserve(&from.principal, &request_ids) {
        Ok(room) => room,
        Err(full) => return full.rejection().into_response(),
    };
    let activity = session.activity();
    let stream = session.new_stream();
    let sink = match accepts.events {
        true => MessageSink::Stream(stream.clone())
            .counted(&transport.gateway.responses, &from.principal),
        false => MessageSink::None,
    };
    let calls = from.owned_calls(session.ownership.clone(), Some((&session.id, stream.number)));
    let changes_session = requests.changes_session();
    let remember = || {
        session.remember(&stream, &request_ids.iter().map(request_json).collect::<Vec<_>>());
    };
    // Another replica owns the session, and the messages of the stream are gone.
    let lost = || outcomes(from, &request_ids, |_| true).unwrap_or_else(accepted);
    let gateway = transport.gateway.clone();
    let connected = connected(from, session, calls.clone());
    let (stored_by, stored) = (transport.clone(), session.clone());
    let responding = async move {
        let _reservation = reservation;
        let line = requests.respond(&gateway, &connected, &sink, room).await;
        if changes_session {
            Box::pin(store_session(&stored_by, &stored)).await;
        }
        line
    };
    let mut responding = Box::pin(responding);
    let is_primed = tokio::select! {
        biased;
        line = &mut responding => {
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
            if session.ownership.is_some() {
                let events = stored_events(transport, &stream, calls);
                return events.unwrap_or_else(lost);
            }
            let response = all_events(&stream);
            transport.finished_streams.add(&session.client.principal, &stream);
            return response;
        }
        () = stream.wait_first(), if accepts.events => false,
        () = sleep(PRIME_DELAY), if accepts.events && is_resumable_elsewhere(session) => true,
    };
    remember();
    let (finished, finished_streams) = (stream.clone(), transport.finished_streams.clone());
    transport.gateway.tasks.spawn(async move {
        finish(&finished, responding.await);
        finished_streams.add(activity.principal(), &finished);
        end_calls(&finished, calls).await;
        drop(activity);
    });
    let metrics = &transport.gateway.metrics;
    let reader = stream.read_after(0);
    reader.map_or_else(lost, |reader| logged_events(reader, is_primed, metrics))
}

/// Returns the events of a finished stream when they are stored; `None` if they are gone.
fn stored_events(
    transport: &HttpTransport,
    stream: &Arc<EventStream>,
    calls: Option<Arc<OwnedCalls>>,
) -> Option<Response<Body>> {
    let finished = stream.clone();
    transport.gateway.tasks.spawn(async move { end_calls(&finished, calls).await });
    let metrics = &transport.gateway.metrics;
    stream.read_after(0).map(|reader| logged_events(reader, false, metrics))
}

/// Removes the records of calls when their responses are stored: the next owner must find the record
/// or the response.
async fn end_calls(stream: &EventStream, calls: Option<Arc<OwnedCalls>>) {
    if !stream.wait_stored().await
        && let Some(calls) = &calls
    {
        calls.keep_records();
    }
}

/// Returns whether the client understands an event without data, and another replica could continue.
fn is_resumable_elsewhere(session: &Session) -> bool {
    let revision = session.client.identity().map(|identity| identity.revision);
    session.ownership.is_some() && revision >= Some(Revision::V2025_11_25)
}

/// Adds the responses to a stream and ends it.
fn finish(stream: &EventStream, line: Option<Bytes>) {
    if let Some(line) = line {
        stream.push(line);
    }
    stream.close();
}

pub(super) fn batch_line(lines: &[Bytes]) -> Bytes {
    let mut all = Vec::new();
    for line in lines {
        add_to_batch(&mut all, line);
    }
    all.extend_from_slice(b"]\n");
    all.into()
}

/// Adds a response to the start of a message with all responses.
pub(crate) fn add_to_batch(message: &mut Vec<u8>, line: &[u8]) {
    message.push(if message.is_empty() { b'[' } else { b',' });
    message.extend_from_slice(line.trim_ascii_end());
}

/// Opens the stream for messages that belong to no request, or resumes a stream.
pub(super) async fn get(from: &HttpRequest<'_>) -> Response<Body> {
    if !Accepted::from_headers(from.headers).events {
        return rejected(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `text/event-stream`",
        );
    }
    if header_text(from.headers, SESSION_ID).is_none() {
        return super::method_not_allowed();
    }
    let place = match find_place(from, &[]).await {
        Ok(place) => place,
        Err(response) => return *response,
    };
    let position = match header_text(from.headers, LAST_EVENT_ID) {
        None => None,
        Some(id) => {
            let position = id.split_once('-').and_then(|(stream, position)| {
                Some((stream.parse::<u64>().ok()?, position.parse::<u64>().ok()?))
            });
            let Some(position) = position else { return events_gone() };
            Some(position)
        }
    };
    let replication = from.transport.gateway.replication.as_ref();
    let reader = match (&place, position, replication) {
        (Place::Here(session), None, _) => Some(session.general.read_latest()),
        (Place::Here(session), Some((stream, position)), _) if session.is_own_stream(stream) => {
            session.stream(stream).and_then(|stream| stream.read_after(position))
        }
        (place, Some((stream, position)), Some(replication)) => {
            let (id, ownership) = match place {
                Place::Here(session) => (&session.id, session.ownership.as_ref()),
                Place::Ended { id, ownership } => (id, Some(ownership)),
            };
            let Some(ownership) = ownership else { return events_gone() };
            match Box::pin(resume(replication, ownership, id, (stream, position))).await {
                Ok(stream) => stream.read_after(position),
                Err(response) => return *response,
            }
        }
        (Place::Ended { .. }, None, _) => return no_session(),
        (_, Some(_), None) => None,
    };
    let Some(reader) = reader else { return events_gone() };
    let metrics = &from.transport.gateway.metrics;
    match place {
        Place::Here(session) => {
            logged_events(reader.with_activity(session.activity()), false, metrics)
        }
        Place::Ended { .. } => logged_events(reader, false, metrics),
    }
}

fn events_gone() -> Response<Body> {
    rejected(StatusCode::NOT_FOUND, "the events after `Last-Event-ID` are no longer available")
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
