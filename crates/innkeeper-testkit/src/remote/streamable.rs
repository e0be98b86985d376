//! Streamable HTTP with sessions for legacy clients; forwards modern requests.

use std::sync::Arc;

use serde_json::Value;

use super::body::{self, HttpResponse};
use super::body_writer::{BodyFormat, BodyWriter};
use super::bridge::{OpenRequest, ReplyMode};
use super::events::{self, ResumableStream, StreamCut};
use super::fault::FaultAction;
use super::headers::{
    self, LAST_EVENT_ID_HEADER, LEGACY_REVISIONS, MODERN_REVISION, PROTOCOL_VERSION_HEADER,
    SESSION_ID_HEADER,
};
use super::modern;
use super::routes::OutboundMessage;
use super::server::{IncomingRequest, McpSession, ServerState};
use crate::ProcessTag;

const TRANSPORT_ERROR: i64 = -32000;

pub(super) async fn respond(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    if request.head.uri.path() != served.config().transport.path() {
        return body::empty_response(404);
    }
    match request.head.method.as_str() {
        "POST" => handle_post(served, request).await,
        "GET" if served.config().streamable.allow_get && fixture_era(served) != "modern" => {
            handle_get(served, request).await
        }
        "DELETE" if served.config().streamable.use_sessions && fixture_era(served) != "modern" => {
            handle_delete(served, &request)
        }
        _ => body::empty_response(405),
    }
}

fn fixture_era(served: &ServerState) -> &str {
    served
        .config()
        .fixture
        .as_ref()
        .and_then(|fixture| fixture.switch_value("--era"))
        .unwrap_or("legacy")
}

async fn handle_post(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    if let Some(rejection) = reject_headers(&request) {
        return rejection;
    }
    let modern = match fixture_era(served) {
        "modern" => true,
        "dual" => is_modern(&request),
        _ => false,
    };
    if modern {
        return modern::handle_post(served, request).await;
    }
    let version = headers::header_text(&request.head.headers, PROTOCOL_VERSION_HEADER);
    let revision =
        served.config().fixture.as_ref().and_then(|fixture| fixture.switch_value("--revision"));
    let first = request.rpc_method() == Some("initialize");
    if let Some(version) = version
        && !(first || LEGACY_REVISIONS.contains(&version) || revision == Some(version))
    {
        let text = format!("unsupported protocol version `{version}`");
        return body::json_rpc_error(400, &Value::Null, TRANSPORT_ERROR, &text);
    }
    let session = match first {
        true => start_session(served),
        false => find_session(served, &request),
    };
    match session {
        Ok(session) => forward(served, request, &session, first).await,
        Err(rejection) => *rejection,
    }
}

/// Returns the rejection of a request with invalid headers.
fn reject_headers(request: &IncomingRequest) -> Option<HttpResponse> {
    let headers = &request.head.headers;
    let refuse = |status, code, text| Some(body::json_rpc_error(status, &Value::Null, code, text));
    let form = headers::header_text(headers, "content-type").unwrap_or_default();
    if !form.starts_with("application/json") {
        return refuse(415, TRANSPORT_ERROR, "the content type is not application/json");
    }
    let accepted = ["application/json", "text/event-stream"];
    if !accepted.into_iter().all(|content_type| headers::accepts(headers, content_type)) {
        return refuse(406, TRANSPORT_ERROR, "the client does not accept both forms of answers");
    }
    match request.message {
        Value::Object(_) => None,
        Value::Array(_) => refuse(400, -32600, "batches are not taken"),
        _ => refuse(400, -32700, "the body is not JSON"),
    }
}

fn is_modern(request: &IncomingRequest) -> bool {
    headers::header_text(&request.head.headers, PROTOCOL_VERSION_HEADER) == Some(MODERN_REVISION)
        || headers::revision(&request.message).is_some()
        || request.rpc_method() == Some("server/discover")
}

fn start_session(served: &Arc<ServerState>) -> Result<Arc<McpSession>, Box<HttpResponse>> {
    let id = match served.config().streamable.use_sessions {
        true => ProcessTag::new().as_str().to_owned(),
        false => String::new(),
    };
    served.start_session(id).ok_or_else(|| Box::new(body::empty_response(503)))
}

/// Returns the session of a request, or the error response.
fn find_session(
    served: &Arc<ServerState>,
    request: &IncomingRequest,
) -> Result<Arc<McpSession>, Box<HttpResponse>> {
    let id = match served.config().streamable.use_sessions {
        true => headers::header_text(&request.head.headers, SESSION_ID_HEADER),
        false => Some(""),
    };
    let refuse = |status, text| {
        Err(Box::new(body::json_rpc_error(status, &Value::Null, TRANSPORT_ERROR, text)))
    };
    match id {
        None => refuse(400, "the server is not initialized: no session id"),
        Some(id) => match served.session(id) {
            Some(session) => Ok(session),
            None if id.is_empty() => refuse(400, "the server is not initialized"),
            None => refuse(404, "the session is unknown"),
        },
    }
}

