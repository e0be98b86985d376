//! The text of a response, cut into what its parts are.

use std::ops::Range;

use innkeeper_toolcall::event::ParseEvent;
use innkeeper_toolcall::{IncompleteReason, ResolvedCall};

use crate::run::ToolCallMode;
use crate::run::made_up_turn::find_made_up_turn;
use crate::run::quotation::{CallPlace, MarkedParts};
use crate::run::rejected_call::RejectedTextCall;
use crate::run::text_calls::{Prose, TextCalls};
use crate::safety::ToolBlocklist;

/// The text of a response with its classified spans.
#[derive(Debug)]
pub(super) struct ParsedText {
    pub(super) text: String,
    pub(super) spans: Vec<TextSpan>,
    /// The calls at the end of the model's reasoning, without a call or text after it.
    pub(super) reasoning_calls: Vec<ResolvedCall>,
    /// Without tools, no text can be a call.
    pub(super) has_tools: bool,
    pub(super) blocklist: ToolBlocklist,
}

#[derive(Debug)]
pub(super) struct TextSpan {
    pub(super) range: Range<usize>,
    pub(super) kind: SpanKind,
}

#[derive(Debug)]
pub(super) enum SpanKind {
    Text,
    Reasoning,
    Markup,
    CallStart(String),
    Call {
        call: ResolvedCall,
        position: CallPosition,
    },
    /// Text that was intended as a call but is none.
    Problem(RejectedTextCall),
    /// The end of a call that ended before, inside of an argument. Markdown around it says nothing,
    /// because the argument may contain half of a block of code.
    EarlyEnd(RejectedTextCall),
}

/// What stands around a call in the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum CallPosition {
    OwnLine,
    /// Something that may show the call: see [`CallPlace::Doubtful`].
    Doubtful,
    /// Other text before it on its line.
    Inline,
}

impl ParsedText {
    fn add(&mut self, text: &str, kind: SpanKind) {
        let start = self.text.len();
        self.text.push_str(text);
        self.spans.push(TextSpan { range: start..self.text.len(), kind });
    }

    pub(super) fn add_event(&mut self, event: &ParseEvent<'_>) {
        let kind = match event {
            ParseEvent::Text(_) => SpanKind::Text,
            ParseEvent::Reasoning(_) => SpanKind::Reasoning,
            ParseEvent::Markup(_) => SpanKind::Markup,
            ParseEvent::Rejected { .. } | ParseEvent::Incomplete { .. } if !self.has_tools => {
                SpanKind::Text
            }
            ParseEvent::CallStart { name, .. } => SpanKind::CallStart((*name).to_owned()),
            ParseEvent::Arguments { .. } => return,
            ParseEvent::Call { call, inline, .. } => {
                let position = match inline {
                    true => CallPosition::Inline,
                    false => CallPosition::OwnLine,
                };
                SpanKind::Call { call: (*call).clone(), position }
            }
            ParseEvent::Rejected { rejected, .. } => {
                let problem = self.blocklist.rejection_message(rejected);
                SpanKind::Problem(RejectedTextCall::unreadable(&*rejected.name, problem))
            }
            ParseEvent::Incomplete { reason: IncompleteReason::EndedEarly, .. } => {
                let problem = "an argument may contain the end of a call, so it is unclear where the call \
                               ends; send only this call in one response, or write the argument \
                               without such text";
                SpanKind::EarlyEnd(RejectedTextCall::unreadable(self.last_started_tool(), problem))
            }
            ParseEvent::Incomplete { index, .. } => {
                let tool = if index.is_some() { self.last_started_tool() } else { "" };
                SpanKind::Problem(RejectedTextCall::unreadable(tool, "the tool call is incomplete"))
            }
        };
        self.add(event.text(), kind);
    }

    /// Returns the tool of the call that started last.
    fn last_started_tool(&self) -> &str {
        let tool = self.spans.iter().rev().find_map(|span| match &span.kind {
            SpanKind::CallStart(tool) => Some(tool.as_str()),
            _ => None,
        });
        tool.unwrap_or_default()
    }

