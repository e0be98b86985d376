//! The codec of Gemini's Interactions: steps out, steps in. Nothing is kept on the server; the
//! whole conversation goes with each request.

mod answer;
mod body;
mod step;

use super::codec::{Asking, Events, Fault, Outgoing, Reader, Whole};
use super::{Class, Piece, Response, gemini};
use answer::Gathered;

/// The revision of the interface that is spoken here.
const REVISION: &str = "2026-05-20";

pub(super) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let body = serde_json::to_vec(&body::of(asking));
    let body = body.map_err(|error| Fault::new(Class::Request, error.to_string()))?;
    let headers = vec![("api-revision", REVISION.to_owned())];
    Ok(Outgoing { path: "/v1beta/interactions".to_owned(), headers, body })
}

pub(super) fn reader(model: &str, streaming: bool) -> Box<dyn Reader> {
    let gathered = Gathered::new(model);
    if streaming {
        Box::new(Streaming { events: Events::new(), gathered })
    } else {
        Box::new(Whole::new(move |body: &[u8]| gathered.whole(body)))
    }
}

pub(super) fn fault(status: u16, body: &[u8]) -> Fault {
    gemini::fault(status, body)
}

/// Reads an answer in pieces: events about steps, and about the interaction around them.
struct Streaming {
    events: Events,
    gathered: Gathered,
}

impl Reader for Streaming {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Self { events, gathered } = self;
        events.push(bytes, |name, data| gathered.event(name, data, pieces))
    }

    fn end(self: Box<Self>) -> Result<Response, Fault> {
        self.gathered.end()
    }
}

#[cfg(test)]
mod tests;
