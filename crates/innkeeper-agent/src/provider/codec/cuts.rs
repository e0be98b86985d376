//! Tests only: one answer read in pieces of many sizes, and what must be the same in all of them.

use super::{Fault, reader};
use crate::conversation::Said;
use crate::provider::{Piece, Response, Wire};

/// Reads an answer that comes in pieces of `size` bytes.
pub(crate) fn read(
    wire: Wire,
    streaming: bool,
    bytes: &[u8],
    size: usize,
) -> (Vec<Piece>, Result<Response, Fault>) {
    let mut reader = reader(wire, "m", streaming);
    let mut pieces = Vec::new();
    for chunk in bytes.chunks(size.max(1)) {
        if let Err(fault) = reader.push(chunk, &mut pieces) {
            return (pieces, Err(fault));
        }
    }
    (pieces, reader.end())
}

/// Reads a stream in many cuts: each gives the same answer, and pieces that are the answer when they
/// are put together.
pub(crate) fn stream(wire: Wire, text: &str) -> Response {
    let mut first = None;
    for size in [1, 2, 3, 7, 64, 1021, text.len()] {
        let (pieces, response) = read(wire, true, text.as_bytes(), size);
        let response = response.unwrap_or_else(|fault| panic!("cut by {size}: {fault:?}"));
        are_the_answer(&pieces, &response);
        assert_eq!(*first.get_or_insert_with(|| response.clone()), response, "cut by {size}");
    }
    first.unwrap()
}

/// Reads a stream that fails in many cuts: each gives the same failure.
pub(crate) fn failing(wire: Wire, text: &str) -> Fault {
    let mut last: Option<Fault> = None;
    for size in [1, 2, 3, 7, 64, 1021, text.len()] {
        let (_, response) = read(wire, true, text.as_bytes(), size);
        let fault = response.expect_err("no failure");
        if let Some(last) = last {
            let (before, now) = ((last.class, &last.message), (fault.class, &fault.message));
            assert_eq!(before, now, "cut by {size}");
            assert_eq!(last.written, fault.written, "cut by {size}");
        }
        last = Some(fault);
    }
    last.unwrap()
}

/// Reads an answer that is not a stream.
pub(crate) fn whole(wire: Wire, text: &str) -> Result<Response, Fault> {
    read(wire, false, text.as_bytes(), 13).1
}

pub(crate) fn are_the_answer(pieces: &[Piece], response: &Response) {
    let (mut text, mut reasoning) = (String::new(), String::new());
    let mut calls: Vec<(String, String)> = Vec::new();
    for piece in pieces {
        match piece {
            Piece::Text(piece) => text.push_str(piece),
            Piece::Reasoning(piece) => reasoning.push_str(piece),
            Piece::CallStart { index, name } => {
                assert_eq!(*index, calls.len());
                calls.push((name.clone(), String::new()));
            }
            Piece::Arguments { index, fragment } => calls[*index].1.push_str(fragment),
            Piece::Done(_) => panic!("a reader does not say that it is done"),
        }
    }
    assert_eq!(text, response.answer.shown());
    assert_eq!(reasoning, response.answer.reasoning());
    let answered = response.answer.parts.iter().filter_map(|part| match &part.said {
        Said::Call(call) => Some((call.name.clone(), call.arguments.clone())),
        Said::Text(_) | Said::Reasoning(_) | Said::Other => None,
    });
    assert_eq!(calls, answered.collect::<Vec<_>>());
}
