//! Parser for text outside of calls and reasoning.

use super::markers::MarkerMatch;
use super::open_call::OpenCall;
use super::reasoning::{CallSection, ReasoningState};
use super::{
    ParseEventSink, ParseMode, ParseProgress, ToolCallParser, emit, floor_char_boundary, harmony,
};
use crate::event::{ParseEvent, TextEnd};
use crate::format::{LexerKind, Marker, MarkerKind};

impl ToolCallParser {
    pub(super) fn parse_text(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let mut from = 0;
        while let Some(at) = self.markers.find_candidate(input, from) {
            from = at + 1;
            let fresh = &input[..at];
            let matters =
                |marker| self.is_significant(marker, fresh) || self.closes_fence(marker, fresh);
            match self.markers.match_start(&input[at..], text_end.is_some(), matters) {
                MarkerMatch::Nothing => {}
                MarkerMatch::Partial => {
                    self.emit_visible_text(fresh, sink);
                    return ParseProgress::wait_after(at);
                }
                MarkerMatch::Marker(marker) if self.closes_fence(marker, fresh) => {
                    self.context.in_fence = false;
                    from = at + marker.text.len();
                }
                MarkerMatch::Marker(marker) => {
                    self.emit_visible_text(fresh, sink);
                    return ParseProgress::continue_after(at + self.enter_marker(marker, sink));
                }
            }
        }
        self.emit_visible_text(input, sink);
        ParseProgress::wait_after(input.len())
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

    /// Whether a marker has an effect at its position. `fresh` is the preceding text that is not
    /// yet emitted.
    fn is_significant(&self, marker: Marker, fresh: &str) -> bool {
        if !marker.in_prose {
            return true;
        }
        if self.context.in_fence
            || self.tools.is_empty() && matches!(marker.kind, MarkerKind::Call(_))
        {
            return false;
        }
        let quoted = || self.context.in_code(fresh) || self.context.in_quotes(fresh);
        match marker.kind {
            MarkerKind::Call(LexerKind::Fence) => self.context.is_at_block_start(fresh),
            MarkerKind::Call(LexerKind::React) | MarkerKind::ReasoningStart { .. } => {
                self.context.is_at_line_start(fresh)
            }
            MarkerKind::StrayReasoningEnd => !self.saw_reasoning && !quoted(),
            MarkerKind::Call(_)
            | MarkerKind::Markup
            | MarkerKind::CallSection { .. }
            | MarkerKind::HarmonyHeader => !quoted(),
        }
    }

    /// Whether a fenced block that is not a call ends here.
    fn closes_fence(&self, marker: Marker, fresh: &str) -> bool {
        let fence = marker.kind == MarkerKind::Call(LexerKind::Fence);
        fence && self.context.in_fence && self.context.is_at_block_start(fresh)
    }

    /// Enters the mode that a marker starts. Returns the number of consumed bytes.
    fn enter_marker(&mut self, marker: Marker, sink: &mut ParseEventSink<'_>) -> usize {
        match marker.kind {
            MarkerKind::ReasoningStart { end_texts, allows_calls } => {
                emit(marker.text, sink, ParseEvent::Markup);
                self.mode = ParseMode::Reasoning(ReasoningState::new(
                    &self.markers,
                    end_texts,
                    allows_calls,
                ));
            }
            MarkerKind::StrayReasoningEnd | MarkerKind::Markup => {
                self.saw_reasoning |= marker.kind == MarkerKind::StrayReasoningEnd;
                emit(marker.text, sink, ParseEvent::Markup);
                // The context of the marker also applies to the text after the marker.
                return marker.text.len();
            }
            MarkerKind::CallSection { end_text } => {
                emit(marker.text, sink, ParseEvent::Markup);
                self.mode = ParseMode::CallSection(CallSection::new(&self.markers, end_text));
            }
            MarkerKind::Call(lexer_kind) => {
                let read = if lexer_kind.includes_marker() { "" } else { marker.text };
                self.mode =
                    ParseMode::OpenCall(Box::new(OpenCall::new(read, lexer_kind, ParseMode::Text)));
                return read.len();
            }
            MarkerKind::HarmonyHeader => {
                self.mode =
                    ParseMode::HarmonyHeader(harmony::HarmonyHeader::from_marker(marker.text));
            }
        }
        self.context.reset();
        marker.text.len()
    }
}
