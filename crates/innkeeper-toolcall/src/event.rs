//! What the interceptor finds in a model's text.

use crate::call::{Call, Rejected};

/// One find, in the order of the text.
///
/// [`Event::text`] of all events, put together, is the text that went in, byte for byte.
#[derive(Debug, Clone, PartialEq)]
pub enum Event<'a> {
    /// Text for the reader.
    Text(&'a str),
    /// Text the model wrote to itself.
    Reasoning(&'a str),
    /// Markup between the parts: tags of reasoning, of sections and of messages. Not for the reader.
    Frame(&'a str),
    /// A call of an offered tool has begun. It may still turn out to be none: see `Rejected` and
    /// `Incomplete` with the same index. Calls that come in a list have no beginning of their own.
    CallStart {
        /// Counts the calls of this text from 0.
        index: usize,
        /// The offered tool's name.
        name: &'a str,
    },
    /// A piece of the open call's arguments, as the model wrote them.
    Arguments {
        /// Which call.
        index: usize,
        /// The piece; a piece is never repeated.
        fragment: &'a str,
    },
    /// A complete call of an offered tool: the only event to act on.
    Call {
        /// Which call.
        index: usize,
        /// The call.
        call: &'a Call,
        /// The text it was written in; empty for all but the first call of a list.
        text: &'a str,
    },
    /// Text that was meant as a call and is none. The reader is shown the text.
    Rejected {
        /// The index of its `CallStart`, if there was one.
        index: Option<usize>,
        /// What is wrong.
        rejected: &'a Rejected,
        /// The text; empty if a call of the same list carries it.
        text: &'a str,
    },
    /// A call that the text ends in. It is never run.
    Incomplete {
        /// The index of its `CallStart`, if there was one.
        index: Option<usize>,
        /// Why it ends there.
        reason: Incomplete,
        /// The text.
        text: &'a str,
    },
}

impl Event<'_> {
    /// The part of the input this event stands for. Empty for `CallStart` and `Arguments`, whose
    /// text comes with the end of their call.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Frame(text) => text,
            Self::Call { text, .. }
            | Self::Rejected { text, .. }
            | Self::Incomplete { text, .. } => text,
            Self::CallStart { .. } | Self::Arguments { .. } => "",
        }
    }
}

/// Why a call has no end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Incomplete {
    /// The model stopped in the middle of it.
    Stopped,
    /// The answer was cut at its greatest length.
    Length,
    /// The stream broke off.
    Interrupted,
}

/// How a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finish {
    /// The model had said all it wanted: only then may missing closers be added.
    Stop,
    /// The answer was cut at its greatest length.
    Length,
    /// The connection broke, or somebody cancelled.
    Interrupted,
}
