//! HTTP+SSE of the first revision: a stream of events, and an address to post messages to.

use std::sync::Arc;

use super::body::{self, Reply};
use super::events;
use super::headers;
use super::pen::{Form, Pen};
use super::plan::Endpoint;
use super::serve::{Ask, Served};
use crate::Nonce;

/// Where messages are posted.
const MESSAGES: &str = "/message";

/// Key of the query that names the session.
const KEY: &str = "sessionId=";

/// Answers one request.
pub(super) async fn answer(served: &Arc<Served>, ask: Ask) -> Reply {
    let path = ask.head.uri.path();
    match ask.head.method.as_str() {
        "GET" if path == served.plan().wire.path() => open(served, &ask),
        "POST" if path == MESSAGES => post(served, ask).await,
        _ if path == served.plan().wire.path() => body::refusal(served.plan().post_status),
        _ => body::empty(404),
    }
}

fn open(served: &Arc<Served>, ask: &Ask) -> Reply {
    if !headers::accepts(&ask.head.headers, "text/event-stream") {
        return body::empty(406);
    }
    let Some(session) = served.begin(Nonce::new().as_str().to_owned()) else {
        return body::empty(503);
    };
    let (sender, reply) = body::streamed("text/event-stream");
    let mut pen = Pen::new(sender, ask.tricks.clone(), Form::Events, false);
    let address = format!("{MESSAGES}?{KEY}{}", session.id);
    let address = match &served.plan().endpoint {
        Endpoint::Relative => Some(address),
        Endpoint::Absolute => Some(format!("{}{address}", served.origin())),
        Endpoint::At(origin) => Some(format!("{origin}{address}")),
        Endpoint::Never => None,
    };
    let holder = Arc::clone(served);
    served.tasks().spawn(async move {
        if let Some(address) = address {
            pen.event("endpoint", &address).await;
        }
        let (waiting, lines) = session.bridge.open_general();
        events::general(waiting, lines, pen, None).await;
        holder.forget(&session.id);
    });
    reply
}

async fn post(served: &Arc<Served>, ask: Ask) -> Reply {
    let query = ask.head.uri.query().unwrap_or_default();
    let id = query.split('&').find_map(|pair| pair.strip_prefix(KEY));
    let Some(session) = id.and_then(|id| served.session(id)) else { return body::empty(404) };
    if ask.message.is_null() {
        return body::empty(400);
    }
    if ask.is_request() {
        session.bridge.note(&ask.message, ask.act.clone());
    }
    session.bridge.send(ask.text).await;
    body::whole(202, None, "Accepted")
}