async fn forward(
    served: &Arc<ServerState>,
    request: IncomingRequest,
    session: &Arc<McpSession>,
    first: bool,
) -> HttpResponse {
    if !request.is_request() {
        session.bridge.send(request.body).await;
        return body::empty_response(202);
    }
    let is_cut = matches!(request.fault, Some(FaultAction::CutStream { .. }));
    let json = served.config().streamable.json_responses && !is_cut;
    let manner =
        ReplyMode { single_message: json, fault: request.fault.clone(), cancel_on_close: false };
    let open = session.bridge.open_request(&request.message, &manner);
    session.bridge.send(request.body.clone()).await;
    let trace = (is_cut || served.config().streamable.event_ids).then(|| ResumableStream {
        log: Arc::clone(&session.events),
        stream: served.next_stream(),
        replay_twice: matches!(
            request.fault,
            Some(FaultAction::CutStream { replay_twice: true, .. })
        ),
    });
    let mut reply = match json {
        true => json_response(served, &request, open, None).await,
        false => stream_response(served, &request, open, None, trace),
    };
    if first && served.config().streamable.use_sessions {
        body::set_header(&mut reply, SESSION_ID_HEADER, &session.id);
    }
    reply
}

/// Responds with an SSE stream that starts with the first message.
pub(super) fn stream_response(
    served: &Arc<ServerState>,
    request: &IncomingRequest,
    open: OpenRequest,
    first: Option<OutboundMessage>,
    trace: Option<ResumableStream>,
) -> HttpResponse {
    let stream_cut = match request.fault {
        Some(FaultAction::CutStream { retry, .. }) => Some(StreamCut { retry }),
        _ => None,
    };
    let (sender, reply) = body::streaming_response("text/event-stream");
    let gzip = request.fault == Some(FaultAction::Gzip);
    let writer =
        BodyWriter::new(sender, request.connection_faults.clone(), BodyFormat::Events, gzip);
    served.tasks().spawn(events::write_request_stream(open, first, writer, trace, stream_cut));
    reply
}

/// Responds with the single response message.
pub(super) async fn json_response(
    served: &Arc<ServerState>,
    request: &IncomingRequest,
    mut open: OpenRequest,
    come: Option<OutboundMessage>,
) -> HttpResponse {
    let out = match come {
        Some(out) => Some(out),
        None => open.lines.recv().await,
    };
    let Some(out) = out else { return request.reset_connection().await };
    if request.fault.is_none() {
        return body::full_response(200, Some("application/json"), out.text);
    }
    let (sender, reply) = body::streaming_response("application/json");
    let gzip = request.fault == Some(FaultAction::Gzip);
    let writer = BodyWriter::new(sender, request.connection_faults.clone(), BodyFormat::Json, gzip);
    served.tasks().spawn(events::write_request_stream(open, Some(out), writer, None, None));
    reply
}

async fn handle_get(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    if !headers::accepts(&request.head.headers, "text/event-stream") {
        return body::empty_response(406);
    }
    let session = match find_session(served, &request) {
        Ok(session) => session,
        Err(rejection) => return *rejection,
    };
    let (sender, reply) = body::streaming_response("text/event-stream");
    let gzip = request.fault == Some(FaultAction::Gzip);
    let mut writer =
        BodyWriter::new(sender, request.connection_faults.clone(), BodyFormat::Events, gzip);
    let log = Arc::clone(&session.events);
    let after = headers::header_text(&request.head.headers, LAST_EVENT_ID_HEADER)
        .map(events::parse_event_id);
    match after {
        Some(None) => return body::empty_response(400),
        Some(Some((stream, after))) if stream != events::GENERAL_STREAM => {
            served.tasks().spawn(events::resume_stream(log, stream, after, writer));
            return reply;
        }
        _ => {}
    }
    let trace = served.config().streamable.event_ids.then(|| ResumableStream {
        log: Arc::clone(&log),
        stream: events::GENERAL_STREAM,
        replay_twice: false,
    });
    let (waiting, lines) = session.bridge.open_general_stream();
    served.tasks().spawn(async move {
        if let Some(Some((_, after))) = after {
            events::replay_missed(&log, after, &mut writer).await;
        }
        events::write_general_stream(waiting, lines, writer, trace).await;
    });
    reply
}

fn handle_delete(served: &Arc<ServerState>, request: &IncomingRequest) -> HttpResponse {
    match find_session(served, request) {
        Ok(session) => {
            served.end_session(&session.id);
            body::empty_response(200)
        }
        Err(rejection) => *rejection,
    }
}
