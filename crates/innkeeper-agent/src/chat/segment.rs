//! Classified segments of a model's text.

use std::sync::Arc;

use innkeeper_toolcall::{IncompleteReason, ParseEvent, ResolvedCall, Tools};

use super::foreign_texts::ForeignTexts;
use crate::safety::ToolBlocklist;

/// A segment of the model's text. Without `Buffered` segments, the concatenated
/// [`TextSegment::text`] equals the input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextSegment {
    /// Text for the user.
    Narrative(String),
    /// Reasoning, with the markup around it.
    Reasoning(String),
    /// A call that is run, or markup of calls; not for display.
    ToolCall(String),
    /// The replacement of a call in the displayed text.
    Placeholder {
        /// The text to display.
        replacement: String,
        /// The call as the model wrote it; empty for all calls of a list but the first.
        original: String,
    },
    /// Text that was intended as a call but is invalid; for display.
    RejectedCall {
        /// The text; empty if another call of the same list contains it.
        text: String,
        /// The reason for the rejection, as a message to the model.
        reason: String,
    },
    /// Text that the parser has not classified yet; not for display. The text comes again in a
    /// later segment.
    Buffered(String),
}

impl TextSegment {
    /// Returns the part of the input that the segment stands for.
    pub fn text(&self) -> &str {
        match self {
            Self::Narrative(text)
            | Self::Reasoning(text)
            | Self::ToolCall(text)
            | Self::RejectedCall { text, .. } => text,
            Self::Placeholder { original, .. } => original,
            Self::Buffered(_) => "",
        }
    }

    /// Returns the text to display: narrative, placeholders and rejected calls.
    pub fn visible_text(&self) -> Option<&str> {
        match self {
            Self::Narrative(text) | Self::RejectedCall { text, .. } => Some(text),
            Self::Placeholder { replacement, .. } => Some(replacement),
            Self::Reasoning(_) | Self::ToolCall(_) | Self::Buffered(_) => None,
        }
    }

    /// Returns the name of the class, for the log.
    pub(super) fn class(&self) -> &'static str {
        match self {
            Self::Narrative(_) => "narrative",
            Self::Reasoning(_) => "reasoning",
            Self::ToolCall(_) => "tool_call",
            Self::Placeholder { .. } => "placeholder",
            Self::RejectedCall { .. } => "no_call",
            Self::Buffered(_) => "buffered",
        }
    }

    /// Returns the complete text of the segment, for the log.
    pub(super) fn content(&self) -> &str {
        match self {
            Self::Buffered(text) => text,
            Self::Narrative(_)
            | Self::Reasoning(_)
            | Self::ToolCall(_)
            | Self::Placeholder { .. }
            | Self::RejectedCall { .. } => self.text(),
        }
    }

    /// Returns the approximate memory size in bytes.
    pub(super) fn memory_bytes(&self) -> usize {
        let text = match self {
            Self::Placeholder { replacement, original } => replacement.len() + original.len(),
            Self::RejectedCall { text, reason } => text.len() + reason.len(),
            Self::Narrative(text)
            | Self::Reasoning(text)
            | Self::ToolCall(text)
            | Self::Buffered(text) => text.len(),
        };
        text + size_of::<Self>()
    }
}

/// Maximum number of bytes of held markup; the longest marker has 32 bytes.
const MAX_HELD_MARKUP_BYTES: usize = 256;

/// A segment or a call that a parse event adds.
#[derive(Debug)]
pub(super) enum ClassifiedItem {
    Segment(TextSegment),
    CallStarted { index: usize, tool: String },
    CallCompleted { index: usize, call: ResolvedCall },
}

fn incomplete_message(reason: IncompleteReason) -> &'static str {
    match reason {
        IncompleteReason::Stopped | IncompleteReason::Length | IncompleteReason::Interrupted => {
            "the text ends before the call is complete"
        }
        IncompleteReason::EndedEarly => {
            "an argument of the call contains the end of a call, so the call ended too early"
        }
    }
}

/// Turns parse events into segments and calls.
#[derive(Debug, Default)]
pub(super) struct SegmentClassifier {
    placeholder: Option<String>,
    blocklist: ToolBlocklist,
    /// The tools that the parser knows.
    tools: Arc<Tools>,
    foreign_texts: ForeignTexts,
    /// Markup that belongs to the reasoning that may follow.
    held_markup: String,
    /// Whether reasoning came last, so that the next markup belongs to it.
    after_reasoning: bool,
}

