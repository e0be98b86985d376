//! HTTP: one URL for requests of both eras, event streams and sessions; and the streams of HTTP+SSE.

mod batch;
mod body;
mod finished_streams;
#[cfg(any(test, fuzzing))]
mod fuzz;
mod http_sse;
mod legacy;
mod modern;
mod posted_requests;
mod replication;
mod response;
mod running_requests;
mod session;
mod session_end;
pub(crate) mod upkeep;

use std::sync::Arc;

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use innkeeper_protocol::http::{PROTOCOL_VERSION, SESSION_ID};
use innkeeper_protocol::{Era, Incoming, Message, Revision, envelope};

use uuid::Uuid;

use super::incoming;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::rejection::Rejection;
use crate::state::GatewayState;
pub(crate) use batch::add_to_batch;
use body::BodyReader;
pub(crate) use body::discard;
use finished_streams::FinishedStreams;
#[cfg(any(test, fuzzing))]
pub use fuzz::gateway_request as fuzz_gateway_request;
use http_sse::SseSessions;
pub(crate) use http_sse::{MESSAGES_PATH, open_stream, receive_message};
use replication::Replication;
pub(crate) use replication::forwarding::{ForwardedHead, REPLICA_PATH, place_rest_request};
use replication::take_over::TakeOverLocks;
pub(crate) use response::{KEEP_ALIVE, SILENCE, event_response, keep_alive, slow_json};
use response::{rejected, rpc_error_response};
use session::Sessions;

#[derive(Debug)]
pub(crate) struct HttpTransport {
    pub(crate) gateway: Arc<GatewayState>,
    /// `None` for the only replica.
    replication: Option<Replication>,
    pub(crate) sessions: Sessions,
    pub(crate) finished_streams: Arc<FinishedStreams>,
    sse_sessions: SseSessions,
    pub(crate) bodies: BodyReader,
    taking_over: TakeOverLocks,
    /// Held while sessions are handed over.
    handing_over: tokio::sync::Mutex<()>,
}

/// A request of a client for an endpoint.
struct HttpRequest<'a> {
    transport: &'a Arc<HttpTransport>,
    endpoint: usize,
    principal: Principal,
    parts: &'a Parts,
    /// Where another replica takes the request.
    target: ReplicaTarget<'a>,
    body: Bytes,
    /// The id of the request for all replicas; empty without replicas.
    id: String,
    /// Whether another replica passed the request on.
    is_forwarded: bool,
}

/// What a request is for, at another replica.
#[derive(Clone, Copy, Debug)]
enum ReplicaTarget<'a> {
    /// MCP at the endpoint.
    Mcp,
    /// A stream of HTTP+SSE, with the query of the request.
    Messages(&'a str),
    /// Plain HTTP at the endpoint, with the path and the query after that of the endpoint.
    Rest(&'a str),
}

/// Who sends a request: a client, or another replica for its client.
#[derive(Debug)]
pub(crate) struct Origin {
    pub(crate) endpoint: usize,
    pub(crate) principal: Principal,
    /// The id of the request that another replica passes on.
    pub(crate) forwarded_id: Option<String>,
}

impl Origin {
    /// Returns the origin of a request of a client.
    pub(crate) fn client(endpoint: usize, principal: Principal) -> Self {
        Self { endpoint, principal, forwarded_id: None }
    }

    fn request<'a>(
        self,
        transport: &'a Arc<HttpTransport>,
        parts: &'a Parts,
        body: Bytes,
    ) -> HttpRequest<'a> {
        let Self { endpoint, principal, forwarded_id } = self;
        let is_forwarded = forwarded_id.is_some();
        let id = forwarded_id.unwrap_or_else(|| match transport.replication {
            Some(_) => Uuid::new_v4().simple().to_string(),
            None => String::new(),
        });
        HttpRequest {
            transport,
            endpoint,
            principal,
            parts,
            target: ReplicaTarget::Mcp,
            body,
            id,
            is_forwarded,
        }
    }
}

impl HttpTransport {
    pub(crate) fn new(gateway: Arc<GatewayState>) -> Self {
        let sessions = Sessions::new(gateway.options.limits.max_sessions);
        let bodies = BodyReader::new(&gateway.options);
        let replication = gateway.services.replicas.clone().map(|replicas| {
            Replication::new(replicas, &gateway.tasks, gateway.options.limits.request_time)
        });
        Self {
            gateway,
            replication,
            sessions,
            finished_streams: FinishedStreams::new(),
            sse_sessions: SseSessions::default(),
            bodies,
            taking_over: TakeOverLocks::default(),
            handing_over: tokio::sync::Mutex::default(),
        }
    }
}

/// The kinds of bodies that a client accepts (RFC 9110, 12.5.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accepted {
    json: bool,
    events: bool,
}

impl Accepted {
    /// Reads the header of a POST. Without one, the client gets JSON.
    fn from_headers(headers: &HeaderMap) -> Self {
        Self::stated(headers).unwrap_or(Self { json: true, events: false })
    }

    /// Returns whether the client of a GET accepts an event stream, which the absence of the header
    /// permits.
    fn permits_events(headers: &HeaderMap) -> bool {
        Self::stated(headers).is_none_or(|accepted| accepted.events)
    }

