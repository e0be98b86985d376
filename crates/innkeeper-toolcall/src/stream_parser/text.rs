//! Parser for text outside of calls and reasoning.

use std::cell::LazyCell;

use super::context::fence_line;
use super::markers::{Candidates, MarkerMatch, Markers};
use super::open_call::OpenCall;
use super::reasoning::{CallSection, ReasoningState};
use super::{
    ParseEventSink, ParseMode, ParseProgress, ToolCallParser, emit, floor_char_boundary, harmony,
};
use crate::event::{ParseEvent, TextEnd};
use crate::format::{LexerKind, Marker, MarkerKind};
use crate::lexer::fence::FENCE;
use crate::lexer::{MAX_LOOKAHEAD_BYTES, PrefixMatch, leading_whitespace_len, match_call_start};

/// Number of end tokens in a row that prose never has: some models repeat theirs until they are
/// stopped, and each one is looked at with those behind it.
const MAX_END_TOKENS: usize = 4;

impl ToolCallParser {
    pub(super) fn parse_text(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let mut candidates = Candidates::from(0);
        match candidates.next(self.text_markers(), input) {
            Some(at) => self.parse_candidates(input, at, candidates, text_end, sink),
            None if text_end.is_none() && self.markers.lead_ins.may_end(input) => {
                self.emit_before_lead_in(input, sink)
            }
            None => {
                self.emit_visible_text(input, sink);
                ParseProgress::wait_after(input.len())
            }
        }
    }

    /// Parses text with a candidate at `at` and further `candidates`. A function of its own, because
    /// most chunks have no candidate and do not need its stack frame.
    #[inline(never)]
    fn parse_candidates(
        &mut self,
        input: &str,
        at: usize,
        mut candidates: Candidates,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let mut candidate = Some(at);
        while let Some(at) = candidate {
            let markers = self.text_markers();
            let (fresh, rest) = input.split_at(at);
            let lead_in = || fresh.split_at(at - self.lead_in_len(fresh, rest));
            // A short rest can be the start of many markers.
            let quoted = LazyCell::new(|| self.context.is_quoted(fresh));
            match markers.match_start(rest, text_end.is_some(), |marker| {
                self.is_significant(marker, fresh, rest, || *quoted)
            }) {
                MarkerMatch::Nothing => {}
                MarkerMatch::Partial => {
                    let (shown, _) = lead_in();
                    self.emit_visible_text(shown, sink);
                    return ParseProgress::wait_after(shown.len());
                }
                MarkerMatch::Marker(marker) => match self.match_call_start(marker, rest) {
                    PrefixMatch::No => match fence_line(rest, text_end.is_some()) {
                        Some(line) => {
                            self.context.pass_fence(line);
                            candidates = Candidates::from(at + line.ticks);
                        }
                        None => {
                            let (shown, _) = lead_in();
                            self.emit_visible_text(shown, sink);
                            return ParseProgress::wait_after(shown.len());
                        }
                    },
                    PrefixMatch::Partial if text_end.is_none() => {
                        let (shown, _) = lead_in();
                        self.emit_visible_text(shown, sink);
                        return ParseProgress::wait_after(shown.len());
                    }
                    PrefixMatch::Partial | PrefixMatch::Yes => {
                        let marker = *marker;
                        let (shown, lead_in) = lead_in();
                        self.emit_visible_text(shown, sink);
                        let read = self.enter_marker(marker, lead_in, sink);
                        return ParseProgress::continue_after(at + read);
                    }
                },
            }
            candidate = candidates.next(self.text_markers(), input);
        }
        if text_end.is_none() {
            return self.emit_before_lead_in(input, sink);
        }
        self.emit_visible_text(input, sink);
        ParseProgress::wait_after(input.len())
    }

