//! Parser for reasoning and for call sections.

use super::markers::{Candidates, MarkerMatch, Markers};
use super::open_call::OpenCall;
use super::raw_calls::RawCalls;
use super::{ParseEventSink, ParseMode, ParseProgress, ToolCallParser, emit};
use crate::call::{RejectReason, RejectedCall};
use crate::event::{IncompleteReason, ParseEvent, TextEnd};
use crate::format::{LexerKind, MarkerKind};
use crate::lexer::leading_whitespace_len;
use crate::parse::Completeness;

/// Maximum length of the text between two calls of a section that is held until the next call.
const MAX_NOISE_BYTES: usize = 4096;

#[derive(Debug, Clone)]
pub(super) struct ReasoningState {
    markers: Box<Markers>,
}

impl ReasoningState {
    /// Creates the state for reasoning that ends at one of `end_texts`. In some formats the model
    /// may omit the end before a call.
    pub(super) fn new(markers: &Markers, end_texts: &[&'static str], calls: bool) -> Self {
        let markers = markers.subset(end_texts, |kind| calls && starts_marked_call(kind));
        Self { markers: Box::new(markers) }
    }
}

/// Whether a marker starts a call with its own markers.
fn starts_marked_call(kind: MarkerKind) -> bool {
    match kind {
        MarkerKind::Call(
            LexerKind::BareJson
            | LexerKind::Fence
            | LexerKind::ToolCode
            | LexerKind::Pythonic
            | LexerKind::React,
        ) => false,
        MarkerKind::Call(_) => true,
        MarkerKind::ReasoningStart { .. }
        | MarkerKind::StrayReasoningEnd
        | MarkerKind::Markup
        | MarkerKind::EndToken
        | MarkerKind::CallCloser
        | MarkerKind::CallSection { .. }
        | MarkerKind::HarmonyHeader => false,
    }
}

/// A complete call in reasoning, held until the reasoning ends or continues.
#[derive(Debug)]
pub(super) struct HeldCall {
    /// The call. Its return mode is the reasoning.
    pub(super) open_call: OpenCall,
    /// The text after the call.
    pub(super) trailing_text: String,
}

impl HeldCall {
    pub(super) fn new(open_call: OpenCall) -> Self {
        Self { open_call, trailing_text: String::new() }
    }
}

/// A section that contains only calls.
#[derive(Debug)]
pub(super) struct CallSection {
    markers: Box<Markers>,
    /// Text of the section that is not a call.
    noise: String,
    has_calls: bool,
    /// Whether other text stands before the section on its line.
    inline: bool,
    /// Whether the section starts the answer with a marker that never occurs in prose, so that it
    /// is meant as a call.
    is_certain: bool,
}

impl CallSection {
    pub(super) fn new(
        markers: &Markers,
        end_text: &'static str,
        inline: bool,
        is_certain: bool,
    ) -> Self {
        Self {
            markers: Box::new(markers.subset(&[end_text], starts_marked_call)),
            noise: String::new(),
            has_calls: false,
            inline,
            is_certain,
        }
    }

    /// Handles the end of the text inside the section.
    pub(super) fn finish(
        mut self,
        rest: &str,
        raw_calls: &RawCalls,
        sink: &mut ParseEventSink<'_>,
    ) {
        self.noise.push_str(rest);
        self.flush_noise(true, raw_calls, sink);
    }

    /// Emits the noise as markup. At the end of a section without a call, emits the noise as text,
    /// so that the user sees it.
    fn flush_noise(&mut self, last: bool, raw_calls: &RawCalls, sink: &mut ParseEventSink<'_>) {
        let noise = std::mem::take(&mut self.noise);
        if let Some(index) = raw_calls.index_of_ended(&noise) {
            let index = Some(index);
            let reason = IncompleteReason::EndedEarly;
            sink(ParseEvent::Incomplete { index, reason, text: &noise });
        } else if last && !self.has_calls && !noise.trim().is_empty() && self.is_certain {
            let rejected = RejectedCall {
                name: String::new(),
                reason: RejectReason::Malformed("the block of calls contains no call".to_owned()),
                suggestions: Vec::new(),
            };
            sink(ParseEvent::Rejected { index: None, rejected: &rejected, text: &noise });
        } else if last && !self.has_calls && !noise.trim().is_empty() {
            sink(ParseEvent::Text(&noise));
        } else {
            emit(&noise, sink, ParseEvent::Markup);
        }
    }
}

impl ToolCallParser {
    pub(super) fn parse_reasoning(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::Reasoning(reasoning) = &self.mode else {
            return ParseProgress::continue_after(0);
        };
        let mut candidates = Candidates::from(0);
        while let Some(at) = candidates.next(&reasoning.markers, input) {
            let marker =
                match reasoning.markers.match_start(&input[at..], text_end.is_some(), |_| true) {
                    MarkerMatch::Nothing => continue,
                    MarkerMatch::Partial => {
                        emit(&input[..at], sink, ParseEvent::Reasoning);
                        return ParseProgress::wait_after(at);
                    }
                    MarkerMatch::Marker(marker) => *marker,
                };
            emit(&input[..at], sink, ParseEvent::Reasoning);
            match marker.kind {
                MarkerKind::Call(lexer_kind) => {
                    let return_mode = ParseMode::Reasoning(reasoning.clone());
                    self.mode = ParseMode::OpenCall(Box::new(OpenCall::new(
                        marker.text,
                        lexer_kind,
                        return_mode,
                    )));
                }
                MarkerKind::StrayReasoningEnd
                | MarkerKind::ReasoningStart { .. }
                | MarkerKind::Markup
                | MarkerKind::EndToken
                | MarkerKind::CallCloser
                | MarkerKind::CallSection { .. }
                | MarkerKind::HarmonyHeader => {
                    emit(marker.text, sink, ParseEvent::Markup);
                    self.emitted.has_reasoning = true;
                    self.context.reset();
                    self.mode = ParseMode::Text;
                }
            }
            return ParseProgress::continue_after(at + marker.text.len());
        }
        emit(input, sink, ParseEvent::Reasoning);
        ParseProgress::wait_after(input.len())
    }