    fn stated(headers: &HeaderMap) -> Option<Self> {
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut ranges = values.flat_map(|value| value.split(',')).peekable();
        ranges.peek()?;
        let mut json = MediaMatch::default();
        let mut events = MediaMatch::default();
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default();
            let is_excluded = parts.filter_map(|part| part.split_once('=')).any(|(name, value)| {
                name.trim().eq_ignore_ascii_case("q") && value.trim().parse() == Ok(0.0_f32)
            });
            json.add(kind, ["application/json", "application/*"], !is_excluded);
            events.add(kind, ["text/event-stream", "text/*"], !is_excluded);
        }
        Some(Self { json: json.is_accepted, events: events.is_accepted })
    }
}

/// The most specific range of `Accept` for one media type.
#[derive(Clone, Copy, Debug, Default)]
struct MediaMatch {
    /// From 0 for no range to 3 for the type itself.
    precision: u8,
    is_accepted: bool,
}

impl MediaMatch {
    fn add(&mut self, range: &str, [exact, group]: [&str; 2], is_accepted: bool) {
        let precision = match range {
            _ if range.eq_ignore_ascii_case(exact) => 3,
            _ if range.eq_ignore_ascii_case(group) => 2,
            "*/*" => 1,
            _ => return,
        };
        if precision >= self.precision {
            *self = Self { precision, is_accepted };
        }
    }
}

/// Handles one HTTP request for an endpoint.
pub(crate) async fn handle(
    transport: &Arc<HttpTransport>,
    origin: Origin,
    request: http::Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => post(transport, origin, &parts, body).await,
        // In boxes: each POST would have room for the larger of these futures.
        Method::GET => {
            Box::pin(legacy::get(&origin.request(transport, &parts, Bytes::new()))).await
        }
        Method::DELETE => {
            Box::pin(legacy::delete(&origin.request(transport, &parts, Bytes::new()))).await
        }
        _ => method_not_allowed(),
    }
}

fn method_not_allowed() -> Response<Body> {
    only_methods("GET, POST, DELETE", "use POST, GET or DELETE for MCP")
}

/// A browser shows the message.
fn no_stream_without_session() -> Response<Body> {
    let message = "this is the URL of an MCP server for MCP clients, which use POST; GET opens the \
                   stream of a session and needs the header `Mcp-Session-Id`";
    only_methods("POST", message)
}

fn only_methods(methods: &'static str, message: &str) -> Response<Body> {
    let mut response = rejected(StatusCode::METHOD_NOT_ALLOWED, message);
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(methods));
    response
}

async fn post(
    transport: &Arc<HttpTransport>,
    origin: Origin,
    parts: &Parts,
    body: Body,
) -> Response<Body> {
    let headers = &parts.headers;
    if let Err(rejection) = check_content(headers) {
        discard(body).await;
        return rejection.into_response();
    }
    let accepted = Accepted::from_headers(headers);
    if !accepted.json {
        discard(body).await;
        return rejected(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `application/json` and `text/event-stream`",
        );
    }
    let (body, reservation) = match transport.bodies.read(&origin.principal, body).await {
        Ok(read) => read,
        Err(rejection) => return rejection.into_response(),
    };
    let from = origin.request(transport, parts, body.clone());
    let message = match parse(&body) {
        Ok(message) => message,
        Err(response) => return *response,
    };
    let header_version = header_text(headers, PROTOCOL_VERSION);
    let header_revision = header_version.and_then(|version| version.parse::<Revision>().ok());
    let modern_header = header_revision.is_some_and(|revision| revision.era() == Era::Modern);
    let without_session = header_text(headers, SESSION_ID).is_none();
    match message {
        Message::Single(message) if is_modern(&message) || (modern_header && without_session) => {
            modern::post(from, reservation, accepted, message).await
        }
        Message::Batch(_) if modern_header && without_session => {
            let error = unexpected_message("batch: send one message in each request");
            rpc_error_response(StatusCode::BAD_REQUEST, None, &error)
        }
        message => {
            if let (Some(version), None) = (header_version, header_revision) {
                let era = if without_session { Era::Modern } else { Era::Legacy };
                let error = incoming::unsupported_version(version, era);
                return rpc_error_response(StatusCode::BAD_REQUEST, None, &error);
            }
            legacy::post(&from, accepted, message, reservation).await
        }
    }
}

fn parse(body: &[u8]) -> Result<Message<'_>, Box<Response<Body>>> {
    envelope::parse(body).map_err(|malformed| {
        let error = incoming::malformed_error(&malformed);
        let id = malformed.id.as_ref();
        Box::new(rpc_error_response(StatusCode::BAD_REQUEST, id, &error))
    })
}

fn is_modern(message: &Incoming<'_>) -> bool {
    match message {
        Incoming::Request { params, .. } | Incoming::Notification { params, .. } => {
            incoming::modern_version(*params).is_some()
        }
        Incoming::Response { .. } => false,
    }
}

/// Checks that a body is JSON without a compression.
pub(crate) fn check_content(headers: &HeaderMap) -> Result<(), Rejection> {
    let value = header_text(headers, header::CONTENT_TYPE.as_str()).unwrap_or_default();
    let kind = value.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(unsupported("the `Content-Type` must be `application/json`"));
    }
    let mut codings = headers.get_all(header::CONTENT_ENCODING).iter();
    if !codings.all(|coding| coding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Err(unsupported("send the body without `Content-Encoding`")
            .with_header(header::ACCEPT_ENCODING, HeaderValue::from_static("identity")));
    }
    Ok(())
}

fn unsupported(message: &str) -> Rejection {
    Rejection::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message)
}

/// Returns a header that occurs once and is text.
fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the error for a message that the gateway does not accept from a client of this era.
fn unexpected_message(what: &str) -> RpcError {
    RpcError::new(envelope::code::INVALID_REQUEST, format!("unexpected {what}"))
}