    /// Emits text without markers, except for an end that may belong to a marker. A function of its
    /// own, because most chunks have no such end and do not need its stack frame.
    #[inline(never)]
    fn emit_before_lead_in(&mut self, input: &str, sink: &mut ParseEventSink<'_>) -> ParseProgress {
        let held = self.markers.lead_ins.held_len(input, self.context.last_byte());
        let shown = input.len() - held;
        self.emit_visible_text(&input[..shown], sink);
        ParseProgress::wait_after(shown)
    }

    /// Returns the length of the end of `fresh` that belongs to the marker at the start of `rest`.
    fn lead_in_len(&self, fresh: &str, rest: &str) -> usize {
        self.markers.lead_ins.len_before(fresh, rest, self.context.last_byte())
    }

    /// Emits JSON data as text, without a search for calls.
    pub(super) fn parse_opaque_json(
        &mut self,
        input: &str,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::OpaqueJson(data) = &mut self.mode else {
            return ParseProgress::continue_after(0);
        };
        let window = &input[..floor_char_boundary(input, data.read_limit())];
        let (read, ended) = data.skip(window);
        let ended = ended || window.is_empty();
        if ended {
            self.mode = ParseMode::Text;
        }
        self.emit_visible_text(&input[..read], sink);
        if ended || read < input.len() {
            ParseProgress::continue_after(read)
        } else {
            ParseProgress::wait_after(read)
        }
    }

