//! Calls whose syntax has raw values, which may have ended too early.

use super::ParseEventSink;
use crate::event::{IncompleteReason, ParseEvent};
use crate::lexer::RawEnd;

/// The complete calls with raw values, the last one of each syntax.
#[derive(Debug, Default)]
pub(super) struct RawCalls {
    calls: Vec<EndedCall>,
    /// Whether a call so far was not regular; see [`RawEnd`].
    is_irregular: bool,
}

/// A complete call whose syntax has raw values.
#[derive(Debug)]
struct EndedCall {
    index: usize,
    /// The tags that end a value or a call in this syntax.
    closers: Vec<String>,
    /// Whether an event has said that the call ended too early.
    is_reported: bool,
}

impl EndedCall {
    /// Whether the text contains the end of a value or of a call, so that the call before the text
    /// had ended too early.
    fn ended_early(&self, text: &str) -> bool {
        self.closers.iter().any(|closer| text.contains(closer.trim_start_matches(']')))
    }
}

impl RawCalls {
    pub(super) fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Returns the index of a call that had ended too early if this text follows.
    pub(super) fn index_of_ended(&self, text: &str) -> Option<usize> {
        self.calls.iter().find(|call| call.ended_early(text)).map(|call| call.index)
    }

    /// Notes that a value may contain the end of its own call.
    pub(super) fn note_irregular(&mut self) {
        self.is_irregular = true;
    }

    /// Adds a complete call. Of several such calls, all have to be regular: otherwise the value of
    /// one may contain the end of its own call and the start of the next.
    pub(super) fn add(&mut self, index: usize, end: RawEnd, sink: &mut ParseEventSink<'_>) {
        let RawEnd { closers, is_regular } = end;
        self.is_irregular |= !is_regular;
        let is_doubtful = !self.calls.is_empty() && self.is_irregular;
        self.calls.retain(|call| call.closers != closers);
        self.calls.push(EndedCall { index, closers, is_reported: is_doubtful });
        if is_doubtful {
            report(index, "", sink);
        }
    }

    /// Reports that a call ended too early, because `closer` follows it.
    pub(super) fn on_closer(&mut self, closer: &str, sink: &mut ParseEventSink<'_>) {
        match self.calls.iter_mut().find(|call| call.ended_early(closer)) {
            Some(call) if !call.is_reported => {
                call.is_reported = true;
                report(call.index, closer, sink);
            }
            Some(_) | None => sink(ParseEvent::Markup(closer)),
        }
    }

    /// Reports that a call may have ended too early: text follows it, and the rest of the answer,
    /// where the end of the call would show up once more, is cut off.
    pub(super) fn doubt_last(&mut self, sink: &mut ParseEventSink<'_>) {
        let Some(call) = self.calls.iter_mut().max_by_key(|call| call.index) else { return };
        if !std::mem::replace(&mut call.is_reported, true) {
            report(call.index, "", sink);
        }
    }
}

fn report(index: usize, text: &str, sink: &mut ParseEventSink<'_>) {
    let index = Some(index);
    sink(ParseEvent::Incomplete { index, reason: IncompleteReason::EndedEarly, text });
}
