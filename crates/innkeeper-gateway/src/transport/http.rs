//! Streamable HTTP: one URL for requests of both eras, event streams and sessions.

mod legacy;
mod modern;
mod response;
mod session;

use std::sync::Arc;

use axum::body::Body;
use http::{HeaderMap, Method, Response, StatusCode, header};
use innkeeper_protocol::http::{PROTOCOL_VERSION, SESSION_ID};
use innkeeper_protocol::{Era, Incoming, Message, Revision, envelope};

use super::incoming;
use super::request_body::{BodyError, check_is_json, read_body};
use crate::error::RpcError;
use crate::gateway::GatewayInner;
use crate::principal::Principal;
use response::{rpc_error_response, text_response};
pub(crate) use session::Sessions;

/// The state of the HTTP transport.
#[derive(Debug)]
pub(crate) struct HttpTransport {
    pub(crate) gateway: Arc<GatewayInner>,
    pub(crate) sessions: Sessions,
}

/// The kinds of bodies that a client accepts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Accepted {
    json: bool,
    events: bool,
}

impl Accepted {
    fn from_headers(headers: &HeaderMap) -> Self {
        let mut accepted = Self { json: false, events: false };
        let values = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
        let mut is_absent = true;
        for kind in values.flat_map(|value| value.split(',')) {
            is_absent = false;
            match kind.split(';').next().unwrap_or_default().trim() {
                "application/json" | "application/*" => accepted.json = true,
                "text/event-stream" | "text/*" => accepted.events = true,
                "*/*" => accepted = Self { json: true, events: true },
                _ => {}
            }
        }
        if is_absent { Self { json: true, events: false } } else { accepted }
    }
}

/// Handles one HTTP request for an endpoint.
pub(crate) async fn handle(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: Principal,
    request: http::Request<Body>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    match parts.method {
        Method::POST => post(transport, endpoint, principal, &parts.headers, body).await,
        Method::GET => legacy::get(transport, endpoint, &principal, &parts.headers),
        Method::DELETE => legacy::delete(transport, endpoint, &principal, &parts.headers),
        _ => method_not_allowed(),
    }
}

fn method_not_allowed() -> Response<Body> {
    let mut response =
        text_response(StatusCode::METHOD_NOT_ALLOWED, "use POST, GET or DELETE for MCP");
    let allowed = http::HeaderValue::from_static("GET, POST, DELETE");
    response.headers_mut().insert(header::ALLOW, allowed);
    response
}

async fn post(
    transport: &Arc<HttpTransport>,
    endpoint: usize,
    principal: Principal,
    headers: &HeaderMap,
    body: Body,
) -> Response<Body> {
    let unusable = |error: BodyError| text_response(error.status(), &error.to_string());
    if let Err(error) = check_is_json(headers) {
        return unusable(error);
    }
    let accepted = Accepted::from_headers(headers);
    if !accepted.json {
        return text_response(
            StatusCode::NOT_ACCEPTABLE,
            "the `Accept` header must contain `application/json` and `text/event-stream`",
        );
    }
    let options = &transport.gateway.options;
    let body = match read_body(options.max_body_bytes, options.request_time, body).await {
        Ok(body) => body,
        Err(error) => return unusable(error),
    };
    let message = match envelope::parse(&body) {
        Ok(message) => message,
        Err(malformed) => {
            let error = incoming::malformed_error(&malformed);
            return rpc_error_response(StatusCode::BAD_REQUEST, malformed.id.as_ref(), &error);
        }
    };
    let header_version = header_text(headers, PROTOCOL_VERSION);
    let header_revision = header_version.and_then(|version| version.parse::<Revision>().ok());
    let is_modern = |message: &Incoming<'_>| match message {
        Incoming::Request { params, .. } | Incoming::Notification { params, .. } => {
            incoming::modern_version(*params).is_some()
        }
        Incoming::Response { .. } => false,
    };
    let modern_header = header_revision.is_some_and(|revision| revision.era() == Era::Modern);
    match message {
        Message::Single(message)
            if is_modern(&message)
                || (modern_header && header_text(headers, SESSION_ID).is_none()) =>
        {
            let caller = modern::Caller { transport, endpoint, principal, headers };
            modern::post(caller, accepted, message).await
        }
        message => {
            if let (Some(version), None) = (header_version, header_revision) {
                let error = incoming::unsupported_version(version);
                return rpc_error_response(StatusCode::BAD_REQUEST, None, &error);
            }
            legacy::post(transport, endpoint, principal, headers, accepted, message).await
        }
    }
}

/// Returns a header that occurs once and is text.
fn header_text<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// Returns the error for a message that the gateway does not accept from a client of this era.
fn unexpected_message(what: &str) -> RpcError {
    RpcError::new(envelope::code::INVALID_REQUEST, format!("unexpected {what}"))
}
