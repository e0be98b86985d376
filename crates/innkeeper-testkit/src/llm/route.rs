//! What a request is answered with: a list of models, a refusal, or the next step.

use bytes::Bytes;
use hyper::http::request::Parts;
use serde_json::{Value, json};

use super::answer::{Answer, Finish, WHEN};
use super::body::Outgoing;
use super::script::{Ending, Kind, Says, Script};
use super::serve::Served;
use super::wire::{Refusal, Target, Wire};

/// A response, its further headers and how its body goes on.
type Routed = (Outgoing, Vec<(String, String)>, Ending);

/// Finds the answer to a request.
pub(super) fn answer(served: &Served, head: &Parts, text: &Bytes) -> Routed {
    let plain = |outgoing| (outgoing, Vec::new(), Ending::Whole);
    let path = head.uri.path();
    if head.method == hyper::Method::GET {
        return plain(told(served.script(), path));
    }
    let Some(target) = Target::of(path).filter(|_| head.method == hyper::Method::POST) else {
        return plain(missing(path));
    };
    let wire = target.wire;
    let Ok(body) = serde_json::from_slice::<Value>(text) else {
        return plain(refused(wire, &Refusal::new("the body is no JSON")));
    };
    if let Err(refusal) = (wire.check)(&body, served.memory()) {
        return plain(refused(wire, &refusal));
    }
    let (number, step) = served.next();
    let Some(step) = step else {
        let message = format!("the script has no step for request {number}");
        return plain(failure(wire, 500, None, &message));
    };
    let outgoing = match step.kind {
        Kind::Raw { status, content_type, bytes } => {
            let streams = !content_type.starts_with("application/json");
            cut(served, Outgoing { status, content_type, pieces: vec![bytes], streams })
        }
        Kind::Fails { status, code, message } => failure(wire, status, code.as_deref(), &message),
        Kind::Says(says) => said(served, &target, &says, number, (text, &body)),
    };
    (outgoing, step.headers, step.ending)
}

fn said(
    served: &Served,
    target: &Target,
    says: &Says,
    number: usize,
    (text, body): (&Bytes, &Value),
) -> Outgoing {
    let wire = target.wire;
    let model = target.model.as_deref().or_else(|| body["model"].as_str()).unwrap_or_default();
    let offered = (wire.offered)(body);
    let mut answer = Answer::new(says, number, wire.id_prefix, model, (text, &offered));
    answer.tells_usage = body["stream_options"]["include_usage"] == true;
    if answer.finish != Finish::Length
        && let (Some(unreadable), Some(call)) = (wire.unreadable, answer.malformed())
    {
        return failure(wire, 500, None, &unreadable(call));
    }
    let streams = target.streams.or_else(|| body["stream"].as_bool()).unwrap_or(wire.streams);
    if !streams && let Some(message) = &answer.error {
        return failure(wire, 500, None, message);
    }
    served.memory().remember(&answer);
    if !streams {
        return Outgoing::json(200, answer.written(&(wire.whole)(&answer)));
    }
    let pieces = (wire.stream)(&answer).into_iter().map(Bytes::from).collect();
    let content_type = wire.content_type.to_owned();
    cut(served, Outgoing { status: 200, content_type, pieces, streams })
}

/// In the pieces that the script asks for.
fn cut(served: &Served, outgoing: Outgoing) -> Outgoing {
    match served.script().chunks.filter(|_| outgoing.streams) {
        Some(bytes) => outgoing.cut(bytes),
        None => outgoing,
    }
}

fn refused(wire: &Wire, refusal: &Refusal) -> Outgoing {
    let body = (wire.failure)(400, refusal.code, refusal);
    Outgoing::json(400, body.to_string())
}

fn failure(wire: &Wire, status: u16, code: Option<&str>, message: &str) -> Outgoing {
    let body = (wire.failure)(status, code, &Refusal::new(message));
    Outgoing::json(status, body.to_string())
}

fn missing(path: &str) -> Outgoing {
    let error = json!({"error": {"message": format!("there is nothing at `{path}`")}});
    Outgoing::json(404, error.to_string())
}

/// What servers tell of themselves.
fn told(script: &Script, path: &str) -> Outgoing {
    let names = &script.models;
    let body = match path {
        "/props" => match &script.props {
            Some(props) => props.clone(),
            None => return missing(path),
        },
        "/api/tags" => {
            let model = |name: &String| {
                json!({
                    "name": name, "model": name, "modified_at": "2026-11-18T00:00:00Z",
                    "size": 1, "digest": "0", "details": {"format": "gguf", "family": "scripted"},
                })
            };
            json!({"models": names.iter().map(model).collect::<Vec<_>>()})
        }
        _ if path.ends_with("/models") => {
            let model = |name: &String| json!({"id": name, "object": "model", "created": WHEN, "owned_by": "scripted"});
            json!({"object": "list", "data": names.iter().map(model).collect::<Vec<_>>()})
        }
        _ => return missing(path),
    };
    Outgoing::json(200, body.to_string())
}
