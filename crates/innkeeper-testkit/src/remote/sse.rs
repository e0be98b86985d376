//! HTTP+SSE of the first protocol version.

use std::sync::Arc;

use super::body::{self, HttpResponse};
use super::body_writer::{BodyFormat, BodyWriter};
use super::builder::AnnouncedEndpoint;
use super::events;
use super::headers;
use super::server::{IncomingRequest, ServerState};
use crate::ProcessTag;

const MESSAGES_PATH: &str = "/message";

const SESSION_QUERY_KEY: &str = "sessionId=";

pub(super) async fn respond(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    let path = request.head.uri.path();
    match request.head.method.as_str() {
        "GET" if path == served.config().transport.path() => open_stream(served, &request),
        "POST" if path == MESSAGES_PATH => handle_post(served, request).await,
        _ if path == served.config().transport.path() => {
            body::status_response(served.config().sse.post_status)
        }
        _ => body::empty_response(404),
    }
}

fn open_stream(served: &Arc<ServerState>, request: &IncomingRequest) -> HttpResponse {
    if !headers::accepts(&request.head.headers, "text/event-stream") {
        return body::empty_response(406);
    }
    let Some(session) = served.start_session(ProcessTag::new().as_str().to_owned()) else {
        return body::empty_response(503);
    };
    let (sender, reply) = body::streaming_response("text/event-stream");
    let mut writer =
        BodyWriter::new(sender, request.connection_faults.clone(), BodyFormat::Events, false);
    let address = format!("{MESSAGES_PATH}?{SESSION_QUERY_KEY}{}", session.id);
    let address = match &served.config().sse.endpoint {
        AnnouncedEndpoint::Relative => Some(address),
        AnnouncedEndpoint::Absolute => Some(format!("{}{address}", served.origin())),
        AnnouncedEndpoint::Fixed(origin) => Some(format!("{origin}{address}")),
        AnnouncedEndpoint::Never => None,
    };
    let holder = Arc::clone(served);
    served.tasks().spawn(async move {
        if let Some(address) = address {
            writer.write_event("endpoint", &address).await;
        }
        let (waiting, lines) = session.bridge.open_general_stream();
        events::write_general_stream(waiting, lines, writer, None).await;
        holder.end_session(&session.id);
    });
    reply
}

async fn handle_post(served: &Arc<ServerState>, request: IncomingRequest) -> HttpResponse {
    let query = request.head.uri.query().unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix(SESSION_QUERY_KEY));
    let Some(session) = id.and_then(|id| served.session(id)) else {
        return body::empty_response(404);
    };
    if request.message.is_null() {
        return body::empty_response(400);
    }
    if request.is_request() {
        session.bridge.register_request(&request.message, request.fault.clone());
    }
    session.bridge.send(request.body).await;
    body::full_response(202, None, "Accepted")
}
