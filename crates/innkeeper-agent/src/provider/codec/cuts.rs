//! Tests and the fuzzer only: answers read in many cuts, and what must be the same in all of them.

use super::{Fault, reader};
use crate::conversation::Said;
use crate::provider::{Piece, Response, Wire};

/// The model that tests ask.
pub(crate) const MODEL: &str = "a-model";

/// The one that they ask over Gemini's wires, where a model's name tells what it takes.
pub(crate) const GEMINI: &str = "gemini-3.8-flash";

/// The sizes of the pieces in which a stream comes, over and over until it has come whole.
const CUTS: [&[usize]; 8] =
    [&[usize::MAX], &[1], &[2], &[3], &[7, 1, 40], &[64, 5], &[1000, 1], &[61]];

/// What those who watch have heard: text, thoughts, and each call's name and arguments.
type Heard = (String, String, Vec<(String, String)>);

/// The model that is asked over a wire.
pub(crate) fn model(wire: Wire) -> &'static str {
    match wire {
        Wire::GeminiGenerate | Wire::GeminiInteractions => GEMINI,
        Wire::OpenAiChat | Wire::OpenAiResponses | Wire::Anthropic | Wire::Ollama => MODEL,
    }
}

/// Reads an answer that comes in pieces of these sizes, over and over.
pub(crate) fn read(
    wire: Wire,
    streaming: bool,
    mut bytes: &[u8],
    sizes: &[usize],
) -> (Result<Response, Fault>, Vec<Piece>) {
    let mut reader = reader(wire, model(wire), streaming);
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (cut, rest) = bytes.split_at((*size).clamp(1, bytes.len()));
        bytes = rest;
        if let Err(fault) = reader.push(cut, &mut pieces) {
            return (Err(fault), pieces);
        }
    }
    (reader.end(), pieces)
}

/// Reads an answer that is not a stream.
pub(crate) fn whole(wire: Wire, body: &(impl AsRef<[u8]> + ?Sized)) -> Result<Response, Fault> {
    let (response, pieces) = read(wire, false, body.as_ref(), &[13]);
    assert_eq!(pieces, [], "an answer that is not asked for in pieces has none");
    response
}

/// Reads a stream in many cuts: each gives the same answer or the same failure, with the same pieces,
/// which are the answer when they are put together.
pub(crate) fn streamed(wire: Wire, body: &(impl AsRef<[u8]> + ?Sized)) -> Result<Response, Fault> {
    let body = body.as_ref();
    let mut first = None;
    for sizes in CUTS {
        let (response, pieces) = read(wire, true, body, sizes);
        if let Ok(response) = &response {
            are_the_answer(&pieces, response);
        }
        let first = first.get_or_insert_with(|| (response.clone(), pieces.clone()));
        assert_eq!(
            *first,
            (response, pieces),
            "in cuts of {sizes:?}: {}",
            String::from_utf8_lossy(body)
        );
    }
    first.expect("there are cuts").0
}

/// A stream of events, each with data alone.
#[cfg(test)]
pub(crate) fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// The calls of a response: id, name, arguments.
#[cfg(test)]
pub(crate) fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    let calls = response.answer.calls();
    calls.map(|it| (it.id.as_str(), it.name.as_str(), it.arguments.as_str())).collect()
}

pub(crate) fn are_the_answer(pieces: &[Piece], response: &Response) {
    let answer = &response.answer;
    let calls = answer.parts.iter().filter_map(|part| match &part.said {
        Said::Call(call) => Some((call.name.clone(), call.arguments.clone())),
        Said::Text(_) | Said::Reasoning(_) | Said::Other => None,
    });
    assert_eq!(heard(pieces), (answer.shown(), answer.reasoning(), calls.collect()));
}

fn heard(pieces: &[Piece]) -> Heard {
    let (mut text, mut reasoning, mut calls) = (String::new(), String::new(), Vec::new());
    for piece in pieces {
        match piece {
            Piece::Text(more) => text.push_str(more),
            Piece::Reasoning(more) => reasoning.push_str(more),
            Piece::CallStart { index, name } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Piece::Arguments { index, fragment } => calls[*index].1.push_str(fragment),
            Piece::Done(_) => panic!("a reader does not say that it is done"),
        }
    }
    (text, reasoning, calls)
}
