//! Tests only: answers in every cut.

use crate::conversation::Said;
use crate::provider::codec::{Fault, reader};
use crate::provider::{Class, Piece, Response, Wire};

/// The model that tests ask.
pub(in crate::provider) const MODEL: &str = "a-model";

/// What those who watch have heard: text, thoughts, and each call's name and arguments.
type Heard = (String, String, Vec<(String, String)>);

/// A failure, to be compared.
pub(in crate::provider) type Failure = (Class, String, Option<String>);

/// Reads an answer that comes at once.
pub(in crate::provider) fn whole(wire: Wire, body: &str) -> Result<Response, Failure> {
    let (response, pieces) = drive(wire, false, body.as_bytes(), &[body.len().max(1)]);
    assert_eq!(pieces, [], "an answer that is not asked for in pieces has none");
    response
}

/// Reads an answer that comes in pieces, in many cuts: all give the same, and what was heard is what
/// the response says.
pub(in crate::provider) fn streamed(wire: Wire, body: &str) -> Result<Response, Failure> {
    let bytes = body.as_bytes();
    let (first, pieces) = drive(wire, true, bytes, &[bytes.len().max(1)]);
    if let Ok(response) = &first {
        assert_eq!(heard(&pieces), said(response), "{body}");
    }
    for sizes in [&[1][..], &[3], &[7, 1, 40], &[64, 5], &[1000, 1]] {
        let (response, again) = drive(wire, true, bytes, sizes);
        assert_eq!(response, first, "in cuts of {sizes:?}: {body}");
        assert_eq!(again, pieces, "in cuts of {sizes:?}: {body}");
    }
    first
}

/// The stream of these events, each the data of one.
pub(in crate::provider) fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// Feeds the bytes in cuts of these sizes, over and over.
pub(in crate::provider) fn drive(
    wire: Wire,
    streaming: bool,
    mut bytes: &[u8],
    sizes: &[usize],
) -> (Result<Response, Failure>, Vec<Piece>) {
    let mut reader = reader(wire, MODEL, streaming);
    let mut pieces = Vec::new();
    for size in sizes.iter().cycle() {
        if bytes.is_empty() {
            break;
        }
        let (cut, rest) = bytes.split_at((*size).min(bytes.len()));
        bytes = rest;
        if let Err(fault) = reader.push(cut, &mut pieces) {
            return (Err(failure(fault)), pieces);
        }
    }
    (reader.end().map_err(failure), pieces)
}

pub(in crate::provider) fn failure(fault: Fault) -> Failure {
    (fault.class, fault.message, fault.written)
}

/// The calls of a response: id, name, arguments.
pub(in crate::provider) fn calls(response: &Response) -> Vec<(&str, &str, &str)> {
    let calls = response.answer.calls();
    calls.map(|it| (it.id.as_str(), it.name.as_str(), it.arguments.as_str())).collect()
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
            Piece::Done(_) => panic!("a reader tells no end"),
        }
    }
    (text, reasoning, calls)
}

fn said(response: &Response) -> Heard {
    let answer = &response.answer;
    let calls = answer.parts.iter().filter_map(|part| match &part.said {
        Said::Call(call) => Some((call.name.clone(), call.arguments.clone())),
        Said::Text(_) | Said::Reasoning(_) | Said::Other => None,
    });
    (answer.shown(), answer.reasoning(), calls.collect())
}
