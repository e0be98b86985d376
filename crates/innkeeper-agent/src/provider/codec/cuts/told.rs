//! What the pieces of an answer tell, and streams for tests.

use super::in_all_cuts;
use crate::conversation::Said;
use crate::provider::codec::Fault;
use crate::provider::{Piece, Response, Wire};

/// What those who watch have heard: text, thoughts, and each call's name and arguments.
type Heard = (String, String, Vec<(String, String)>);

/// Reads a stream in many cuts. No piece of it contradicts another: put together they are the answer.
pub(crate) fn streamed(wire: Wire, body: &str) -> Result<Response, Fault> {
    let (response, pieces) = in_all_cuts(wire, body.as_bytes());
    if let Ok(response) = &response {
        are_the_answer(&pieces, response);
    }
    response
}

/// A stream of events, each with data alone.
pub(crate) fn events(data: &[&str]) -> String {
    data.iter().map(|data| format!("data: {data}\n\n")).collect()
}

/// The calls of a response: id, name, arguments.
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
