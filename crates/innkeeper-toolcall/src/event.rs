//! Events of the tool-call parser.

use crate::call::{RejectedCall, ResolvedCall};

/// An event of the tool-call parser, in the order of the text.
///
/// The concatenation of [`ParseEvent::text`] over all events equals the input, byte for byte.
#[derive(Debug, Clone, PartialEq)]
pub enum ParseEvent<'a> {
    /// Text for the user.
    Text(&'a str),
    /// Reasoning text of the model.
    Reasoning(&'a str),
    /// Markup between sections: tags of reasoning, of call sections and of messages. Not for the
    /// user.
    Markup(&'a str),
    /// The start of a call of an offered tool. The call may still end in `Rejected` or `Incomplete`
    /// with the same index. Calls in a list have no `CallStart`.
    CallStart {
        /// The index of the call in this text, from 0.
        index: usize,
        /// The name of the offered tool.
        name: &'a str,
    },
    /// A fragment of the open call's arguments, as the model wrote them.
    Arguments {
        /// The index of the call.
        index: usize,
        /// The fragment. Fragments do not overlap.
        fragment: &'a str,
    },
    /// A complete call of an offered tool. Only this event may be executed.
    Call {
        /// The index of the call.
        index: usize,
        /// The resolved call.
        call: &'a ResolvedCall,
        /// Whether other text stands before the call on its line, so that the call may be a
        /// quotation or an example.
        inline: bool,
        /// The source text of the call; empty for all but the first call of a list.
        text: &'a str,
    },
    /// An invalid call. The text is shown to the user.
    Rejected {
        /// The index of the `CallStart` event, if there was one.
        index: Option<usize>,
        /// The rejected call.
        rejected: &'a RejectedCall,
        /// The source text; empty if another call of the same list has the text.
        text: &'a str,
    },
    /// A call without an end, because the text ends first. Never executed.
    ///
    /// With [`IncompleteReason::EndedEarly`], the call with this index was reported as complete
    /// before. Who has the whole response runs nothing of it.
    Incomplete {
        /// The index of the `CallStart` or `Call` event, if there was one.
        index: Option<usize>,
        /// The reason why the call is incomplete.
        reason: IncompleteReason,
        /// The source text.
        text: &'a str,
    },
}

impl ParseEvent<'_> {
    /// Returns the input text of this event. Empty for `CallStart` and `Arguments`, whose text is
    /// part of the event that ends their call.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning(text) | Self::Markup(text) => text,
            Self::Call { text, .. }
            | Self::Rejected { text, .. }
            | Self::Incomplete { text, .. } => text,
            Self::CallStart { .. } | Self::Arguments { .. } => "",
        }
    }
}

/// The reason why a call is incomplete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IncompleteReason {
    /// The model stopped in the middle of the call.
    Stopped,
    /// The response reached its maximum length.
    Length,
    /// The stream was interrupted.
    Interrupted,
    /// The end of a call follows a call that had ended already: a value contained text that looked
    /// like the end of the call.
    EndedEarly,
}

/// The reason why a text ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextEnd {
    /// The model stopped by itself. Only then may missing closing brackets be added.
    Stop,
    /// The response reached its maximum length.
    Length,
    /// The connection was interrupted, or the caller cancelled the response.
    Interrupted,
    /// The text is complete as far as the caller knows: a complete call counts, but no missing
    /// closing bracket is added.
    Unknown,
}
