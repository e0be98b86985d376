//! Streamable HTTP of protocol version 2026-07-28, without sessions.

use std::sync::Arc;

use serde_json::Value;

use super::body::{self, HttpResponse};
use super::bridge::ReplyMode;
use super::headers;
use super::routes::OutboundMessage;
use super::server::{IncomingRequest, ServerState};
use super::streamable;

/// The error code for headers that differ from the message.
const HEADER_MISMATCH: i64 = -32020;

/// Handles a POST; all clients share one fixture server.
pub(super) async fn handle_post(
    served: &Arc<ServerState>,
    request: IncomingRequest,
) -> HttpResponse {
    // The legacy handshake has none of the headers; the fixture server rejects it.
    if request.rpc_method() != Some("initialize")
        && let Some(problem) =
            headers::find_header_mismatch(&request.head.headers, &request.message)
    {
        return body::json_rpc_error(400, &request.message["id"], HEADER_MISMATCH, &problem);
    }
    let Some(bridge) = served.shared_bridge() else { return body::empty_response(503) };
    if !request.is_request() {
        bridge.send(request.body).await;
        return body::empty_response(202);
    }
    let json = served.config().streamable.json_responses
        && request.rpc_method() != Some("subscriptions/listen");
    let manner =
        ReplyMode { single_message: json, fault: request.fault.clone(), cancel_on_close: true };
    let mut open = bridge.open_request(&request.message, &manner);
    bridge.send(request.body.clone()).await;
    // The status depends on the first message; without a message there is no response head.
    let Some(first) = open.lines.recv().await else { return request.reset_connection().await };
    let status = error_status(&request.message, &first);
    if json || status.is_some() {
        let mut reply = streamable::json_response(served, &request, open, Some(first)).await;
        if let Some(status) = status.and_then(|status| status.try_into().ok()) {
            *reply.status_mut() = status;
        }
        return reply;
    }
    streamable::stream_response(served, &request, open, Some(first), None)
}

/// The status of a response that rejects the request as invalid.
fn error_status(request: &Value, first: &OutboundMessage) -> Option<u16> {
    let first_message: Value = serde_json::from_slice(&first.text).ok()?;
    match first_message.get("error")?.get("code")?.as_i64()? {
        -32601 => Some(404),
        -32022..=-32020 => Some(400),
        -32602 if headers::revision(request).is_none() => Some(400),
        _ => None,
    }
}