    /// Finds out what the Markdown says about the calls: those in code, in a quotation or in a comment
    /// become text.
    ///
    /// A model that made a call in its text and goes on with its result, or with the user's next
    /// message, made all of that up: it is dropped.
    pub(super) fn place_calls(&mut self, mode: ToolCallMode) {
        let is_call =
            |span: &TextSpan| matches!(span.kind, SpanKind::Call { .. } | SpanKind::Problem(_));
        let calls: Vec<_> = self
            .spans
            .iter()
            .filter(|span| is_call(span) && !span.range.is_empty())
            .map(|span| trimmed(&self.text, &span.range))
            .collect();
        if calls.is_empty() {
            return;
        }
        let others = self.spans.iter().filter(|span| span.kind.is_no_text());
        let others: Vec<_> = others.map(|span| trimmed(&self.text, &span.range)).collect();
        let mut parts = MarkedParts::new(&self.text, &calls, &others);
        let reasoning = self.spans.iter().filter(|span| matches!(span.kind, SpanKind::Reasoning));
        let reasoning: Vec<_> = reasoning.map(|span| span.range.clone()).collect();
        let ignored = [&*calls, &*reasoning, parts.code()].concat();
        if let Some(start) = find_made_up_turn(&self.text, &ignored) {
            let has_call_before = self.spans.iter().any(|span| {
                matches!(span.kind, SpanKind::Call { .. })
                    && span.range.end <= start
                    && parts.place(&trimmed(&self.text, &span.range)) == CallPlace::TopLevel
            });
            if mode == ToolCallMode::Prompt && has_call_before {
                self.drop_from(start);
            }
            parts.add_doubt(start..self.text.len());
        }
        // The further calls of a list have no text and stand where the first one does.
        let mut place = CallPlace::TopLevel;
        for span in self.spans.iter_mut().filter(|span| is_call(span)) {
            if !span.range.is_empty() {
                place = parts.place(&trimmed(&self.text, &span.range));
            }
            match (&mut span.kind, place) {
                (_, CallPlace::TopLevel) => {}
                (kind, CallPlace::Quoted) => *kind = SpanKind::Text,
                (SpanKind::Call { position, .. }, CallPlace::Doubtful) => {
                    *position = (*position).max(CallPosition::Doubtful);
                }
                (_, CallPlace::Doubtful) => {}
            }
        }
    }

    /// Takes everything from `start` on out of the answer.
    fn drop_from(&mut self, start: usize) {
        let mut dropped = Vec::new();
        for span in &mut self.spans {
            if span.range.start >= start {
                span.kind = SpanKind::Markup;
            } else if span.range.end > start {
                dropped.push(TextSpan { range: start..span.range.end, kind: SpanKind::Markup });
                span.range.end = start;
            }
        }
        let at = self.spans.partition_point(|span| span.range.start < start);
        self.spans.splice(at..at, dropped);
    }

    pub(super) fn text_calls(&self) -> TextCalls<'_> {
        let mut found = TextCalls::default();
        for span in &self.spans {
            let text = self.text[span.range.clone()].trim();
            if matches!(span.kind, SpanKind::Call { .. }) && !text.is_empty() {
                found.texts.push(text);
            }
            match &span.kind {
                SpanKind::Call { call, position: CallPosition::OwnLine } => {
                    found.on_own_line.push(call);
                }
                SpanKind::Call { call, position: CallPosition::Doubtful } => {
                    found.doubtful.push(call);
                }
                SpanKind::Call { call, position: CallPosition::Inline } => found.inline.push(call),
                SpanKind::Problem(rejected) => found.problems.push(rejected),
                SpanKind::EarlyEnd(_) => found.has_early_end = true,
                SpanKind::Text => found.prose = found.prose.max(Prose::of(text)),
                SpanKind::Reasoning | SpanKind::Markup | SpanKind::CallStart(_) => {}
            }
        }
        found.on_own_line.extend(&self.reasoning_calls);
        found
    }

    pub(super) fn text_after_reasoning(&self) -> String {
        let mut text = String::new();
        for span in &self.spans {
            match span.kind {
                SpanKind::Reasoning => text.clear(),
                SpanKind::Markup if text.is_empty() => {}
                _ => text.push_str(&self.text[span.range.clone()]),
            }
        }
        text
    }
}

impl SpanKind {
    /// Whether the span is neither text for the user nor a call.
    fn is_no_text(&self) -> bool {
        match self {
            Self::Reasoning | Self::Markup => true,
            Self::Text
            | Self::CallStart(_)
            | Self::Call { .. }
            | Self::Problem(_)
            | Self::EarlyEnd(_) => false,
        }
    }
}

/// Returns the range without white space at its ends.
fn trimmed(text: &str, range: &Range<usize>) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start().len();
    start..start + part.trim().len()
}
