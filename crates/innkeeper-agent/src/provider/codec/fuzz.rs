//! What the fuzz target of the codecs does: whatever a provider answers, it is an answer or a failure,
//! the same however it is cut, and what is kept of it can be sent again.
//!
//! The first byte of the input sets the wire, the second whether the rest is a stream, a whole answer
//! or one with another status than 200.

use super::cuts::{in_all_cuts, whole};
use super::{Asking, encode, fault};
use crate::conversation::{Answer, Conversation, ToolResult};
use crate::provider::offer::Offer;
use crate::provider::{Capabilities, Request, Wire};

/// Reads the input as an answer.
///
/// # Panics
///
/// If cuts make a difference, or the conversation cannot go on.
pub fn codecs(input: &[u8]) {
    let [wire, kind, body @ ..] = input else { return };
    let wire = Wire::ALL[usize::from(*wire) % Wire::ALL.len()];
    let read = match kind % 3 {
        0 => in_all_cuts(wire, body).0,
        1 => whole(wire, body),
        _ => Err(fault(wire, 400 + u16::from(*kind), body)),
    };
    if let Ok(response) = read {
        goes_on(wire, response.answer);
    }
}

fn goes_on(wire: Wire, answer: Answer) {
    let mut talk = Conversation::new();
    talk.user("?").expect("nothing is open");
    talk.answer(answer).expect("nothing is open");
    let results = talk.open_calls().map(|call| ToolResult {
        id: call.id.clone(),
        name: call.name.clone(),
        text: "ok".to_owned(),
        is_error: false,
    });
    let results = results.collect();
    talk.results(results).expect("there is one for each call");
    let request = Request { messages: talk.messages().to_vec(), ..Request::default() };
    // To the model that said it, and to another, which gets nothing in the first one's own words.
    for model in [super::cuts::model(wire), "another"] {
        let can = Capabilities::of(wire, model);
        let offer = Offer::new(request.tools.clone(), wire, false);
        let asking = Asking { request: &request, offer: &offer, model, can: &can, streaming: true };
        let outgoing = encode(wire, asking).expect("a body");
        let body: Result<&serde_json::value::RawValue, _> = serde_json::from_slice(&outgoing.body);
        assert!(body.is_ok(), "{}", String::from_utf8_lossy(&outgoing.body));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    #[test]
    fn every_kept_answer_is_the_same_however_it_is_cut_and_can_be_sent_again() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/codecs");
        let inputs: Vec<_> = std::fs::read_dir(folder).unwrap().flatten().collect();
        assert!(!inputs.is_empty());
        for input in inputs {
            println!("{}", input.path().display());
            super::codecs(&std::fs::read(input.path()).unwrap());
        }
    }
}
