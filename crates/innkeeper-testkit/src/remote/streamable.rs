//! Streamable HTTP: sessions for legacy clients, and the way to the modern ones.

use std::sync::Arc;

use serde_json::Value;

use super::body::{self, Reply};
use super::bridge::{Manner, Open};
use super::events::{self, Cut, Trace};
use super::fault::Act;
use super::headers::{self, LAST_EVENT, LEGACY, MODERN, SESSION, VERSION};
use super::modern;
use super::pen::{Form, Pen};
use super::routes::Out;
use super::serve::{Ask, Served, Session};
use crate::Nonce;

/// Code of errors that are about the transport.
const TRANSPORT_ERROR: i64 = -32000;

/// Answers one request.
pub(super) async fn answer(served: &Arc<Served>, ask: Ask) -> Reply {
    if ask.head.uri.path() != served.plan().wire.path() {
        return body::empty(404);
    }
    match ask.head.method.as_str() {
        "POST" => post(served, ask).await,
        "GET" if served.plan().get && era(served) != "modern" => get(served, ask).await,
        "DELETE" if served.plan().sessions && era(served) != "modern" => delete(served, &ask),
        _ => body::empty(405),
    }
}

/// The era the fixture server speaks.
fn era(served: &Served) -> &str {
    served.plan().fixture.as_ref().and_then(|fixture| fixture.value("--era")).unwrap_or("legacy")
}

async fn post(served: &Arc<Served>, ask: Ask) -> Reply {
    if let Some(refusal) = refused_form(&ask) {
        return refusal;
    }
    let modern = match era(served) {
        "modern" => true,
        "dual" => is_modern(&ask),
        _ => false,
    };
    if modern {
        return modern::post(served, ask).await;
    }
    let version = headers::text(&ask.head.headers, VERSION);
    let own = served.plan().fixture.as_ref().and_then(|fixture| fixture.value("--revision"));
    let first = ask.rpc_method() == Some("initialize");
    if let Some(version) = version
        && !(first || LEGACY.contains(&version) || own == Some(version))
    {
        let text = format!("unsupported protocol version `{version}`");
        return body::error(400, &Value::Null, TRANSPORT_ERROR, &text);
    }
    let session = match first {
        true => begin(served),
        false => find(served, &ask),
    };
    match session {
        Ok(session) => pass_on(served, ask, &session, first).await,
        Err(refusal) => *refusal,
    }
}

/// The refusal of a request that is none of this transport's.
fn refused_form(ask: &Ask) -> Option<Reply> {
    let headers = &ask.head.headers;
    let refuse = |status, code, text| Some(body::error(status, &Value::Null, code, text));
    let form = headers::text(headers, "content-type").unwrap_or_default();
    if !form.starts_with("application/json") {
        return refuse(415, TRANSPORT_ERROR, "the content type is not application/json");
    }
    let accepted = ["application/json", "text/event-stream"];
    if !accepted.into_iter().all(|one| headers::accepts(headers, one)) {
        return refuse(406, TRANSPORT_ERROR, "the client does not accept both forms of answers");
    }
    match ask.message {
        Value::Object(_) => None,
        Value::Array(_) => refuse(400, -32600, "batches are not taken"),
        _ => refuse(400, -32700, "the body is not JSON"),
    }
}

fn is_modern(ask: &Ask) -> bool {
    headers::text(&ask.head.headers, VERSION) == Some(MODERN)
        || headers::revision(&ask.message).is_some()
        || ask.rpc_method() == Some("server/discover")
}

fn begin(served: &Arc<Served>) -> Result<Arc<Session>, Box<Reply>> {
    let id = match served.plan().sessions {
        true => Nonce::new().as_str().to_owned(),
        false => String::new(),
    };
    served.begin(id).ok_or_else(|| Box::new(body::empty(503)))
}

/// The conversation a request belongs to, or why it belongs to none.
fn find(served: &Arc<Served>, ask: &Ask) -> Result<Arc<Session>, Box<Reply>> {
    let id = match served.plan().sessions {
        true => headers::text(&ask.head.headers, SESSION),
        false => Some(""),
    };
    let refuse =
        |status, text| Err(Box::new(body::error(status, &Value::Null, TRANSPORT_ERROR, text)));
    match id {
        None => refuse(400, "the server is not initialized: no session id"),
        Some(id) => match served.session(id) {
            Some(session) => Ok(session),
            None if id.is_empty() => refuse(400, "the server is not initialized"),
            None => refuse(404, "the session is unknown"),
        },
    }
}

