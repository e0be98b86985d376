//! Checks the calls of a decoded response by the rules of all APIs.
//!
//! - Some servers and proxies send a call again: with the last event, or after a retry of their own.
//!   A call with the id, the name and the arguments of another one is that call, and a cut call with
//!   the id of a complete one is its beginning.
//! - A response that ends within its last call is truncated, whatever reason the server gives.

use std::collections::HashSet;

use innkeeper_toolcall::parse_strict;

use super::{ApiError, ResponseDecoder};
use crate::conversation::{ContentPart, PartContent, ToolCall};
use crate::provider::{FinishReason, Response, StreamChunk};

/// A decoder that checks the calls of its response.
pub(super) struct CheckedDecoder(pub(super) Box<dyn ResponseDecoder>);

impl ResponseDecoder for CheckedDecoder {
    fn push(&mut self, bytes: &[u8], chunks: &mut Vec<StreamChunk>) -> Result<(), ApiError> {
        self.0.push(bytes, chunks)
    }

    fn is_finished(&self) -> bool {
        self.0.is_finished()
    }

    fn finish(self: Box<Self>) -> Result<Response, ApiError> {
        let mut response = self.0.finish()?;
        remove_repeated_calls(&mut response.message.parts);
        let ends_in_call = response.message.calls().last().is_some_and(|call| call.is_cut);
        let has_ended = matches!(
            response.finish_reason,
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Paused
        );
        if ends_in_call && has_ended {
            response.finish_reason = FinishReason::Length;
        }
        Ok(response)
    }
}

/// Whether two texts of arguments have the same value.
pub(crate) fn are_same_arguments(left: &str, right: &str) -> bool {
    canonical_arguments(left) == canonical_arguments(right)
}

fn canonical_arguments(text: &str) -> String {
    parse_strict(text).map_or_else(|_| text.trim().to_owned(), |json| json.to_canonical_string())
}

fn call_key(call: &ToolCall) -> (String, String) {
    (call.id.clone(), call.name.clone())
}

fn remove_repeated_calls(parts: &mut Vec<ContentPart>) {
    let calls = parts.iter().filter_map(|part| call_with_id(part));
    let ids = calls.clone().map(|call| &call.id);
    if ids.collect::<HashSet<_>>().len() == calls.clone().count() {
        return;
    }
    let complete: HashSet<_> = calls.filter(|call| !call.is_cut).map(call_key).collect();
    let mut seen = HashSet::new();
    parts.retain(|part| match call_with_id(part) {
        Some(call) if call.is_cut => !complete.contains(&call_key(call)),
        Some(call) => seen.insert((call_key(call), canonical_arguments(&call.arguments))),
        None => true,
    });
}

fn call_with_id(part: &ContentPart) -> Option<&ToolCall> {
    match &part.content {
        PartContent::ToolCall(call) if !call.id.is_empty() => Some(call),
        PartContent::ToolCall(_)
        | PartContent::Text(_)
        | PartContent::Reasoning(_)
        | PartContent::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn part(id: &str, name: &str, arguments: &str, is_cut: bool) -> ContentPart {
        let [id, name, arguments] = [id, name, arguments].map(str::to_owned);
        ContentPart::new(PartContent::ToolCall(ToolCall { id, name, arguments, is_cut }))
    }

    #[test]
    fn a_call_that_is_sent_again_counts_once() {
        let call = part("a", "f", r#"{"x":1,"y":2}"#, false);
        for (other, is_repeated) in [
            (call.clone(), true),
            (part("a", "f", r#"{"y": 2, "x": 1}"#, false), true),
            (part("a", "f", "", true), true),
            (part("a", "f", r#"{"x":1,"y":3}"#, false), false),
            (part("a", "g", r#"{"x":1,"y":2}"#, false), false),
            (part("b", "f", r#"{"x":1,"y":2}"#, false), false),
            (part("b", "f", "", true), false),
            (part("", "f", r#"{"x":1,"y":2}"#, false), false),
        ] {
            let mut parts = vec![other.clone(), call.clone()];
            remove_repeated_calls(&mut parts);
            assert_eq!(parts.len(), if is_repeated { 1 } else { 2 }, "{other:?}");
            let is_whole = |part| call_with_id(part).is_some_and(|call| !call.is_cut);
            assert!(!is_repeated || is_whole(&parts[0]), "{other:?}");
        }
        let mut without_ids = vec![part("", "f", "{}", false), part("", "f", "{}", false)];
        remove_repeated_calls(&mut without_ids);
        assert_eq!(without_ids.len(), 2, "a model may make a call twice");
    }
}
