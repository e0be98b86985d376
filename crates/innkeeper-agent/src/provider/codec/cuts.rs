//! Tests and the fuzzer only: answers read in many cuts, and what must be the same in all of them.

#[cfg(test)]
mod told;

use super::{Fault, reader};
use crate::provider::{Piece, Response, Wire};

#[cfg(test)]
pub(crate) use told::{are_the_answer, calls, events, streamed};

/// The model that tests ask.
pub(crate) const MODEL: &str = "a-model";

/// The one that they ask over Gemini's wires, where a model's name tells what it takes.
pub(crate) const GEMINI: &str = "gemini-3.8-flash";

/// The sizes of the pieces in which a stream comes that does not come at once, over and over.
const CUTS: [&[usize]; 7] = [&[1], &[2], &[3], &[7, 1, 40], &[64, 5], &[1000, 1], &[61]];

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

/// Reads a stream in many cuts: each gives the same answer or the same failure, with the same pieces.
pub(crate) fn in_all_cuts(wire: Wire, body: &[u8]) -> (Result<Response, Fault>, Vec<Piece>) {
    let first = read(wire, true, body, &[usize::MAX]);
    for sizes in CUTS {
        let again = read(wire, true, body, sizes);
        assert_eq!(first, again, "in cuts of {sizes:?}: {}", String::from_utf8_lossy(body));
    }
    first
}
