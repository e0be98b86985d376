//! Requests of the modern era: stateless, one POST for each.

use axum::body::Body;
use axum::response::IntoResponse;
use bytes::Bytes;
use http::{HeaderMap, Response, StatusCode};
use innkeeper_protocol::http::{PARAM_PREFIX, check_request_headers};
use innkeeper_protocol::request_meta::IncomingMeta;
use innkeeper_protocol::{Incoming, RequestId, RequestParams, envelope};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::replication::placement::place_stateless;
use super::response::{
    SILENCE, accepted, json_response, rpc_error_response, running_events, slow_json,
};
use super::{Accepted, HttpRequest, incoming, unexpected_message};
use crate::caller::Caller;
use crate::client::ClientIdentity;
use crate::error::RpcError;
use crate::metrics::ClientTransport;
use crate::quota::Reservation;
use crate::request::Reply;
use crate::response_memory::ResponseRoom;
use crate::sink::MessageSink;
use crate::transport::incoming::JsonRpcRequest;

/// Number of messages of one request that wait until the client reads them.
const MAX_QUEUED_MESSAGES: usize = 64;

/// Handles one message.
pub(super) async fn post(
    from: HttpRequest<'_>,
    reservation: Reservation,
    accepts: Accepted,
    message: Incoming<'_>,
) -> Response<Body> {
    match message {
        Incoming::Request { id, method, params } => {
            request(from, reservation, accepts, id, &method, params).await
        }
        Incoming::Notification { .. } => accepted(),
        Incoming::Response { id, .. } => {
            let error = unexpected_message("response: this protocol revision has none");
            rpc_error_response(StatusCode::BAD_REQUEST, Some(&id), &error)
        }
    }
}

async fn request(
    from: HttpRequest<'_>,
    reservation: Reservation,
    accepts: Accepted,
    id: RequestId,
    method: &str,
    params: Option<&RawValue>,
) -> Response<Body> {
    let ownership = match place_stateless(&from, &id, params).await {
        Ok(ownership) => ownership,
        Err(response) => return *response,
    };
    let calls = from.owned_calls(ownership, None);
    let identity = match check_head(&from.parts.headers, method, params) {
        Ok(identity) => identity,
        Err(error) => return rpc_error_response(StatusCode::BAD_REQUEST, Some(&id), &error),
    };
    let room = match from.transport.gateway.traffic.responses.reserve(&from.principal, [&id]) {
        Ok(room) => room,
        Err(full) => return full.rejection().into_response(),
    };
    let caller = Caller {
        principal: from.principal.clone(),
        endpoint: from.endpoint,
        client: None,
        subscription: None,
        identity,
        transport: ClientTransport::Http,
        header_trace: from.transport.gateway.methods.header_trace(&from.parts.headers),
        calls: calls.clone(),
    };
    let param_headers = param_headers(&from.parts.headers);
    let (sender, mut messages) = mpsc::channel(MAX_QUEUED_MESSAGES);
    let sink = match accepts.events {
        true => MessageSink::Queue(sender)
            .counted(&from.transport.gateway.traffic.responses, &from.principal),
        false => MessageSink::None,
    };
    let gateway = from.transport.gateway.clone();
    let metrics = &from.transport.gateway.traffic.metrics;
    let request_id = id.clone();
    let method = method.to_owned();
    let params: Option<Box<RawValue>> = params.map(ToOwned::to_owned);
    let responding = async move {
        let _reservation = reservation;
        let request =
            JsonRpcRequest { id: &request_id, method: &method, params: params.as_deref() };
        incoming::respond_stateless(&gateway, &caller, &sink, &param_headers, request).await
    };
    let mut responding = Box::pin(responding);
    let first = tokio::select! {
        biased;
        Some(first) = messages.recv(), if accepts.events => Some(first),
        reply = &mut responding => {
            let status = reply.as_ref().err().map_or(StatusCode::OK, status_of);
            // Messages that the request sent at its end.
            let line = response_line(room, &id, reply);
            let Some(first) = messages.try_recv().ok() else {
                from.keep_records(calls.as_deref());
                return json_response(status, line);
            };
            let line = Box::pin(std::future::ready(line));
            return running_events(Some(first), messages, line, metrics);
        }
        () = sleep(SILENCE) => None,
    };
    let line = async move { response_line(room, &id, responding.await) };
    if !accepts.events {
        return slow_json(Box::pin(async move { Ok(Body::from(line.await)) }));
    }
    running_events(first, messages, Box::pin(line), metrics)
}

/// Returns the response as a line that counts until it has left.
fn response_line(room: ResponseRoom, id: &RequestId, reply: Reply) -> Bytes {
    let line = incoming::response_line(id, &reply);
    drop(reply);
    room.hold(line, |error| incoming::error_line(Some(id), error))
}

/// Returns the headers that repeat arguments. They are checked when the tool is known.
fn param_headers(headers: &HeaderMap) -> HeaderMap {
    let start = PARAM_PREFIX.to_ascii_lowercase();
    let params = headers.iter().filter(|(name, _)| name.as_str().starts_with(&start));
    params.map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Checks that the headers of a request match its body. Returns what the `_meta` declares.
pub(super) fn check_head(
    headers: &HeaderMap,
    method: &str,
    params: Option<&RawValue>,
) -> Result<ClientIdentity, RpcError> {
    let meta = IncomingMeta::from_params(&RequestParams::from_raw(params)?)?;
    let version = meta.required()?.protocol_version;
    // Of a repeated header, the receivers of the request could read different values.
    let repeated = headers.keys().find(|name| {
        name.as_str().starts_with("mcp-") && headers.get_all(*name).iter().nth(1).is_some()
    });
    if let Some(name) = repeated {
        return Err(RpcError::new(
            envelope::code::HEADER_MISMATCH,
            format!("header mismatch: header `{name}` occurs several times"),
        ));
    }
    check_request_headers(method, params, version, |name| {
        headers.get(name).map(http::HeaderValue::as_bytes)
    })
    .map_err(|error| RpcError::new(error.code(), error.to_string()))?;
    incoming::modern_identity(&meta)
}

/// Returns the status of an error response (2026-07-28, Streamable HTTP).
fn status_of(error: &RpcError) -> StatusCode {
    match error.code {
        envelope::code::METHOD_NOT_FOUND => StatusCode::NOT_FOUND,
        envelope::code::HEADER_MISMATCH
        | envelope::code::MISSING_REQUIRED_CLIENT_CAPABILITY
        | envelope::code::UNSUPPORTED_PROTOCOL_VERSION => StatusCode::BAD_REQUEST,
        _ => StatusCode::OK,
    }
}
