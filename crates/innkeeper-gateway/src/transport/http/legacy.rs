//! Requests of the legacy era: sessions, event streams and resumption.

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use innkeeper_host::TraceContext;
use innkeeper_protocol::http::{LAST_EVENT_ID, SESSION_ID};
use innkeeper_protocol::{Incoming, MalformedMessage, Message, RequestId, Revision, method};
use serde_json::value::RawValue;

use super::response::{
    accepted, all_events, json_response, logged_events, rejected, rpc_error_response,
};
use super::session::Session;
use super::{Accepted, HttpTransport, header_text, incoming, unexpected_message};
use crate::event_stream::EventStream;
use crate::gateway::GatewayInner;
use crate::metrics::{ClientTransport, RejectionReason};
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::sink::MessageSink;

/// Who sends a request.
pub(super) struct Sender<'a> {
    pub(super) transport: &'a Arc<HttpTransport>,
    pub(super) endpoint: usize,
    pub(super) principal: Principal,
    pub(super) headers: &'a HeaderMap,
}

/// Handles a POST. The reservation is the memory of its body.
pub(super) async fn post(
    from: Sender<'_>,
    accepts: Accepted,
    message: Message<'_>,
    reservation: Reservation,
) -> Response<Body> {
    let Sender { transport, endpoint, principal, headers } = from;
    let header_trace = transport.gateway.header_trace(headers);
    if let Message::Single(Incoming::Request { id, method, params }) = &message
        && method == method::INITIALIZE
    {
        return initialize(transport, endpoint, principal, header_trace, (id, *params)).await;
    }
    let session = match find_session(transport, endpoint, &principal, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    match message {
        Message::Single(Incoming::Request { id, method, params }) => {
            let request = Request::new(id, &method, params);
            let requests = Requests::Single(request);
            respond(transport, &session, accepts, requests, header_trace, reservation).await
        }
        Message::Single(message) => {
            incoming::accept(&transport.gateway, &session.client, message);
            accepted()
        }
        Message::Batch(messages) => {
            batch(transport, &session, accepts, messages, header_trace, reservation).await
        }
    }
}

async fn batch(
    transport: &Arc<HttpTransport>,
    session: &Arc<Session>,
    accepts: Accepted,
    messages: Vec<Result<Incoming<'_>, MalformedMessage>>,
    header_trace: Option<TraceContext>,
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
    for message in messages.into_iter().flatten() {
        match message {
            Incoming::Request { id, method, params } => {
                requests.push(Request::new(id, &method, params));
            }
            other => incoming::accept(&transport.gateway, &session.client, other),
        }
    }
    if requests.is_empty() {
        return accepted();
    }
    let requests = Requests::Batch(requests);
    respond(transport, session, accepts, requests, header_trace, reservation).await
}

/// Creates a session and returns the result of `initialize` with its id.
async fn initialize(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: Principal,
    header_trace: Option<TraceContext>,
    (id, params): (&RequestId, Option<&RawValue>),
) -> Response<Body> {
    let session = match transport.sessions.create(principal, endpoint) {
        Ok(session) => session,
        Err(rejection) => {
            transport.gateway.metrics.count_rejection(RejectionReason::Sessions);
            return rejection.into_response();
        }
    };
    let mut opening = OpeningSession { transport, session: &session, is_open: false };
    match transport.gateway.add_legacy_subscriber(&session.client).await {
        Ok(subscription) => {
            let subscription = Arc::new(subscription);
            session.subscription.get_or_init(|| subscription);
        }
        Err(error) => {
            return rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, Some(id), &error);
        }
    }
    let connected = connected(&session, header_trace);
    let request = (id, method::INITIALIZE, params);
    let line =
        incoming::respond_connected(&transport.gateway, &connected, &MessageSink::None, request)
            .await;
    let line = line.unwrap_or_default();
    if session.client.identity().is_none() {
        return json_response(StatusCode::BAD_REQUEST, line);
    }
    opening.is_open = true;
    let mut response = json_response(StatusCode::OK, line);
    // The id consists of ASCII characters.
    if let Ok(id) = HeaderValue::from_str(&session.id) {
        response.headers_mut().insert(SESSION_ID, id);
    }
    response
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

fn connected(session: &Session, header_trace: Option<TraceContext>) -> incoming::Connected {
    incoming::Connected {
        transport: ClientTransport::Http,
        client: session.client.clone(),
        subscription: session.subscription.get().cloned(),
        header_trace,
    }
}

fn find_session(
    transport: &HttpTransport,
    endpoint: usize,
    principal: &Principal,
    headers: &HeaderMap,
) -> Result<Arc<Session>, Box<Response<Body>>> {
    let Some(id) = header_text(headers, SESSION_ID) else {
        let error = unexpected_message(
            "request without a session: send `initialize` first, then its `Mcp-Session-Id` header",
        );
        return Err(Box::new(rpc_error_response(StatusCode::BAD_REQUEST, None, &error)));
    };
    transport.sessions.find(id, principal, endpoint).ok_or_else(|| {
        let error =
            unexpected_message("session: it does not exist or has expired; send `initialize`");
        Box::new(rpc_error_response(StatusCode::NOT_FOUND, None, &error))
    })
}

/// A request of a session.
struct Request {
    id: RequestId,
    method: String,
    params: Option<Box<RawValue>>,
}

impl Request {
    fn new(id: RequestId, method: &str, params: Option<&RawValue>) -> Self {
        Self { id, method: method.to_owned(), params: params.map(ToOwned::to_owned) }
    }

    async fn respond(
        &self,
        gateway: &Arc<GatewayInner>,
        connected: &incoming::Connected,
        sink: &MessageSink,
    ) -> Option<Bytes> {
        let request = (&self.id, &*self.method, self.params.as_deref());
        incoming::respond_connected(gateway, connected, sink, request).await
    }
}

/// The requests of one POST.
enum Requests {
    Single(Request),
    Batch(Vec<Request>),
}

impl Requests {
    /// Handles the requests at the same time, and returns the message with the responses; `None` if
    /// the client cancelled all requests.
    async fn respond(
        &self,
        gateway: &Arc<GatewayInner>,
        connected: &incoming::Connected,
        sink: &MessageSink,
    ) -> Option<Bytes> {
        match self {
            Self::Single(request) => request.respond(gateway, connected, sink).await,
            Self::Batch(requests) => {
                let responses =
                    requests.iter().map(|request| request.respond(gateway, connected, sink));
                let lines = join_all(responses).await;
                let lines: Vec<Bytes> = lines.into_iter().flatten().collect();
                (!lines.is_empty()).then(|| batch_line(&lines))
            }
        }
    }
}

/// Responds with JSON, or with an event stream if a message precedes the response. Requests on an
/// event stream continue without the connection of their client.
async fn respond(
    transport: &Arc<HttpTransport>,
    session: &Arc<Session>,
    accepts: Accepted,
    requests: Requests,
    header_trace: Option<TraceContext>,
    reservation: Reservation,
) -> Response<Body> {
    let activity = session.activity();
    let stream = session.new_stream();
    let sink = if accepts.events { MessageSink::Stream(stream.clone()) } else { MessageSink::None };
    let (gateway, connected) = (transport.gateway.clone(), connected(session, header_trace));
    let responding = async move {
        let _reservation = reservation;
        requests.respond(&gateway, &connected, &sink).await
    };
    let mut responding = Box::pin(responding);
    tokio::select! {
        biased;
        line = &mut responding => {
            if !stream.has_messages() {
                return line.map_or_else(accepted, |line| json_response(StatusCode::OK, line));
            }
            // The messages and the response arrived together.
            finish(&stream, line);
            session.remember(&stream);
            let response = all_events(&stream);
            transport.finished_streams.add(&session.client.principal, &stream);
            return response;
        }
        () = stream.wait_first(), if accepts.events => {}
    }
    session.remember(&stream);
    let (finished, finished_streams) = (stream.clone(), transport.finished_streams.clone());
    transport.gateway.tasks.spawn(async move {
        finish(&finished, responding.await);
        finished_streams.add(activity.principal(), &finished);
        drop(activity);
    });
    let metrics = &transport.gateway.metrics;
    stream.read_after(0).map_or_else(accepted, |reader| logged_events(reader, metrics))
}

/// Adds the responses to a stream and ends it.
fn finish(stream: &EventStream, line: Option<Bytes>) {
    if let Some(line) = line {
        stream.push(line);
    }
    stream.close();
}

fn batch_line(lines: &[Bytes]) -> Bytes {
    let mut all = vec![b'['];
    for (index, line) in lines.iter().enumerate() {
        if index > 0 {
            all.push(b',');
        }
        all.extend_from_slice(line.trim_ascii_end());
    }
    all.extend_from_slice(b"]\n");
    all.into()
}

/// Opens the stream for messages that belong to no request, or resumes a stream.
pub(super) fn get(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: &Principal,
    headers: &HeaderMap,
) -> Response<Body> {
    if !Accepted::from_headers(headers).events {
        return rejected(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `text/event-stream`",
        );
    }
    if header_text(headers, SESSION_ID).is_none() {
        return super::method_not_allowed();
    }
    let session = match find_session(transport, endpoint, principal, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    let reader = match header_text(headers, LAST_EVENT_ID) {
        None => session.general.read_latest(),
        Some(id) => {
            let position = id.split_once('-').and_then(|(stream, position)| {
                Some((stream.parse::<u64>().ok()?, position.parse::<u64>().ok()?))
            });
            let reader = position
                .and_then(|(stream, position)| session.stream(stream)?.read_after(position));
            let Some(reader) = reader else {
                return rejected(
                    StatusCode::NOT_FOUND,
                    "the events after `Last-Event-ID` are no longer available",
                );
            };
            reader
        }
    };
    logged_events(reader.with_activity(session.activity()), &transport.gateway.metrics)
}

/// Ends a session.
pub(super) fn delete(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: &Principal,
    headers: &HeaderMap,
) -> Response<Body> {
    let session = match find_session(transport, endpoint, principal, headers) {
        Ok(session) => session,
        Err(response) => return *response,
    };
    transport.end_session(&session.id);
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    response
}

impl HttpTransport {
    /// Ends a session: its requests, its streams and its subscriptions.
    pub(crate) fn end_session(&self, id: &str) {
        if let Some(session) = self.sessions.remove(id) {
            self.close_session(&session);
        }
    }

    /// Ends the sessions without activity.
    pub(crate) fn end_idle_sessions(&self) {
        for session in self.sessions.remove_idle(self.gateway.options.idle_session) {
            self.close_session(&session);
        }
        self.finished_streams.remove_ended();
    }

    fn close_session(&self, session: &Session) {
        session.client.disconnect();
        session.general.close();
        if let Some(subscription) = session.subscription.get() {
            self.gateway.end_subscriptions(subscription);
        }
        self.gateway.end_client(&session.client);
    }
}
