//! Streamable HTTP of the 2026-07-28 revision: no session, headers that repeat the message.

use std::sync::Arc;

use serde_json::Value;

use super::body::{self, Reply};
use super::bridge::Manner;
use super::headers;
use super::routes::Out;
use super::serve::{Ask, Served};
use super::streamable;

/// Code of the error for headers that disagree with the message.
const HEADER_MISMATCH: i64 = -32020;

/// Answers what was posted: all clients talk to one fixture server.
pub(super) async fn post(served: &Arc<Served>, ask: Ask) -> Reply {
    // The handshake of the other era has none of the headers; the fixture server refuses it.
    if ask.rpc_method() != Some("initialize")
        && let Some(problem) = headers::disagreement(&ask.head.headers, &ask.message)
    {
        return body::error(400, &ask.message["id"], HEADER_MISMATCH, &problem);
    }
    let Some(bridge) = served.shared() else { return body::empty(503) };
    if !ask.is_request() {
        bridge.send(ask.text).await;
        return body::empty(202);
    }
    let json = served.plan().json && ask.rpc_method() != Some("subscriptions/listen");
    let manner = Manner { single: json, act: ask.act.clone(), cancels: true };
    let mut open = bridge.open(&ask.message, &manner);
    bridge.send(ask.text.clone()).await;
    // The status depends on the first message; one that never comes keeps the head back.
    let Some(first) = open.lines.recv().await else { return ask.hang_up().await };
    let status = refusal(&ask.message, &first);
    if json || status.is_some() {
        let mut reply = streamable::one_message(served, &ask, open, Some(first)).await;
        if let Some(status) = status.and_then(|status| status.try_into().ok()) {
            *reply.status_mut() = status;
        }
        return reply;
    }
    streamable::stream(served, &ask, open, Some(first), None)
}

/// The status of an answer that refuses its request as such.
fn refusal(request: &Value, first: &Out) -> Option<u16> {
    let answer: Value = serde_json::from_slice(&first.text).ok()?;
    match answer.get("error")?.get("code")?.as_i64()? {
        -32601 => Some(404),
        -32022..=-32020 => Some(400),
        -32602 if headers::revision(request).is_none() => Some(400),
        _ => None,
    }
}