    /// Decides about a call in reasoning: the call counts only if the reasoning does not continue
    /// after the call.
    pub(super) fn parse_held_call(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::HeldCall(pending) = &mut self.mode else {
            return ParseProgress::continue_after(0);
        };
        let max_bytes = self.limits.max_call_bytes;
        let skipped = leading_whitespace_len(input);
        pending.trailing_text.push_str(&input[..skipped]);
        if skipped == input.len() && pending.trailing_text.len() <= max_bytes {
            return ParseProgress::wait_after(skipped);
        }
        match self.markers.all.match_start(&input[skipped..], text_end.is_some(), |_| true) {
            MarkerMatch::Partial => return ParseProgress::wait_after(skipped),
            MarkerMatch::Marker(marker)
                if matches!(marker.kind, MarkerKind::Markup | MarkerKind::EndToken)
                    && pending.trailing_text.len() <= max_bytes =>
            {
                pending.trailing_text.push_str(marker.text);
                return ParseProgress::continue_after(skipped + marker.text.len());
            }
            MarkerMatch::Marker(_) | MarkerMatch::Nothing => {}
        }
        let goes_on = !matches!(
            self.markers.all.match_start(&input[skipped..], text_end.is_some(), |_| true),
            MarkerMatch::Marker(marker) if starts_marked_call(marker.kind)
        );
        if let ParseMode::HeldCall(pending) = std::mem::replace(&mut self.mode, ParseMode::Text) {
            if goes_on {
                emit(pending.open_call.raw_text(), sink, ParseEvent::Reasoning);
                emit(&pending.trailing_text, sink, ParseEvent::Reasoning);
                self.mode = pending.open_call.into_return_mode();
            } else {
                self.commit_held_call(*pending, sink);
            }
        }
        ParseProgress::continue_after(skipped)
    }

    /// Emits a held call after the reasoning has ended.
    pub(super) fn commit_held_call(&mut self, pending: HeldCall, sink: &mut ParseEventSink<'_>) {
        let HeldCall { open_call, trailing_text } = pending;
        self.emit_calls(&open_call, Completeness::Complete, sink);
        emit(&trailing_text, sink, ParseEvent::Markup);
        self.mode = ParseMode::Text;
    }

    pub(super) fn parse_call_section(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::CallSection(mut section) =
            std::mem::replace(&mut self.mode, ParseMode::Text)
        else {
            return ParseProgress::continue_after(0);
        };
        let mut candidates = Candidates::from(0);
        while let Some(at) = candidates.next(&section.markers, input) {
            match section.markers.match_start(&input[at..], text_end.is_some(), |_| true) {
                MarkerMatch::Nothing => {}
                MarkerMatch::Partial => {
                    section.noise.push_str(&input[..at]);
                    self.mode = ParseMode::CallSection(section);
                    return ParseProgress::wait_after(at);
                }
                MarkerMatch::Marker(marker) => {
                    let marker = *marker;
                    section.noise.push_str(&input[..at]);
                    if let MarkerKind::Call(lexer_kind) = marker.kind {
                        // Text between two calls of a section may be the value of the first.
                        if section.has_calls && !section.noise.trim().is_empty() {
                            self.raw_calls.note_irregular();
                        }
                        section.flush_noise(false, &self.raw_calls, sink);
                        section.has_calls = true;
                        let inline = section.inline;
                        let return_mode = ParseMode::CallSection(section);
                        let mut call = OpenCall::new(marker.text, lexer_kind, return_mode);
                        call.set_inline(inline);
                        self.mode = ParseMode::OpenCall(Box::new(call));
                    } else {
                        section.flush_noise(true, &self.raw_calls, sink);
                        emit(marker.text, sink, ParseEvent::Markup);
                        self.context.reset();
                    }
                    return ParseProgress::continue_after(at + marker.text.len());
                }
            }
        }
        section.noise.push_str(input);
        if section.noise.len() > MAX_NOISE_BYTES {
            if !section.has_calls && !section.noise.trim().is_empty() {
                // The section contains no calls, so the following text is for the user.
                self.emit_visible_text(&section.noise, sink);
                return ParseProgress::wait_after(input.len());
            }
            section.flush_noise(false, &self.raw_calls, sink);
        }
        self.mode = ParseMode::CallSection(section);
        ParseProgress::wait_after(input.len())
    }
}