    /// Returns the markers that may have an effect at the current position.
    fn text_markers(&self) -> &'static Markers {
        self.markers.at(self.context.open_fence.is_some(), !self.raw_calls.is_empty())
    }

    /// Whether the text that starts with a marker can be a call, as far as the text shows. A fence
    /// inside a block ends the block, and a longer fence is an example.
    fn match_call_start(&self, marker: &Marker, rest: &str) -> PrefixMatch {
        match marker.kind {
            MarkerKind::Call(LexerKind::Fence)
                if self.context.open_fence.is_some() || rest[FENCE.len()..].starts_with('`') =>
            {
                PrefixMatch::No
            }
            MarkerKind::Call(lexer_kind) => {
                match_call_start(lexer_kind, rest, self.limits.max_undecided_chars)
            }
            MarkerKind::ReasoningStart { .. }
            | MarkerKind::StrayReasoningEnd
            | MarkerKind::Markup
            | MarkerKind::CallCloser
            | MarkerKind::CallSection { .. }
            | MarkerKind::HarmonyHeader => PrefixMatch::Yes,
            MarkerKind::EndToken => self.match_end(&rest[marker.text.len()..]),
        }
    }

    /// Whether an end token at the start of `rest` may end a turn. A function of its own, because end
    /// tokens are rare.
    #[inline(never)]
    fn may_end_here(&self, marker: &Marker, fresh: &str, rest: &str) -> bool {
        let after = rest.get(marker.text.len()..).unwrap_or_default();
        self.match_end(after) != PrefixMatch::No && !self.context.line_contains(fresh, "<s>")
    }

    /// Whether the text after an end token is over, or goes on with markup, so that the token ends a
    /// turn. `Partial` if more text decides; at the end of the text, the token counts.
    fn match_end(&self, after: &str) -> PrefixMatch {
        let mut rest = after;
        for _ in 0..MAX_END_TOKENS {
            rest = &rest[leading_whitespace_len(rest)..];
            if after.len() - rest.len() > MAX_LOOKAHEAD_BYTES {
                return PrefixMatch::No;
            }
            match self.markers.all.match_start(rest, false, |marker| {
                matches!(marker.kind, MarkerKind::Markup | MarkerKind::EndToken)
            }) {
                MarkerMatch::Marker(marker) if matches!(marker.kind, MarkerKind::EndToken) => {
                    rest = &rest[marker.text.len()..];
                }
                MarkerMatch::Marker(_) => return PrefixMatch::Yes,
                MarkerMatch::Partial => return PrefixMatch::Partial,
                MarkerMatch::Nothing if rest.is_empty() => return PrefixMatch::Partial,
                MarkerMatch::Nothing => return PrefixMatch::No,
            }
        }
        PrefixMatch::Yes
    }

    /// Whether a marker at the start of `rest` has an effect. `fresh` is the preceding text that is
    /// not yet emitted.
    fn is_significant(
        &self,
        marker: &Marker,
        fresh: &str,
        rest: &str,
        quoted: impl Fn() -> bool,
    ) -> bool {
        if !marker.in_prose && !matches!(marker.kind, MarkerKind::EndToken | MarkerKind::CallCloser)
        {
            return true;
        }
        if self.tools.is_empty() && matches!(marker.kind, MarkerKind::Call(_)) {
            return false;
        }
        match marker.kind {
            MarkerKind::Call(LexerKind::Fence | LexerKind::ToolCode) => {
                self.context.is_at_block_start(fresh)
            }
            MarkerKind::Call(LexerKind::BareJson | LexerKind::Pythonic) => {
                self.match_call_start(marker, rest) != PrefixMatch::No && !quoted()
            }
            MarkerKind::Call(LexerKind::React) | MarkerKind::ReasoningStart { .. } => {
                self.context.is_at_line_start(fresh)
            }
            MarkerKind::StrayReasoningEnd => !self.emitted.has_reasoning && !quoted(),
            MarkerKind::EndToken => !quoted() && self.may_end_here(marker, fresh, rest),
            // Quotes and fences don't matter: they may be part of the value that was cut.
            MarkerKind::CallCloser => self.raw_calls.index_of_ended(marker.text).is_some(),
            MarkerKind::Call(_)
            | MarkerKind::Markup
            | MarkerKind::CallSection { .. }
            | MarkerKind::HarmonyHeader => !quoted(),
        }
    }

    /// Enters the mode that a marker starts, with the text before the marker that belongs to it.
    /// Returns the number of consumed bytes.
    fn enter_marker(
        &mut self,
        marker: Marker,
        lead_in: &str,
        sink: &mut ParseEventSink<'_>,
    ) -> usize {
        if !matches!(marker.kind, MarkerKind::Call(_)) {
            emit(lead_in, sink, ParseEvent::Markup);
        }
        match marker.kind {
            MarkerKind::ReasoningStart { end_texts, allows_calls } => {
                emit(marker.text, sink, ParseEvent::Markup);
                self.mode = ParseMode::Reasoning(ReasoningState::new(
                    &self.markers.all,
                    end_texts,
                    allows_calls,
                ));
            }
            MarkerKind::StrayReasoningEnd | MarkerKind::Markup | MarkerKind::EndToken => {
                self.emitted.has_reasoning |= marker.kind == MarkerKind::StrayReasoningEnd;
                emit(marker.text, sink, ParseEvent::Markup);
                // The context of the marker also applies to the text after the marker.
                return marker.text.len();
            }
            MarkerKind::CallCloser => {
                self.context.push(marker.text);
                self.raw_calls.on_closer(marker.text, sink);
                return marker.text.len();
            }
            MarkerKind::CallSection { end_text } => {
                emit(marker.text, sink, ParseEvent::Markup);
                let inline = self.context.is_inline();
                let is_certain = !marker.in_prose && !self.emitted.has_text;
                let section = CallSection::new(&self.markers.all, end_text, inline, is_certain);
                self.mode = ParseMode::CallSection(section);
            }
            MarkerKind::Call(lexer_kind) => {
                let read = if lexer_kind.includes_marker() { "" } else { marker.text };
                let mut call =
                    OpenCall::new(&(lead_in.to_owned() + read), lexer_kind, ParseMode::Text);
                call.set_inline(self.context.is_inline());
                self.mode = ParseMode::OpenCall(Box::new(call));
                return read.len();
            }
            MarkerKind::HarmonyHeader => {
                let inline = self.context.is_inline();
                let header = harmony::HarmonyHeader::from_marker(marker.text, inline);
                self.mode = ParseMode::HarmonyHeader(header);
            }
        }
        self.context.reset();
        marker.text.len()
    }
}