impl SegmentClassifier {
    pub(super) fn new(
        placeholder: Option<String>,
        blocklist: ToolBlocklist,
        tools: Arc<Tools>,
        foreign_texts: ForeignTexts,
    ) -> Self {
        Self { placeholder, blocklist, tools, foreign_texts, ..Self::default() }
    }

    pub(super) fn feed(&mut self, event: &ParseEvent<'_>, items: &mut Vec<ClassifiedItem>) {
        if let ParseEvent::Markup(text) = event {
            return self.hold_markup(text, items);
        }
        let is_reasoning = matches!(event, ParseEvent::Reasoning(_));
        self.flush_markup(is_reasoning, items);
        self.after_reasoning = is_reasoning;
        match event {
            ParseEvent::Text(text) => {
                items.push(ClassifiedItem::Segment(TextSegment::Narrative((*text).to_owned())));
            }
            ParseEvent::Reasoning(text) => {
                items.push(ClassifiedItem::Segment(TextSegment::Reasoning((*text).to_owned())));
            }
            ParseEvent::CallStart { index, name } => {
                items.push(ClassifiedItem::CallStarted { index: *index, tool: (*name).to_owned() });
            }
            ParseEvent::Call { call, text, .. }
                if self.foreign_texts.contain(call, &self.tools) =>
            {
                let reason = format!(
                    "the call of `{}` stands in a tool result or in a message, so it is not run",
                    call.name
                );
                items.push(ClassifiedItem::Segment(TextSegment::RejectedCall {
                    text: (*text).to_owned(),
                    reason,
                }));
            }
            ParseEvent::Call { index, call, text, .. } => {
                match &self.placeholder {
                    Some(replacement) => {
                        items.push(ClassifiedItem::Segment(TextSegment::Placeholder {
                            replacement: replacement.clone(),
                            original: (*text).to_owned(),
                        }));
                    }
                    None if text.is_empty() => {}
                    None => items
                        .push(ClassifiedItem::Segment(TextSegment::ToolCall((*text).to_owned()))),
                }
                items.push(ClassifiedItem::CallCompleted { index: *index, call: (*call).clone() });
            }
            ParseEvent::Rejected { rejected, text, .. } => {
                items.push(ClassifiedItem::Segment(TextSegment::RejectedCall {
                    text: (*text).to_owned(),
                    reason: self.blocklist.rejection_message(rejected),
                }));
            }
            ParseEvent::Incomplete { text, reason, .. } => {
                let reason = incomplete_message(*reason).to_owned();
                items.push(ClassifiedItem::Segment(TextSegment::RejectedCall {
                    text: (*text).to_owned(),
                    reason,
                }));
            }
            ParseEvent::Arguments { .. } | ParseEvent::Markup(_) => {}
        }
    }

    fn hold_markup(&mut self, text: &str, items: &mut Vec<ClassifiedItem>) {
        if self.after_reasoning {
            self.after_reasoning = false;
            items.push(ClassifiedItem::Segment(TextSegment::Reasoning(text.to_owned())));
            return;
        }
        self.held_markup.push_str(text);
        if self.held_markup.len() > MAX_HELD_MARKUP_BYTES {
            self.flush_markup(false, items);
        }
    }

    /// Emits the held markup.
    pub(super) fn flush_markup(&mut self, is_reasoning: bool, items: &mut Vec<ClassifiedItem>) {
        if self.held_markup.is_empty() {
            return;
        }
        let frame = std::mem::take(&mut self.held_markup);
        let token =
            if is_reasoning { TextSegment::Reasoning(frame) } else { TextSegment::ToolCall(frame) };
        items.push(ClassifiedItem::Segment(token));
    }

    /// Returns the number of held bytes.
    pub(super) fn held_bytes(&self) -> usize {
        self.held_markup.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_memory_size_of_a_segment_counts_all_of_its_texts() {
        let text = || "a".repeat(100);
        let placeholder = TextSegment::Placeholder { replacement: text(), original: "b".into() };
        let rejected = TextSegment::RejectedCall { text: text(), reason: "no".into() };
        for (segment, bytes) in [
            (TextSegment::Narrative(text()), 100),
            (TextSegment::Reasoning(text()), 100),
            (TextSegment::ToolCall(text()), 100),
            (TextSegment::Buffered(text()), 100),
            (placeholder, 101),
            (rejected, 102),
        ] {
            let overhead = size_of::<TextSegment>();
            assert_eq!(segment.memory_bytes(), overhead + bytes, "{segment:?}");
        }
    }
}
