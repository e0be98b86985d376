//! The codec of Gemini's generateContent: parts of contents out, parts of a candidate in.

mod answer;
mod body;
mod partial;

use super::codec::{Asking, Events, Fault, Outgoing, Reader, Whole};
use super::gemini::{self, model_name};
use super::{Piece, Response};
use answer::Gathered;

pub(super) fn encode(asking: Asking<'_>) -> Result<Outgoing, Fault> {
    let model = segment(model_name(asking.model));
    let method = if asking.streaming { "streamGenerateContent?alt=sse" } else { "generateContent" };
    let body = serde_json::to_vec(&body::of(asking));
    let body = body.map_err(|error| Fault::new(super::Class::Request, error.to_string()))?;
    Ok(Outgoing { path: format!("/v1beta/models/{model}:{method}"), headers: Vec::new(), body })
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

/// A text as one segment of a path.
fn segment(text: &str) -> String {
    let mut segment = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                segment.push(char::from(byte));
            }
            _ => segment.push_str(&format!("%{byte:02X}")),
        }
    }
    segment
}

/// Reads an answer in pieces: each event is a whole response with a piece of the candidate in it.
struct Streaming {
    events: Events,
    gathered: Gathered,
}

impl Reader for Streaming {
    fn push(&mut self, bytes: &[u8], pieces: &mut Vec<Piece>) -> Result<(), Fault> {
        let Self { events, gathered } = self;
        events.push(bytes, |_, data| gathered.event(data, pieces))
    }

    fn end(self: Box<Self>) -> Result<Response, Fault> {
        self.gathered.end()
    }
}

#[cfg(test)]
mod tests;