async fn pass_on(served: &Arc<Served>, ask: Ask, session: &Arc<Session>, first: bool) -> Reply {
    if !ask.is_request() {
        session.bridge.send(ask.text).await;
        return body::empty(202);
    }
    let cut = matches!(ask.act, Some(Act::Cut { .. }));
    let json = served.plan().json && !cut;
    let manner = Manner { single: json, act: ask.act.clone(), cancels: false };
    let open = session.bridge.open(&ask.message, &manner);
    session.bridge.send(ask.text.clone()).await;
    let trace = (cut || served.plan().event_ids).then(|| Trace {
        log: Arc::clone(&session.events),
        stream: served.next_stream(),
        twice: matches!(ask.act, Some(Act::Cut { twice: true, .. })),
    });
    let mut reply = match json {
        true => one_message(served, &ask, open, None).await,
        false => stream(served, &ask, open, None, trace),
    };
    if first && served.plan().sessions {
        body::set(&mut reply, SESSION, &session.id);
    }
    reply
}

/// Answers with a stream of events, begun with what has come already.
pub(super) fn stream(
    served: &Arc<Served>,
    ask: &Ask,
    open: Open,
    begun: Option<Out>,
    trace: Option<Trace>,
) -> Reply {
    let cut = match ask.act {
        Some(Act::Cut { retry, .. }) => Some(Cut { retry }),
        _ => None,
    };
    let (sender, reply) = body::streamed("text/event-stream");
    let gzip = ask.act == Some(Act::Gzip);
    let pen = Pen::new(sender, ask.tricks.clone(), Form::Events, gzip);
    served.tasks().spawn(events::answer(open, begun, pen, trace, cut));
    reply
}

/// Answers with the one message that answers, when it has come.
pub(super) async fn one_message(
    served: &Arc<Served>,
    ask: &Ask,
    mut open: Open,
    come: Option<Out>,
) -> Reply {
    let out = match come {
        Some(out) => Some(out),
        None => open.lines.recv().await,
    };
    let Some(out) = out else { return ask.hang_up().await };
    if ask.act.is_none() {
        return body::whole(200, Some("application/json"), out.text);
    }
    let (sender, reply) = body::streamed("application/json");
    let gzip = ask.act == Some(Act::Gzip);
    let pen = Pen::new(sender, ask.tricks.clone(), Form::Json, gzip);
    served.tasks().spawn(events::answer(open, Some(out), pen, None, None));
    reply
}

async fn get(served: &Arc<Served>, ask: Ask) -> Reply {
    if !headers::accepts(&ask.head.headers, "text/event-stream") {
        return body::empty(406);
    }
    let session = match find(served, &ask) {
        Ok(session) => session,
        Err(refusal) => return *refusal,
    };
    let (sender, reply) = body::streamed("text/event-stream");
    let gzip = ask.act == Some(Act::Gzip);
    let mut pen = Pen::new(sender, ask.tricks.clone(), Form::Events, gzip);
    let log = Arc::clone(&session.events);
    let after = headers::text(&ask.head.headers, LAST_EVENT).map(events::place);
    match after {
        Some(None) => return body::empty(400),
        Some(Some((stream, after))) if stream != events::GENERAL => {
            served.tasks().spawn(events::resume(log, stream, after, pen));
            return reply;
        }
        _ => {}
    }
    let trace = served.plan().event_ids.then(|| Trace {
        log: Arc::clone(&log),
        stream: events::GENERAL,
        twice: false,
    });
    let (waiting, lines) = session.bridge.open_general();
    served.tasks().spawn(async move {
        if let Some(Some((_, after))) = after {
            events::catch_up(&log, after, &mut pen).await;
        }
        events::general(waiting, lines, pen, trace).await;
    });
    reply
}

fn delete(served: &Arc<Served>, ask: &Ask) -> Reply {
    match find(served, ask) {
        Ok(session) => {
            served.forget(&session.id);
            body::empty(200)
        }
        Err(refusal) => *refusal,
    }
}
