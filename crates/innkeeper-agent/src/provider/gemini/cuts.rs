//! Answers read in many cuts, for the tests of both interfaces.

use crate::conversation::Answer;
use crate::provider::codec::{Fault, Reader};
use crate::provider::{Piece, Response};

/// What pieces tell, put together.
#[derive(Debug, Default, PartialEq)]
struct Told {
    text: String,
    reasoning: String,
    calls: Vec<(String, String)>,
}

/// Reads an answer in cuts of `size` bytes.
pub(crate) fn read(
    mut reader: Box<dyn Reader>,
    bytes: &[u8],
    size: usize,
) -> (Result<Response, Fault>, Vec<Piece>) {
    let mut pieces = Vec::new();
    for cut in bytes.chunks(size.max(1)) {
        if let Err(fault) = reader.push(cut, &mut pieces) {
            return (Err(fault), pieces);
        }
    }
    (reader.end(), pieces)
}

/// Reads a stream in many cuts: each time it is the same answer, and its pieces tell the same.
pub(crate) fn in_all_cuts(reader: impl Fn() -> Box<dyn Reader>, stream: &str) -> Response {
    let mut first = None;
    for size in [1, 2, 3, 7, 61, 1024, stream.len()] {
        let (response, pieces) = read(reader(), stream.as_bytes(), size);
        let response = response.unwrap_or_else(|fault| panic!("in cuts of {size}: {fault:?}"));
        assert_eq!(together(&pieces), said(&response.answer), "in cuts of {size}");
        let first = first.get_or_insert_with(|| response.clone());
        assert_eq!(&response, first, "in cuts of {size}");
    }
    first.unwrap()
}

/// A stream of events, each with data alone.
pub(crate) fn stream(events: &[&str]) -> String {
    events.iter().map(|event| format!("data: {event}\r\n\r\n")).collect()
}

fn together(pieces: &[Piece]) -> Told {
    let mut told = Told::default();
    for piece in pieces {
        match piece {
            Piece::Text(text) => told.text.push_str(text),
            Piece::Reasoning(text) => told.reasoning.push_str(text),
            Piece::CallStart { index, name } => {
                assert_eq!(*index, told.calls.len());
                told.calls.push((name.clone(), String::new()));
            }
            Piece::Arguments { index, fragment } => told.calls[*index].1.push_str(fragment),
            Piece::Done(_) => panic!("a reader tells the end by itself"),
        }
    }
    told
}

fn said(answer: &Answer) -> Told {
    let calls = answer.calls().map(|call| (call.name.clone(), call.arguments.clone()));
    Told { text: answer.shown(), reasoning: answer.reasoning(), calls: calls.collect() }
}
