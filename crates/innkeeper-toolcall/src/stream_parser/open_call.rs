//! Parser for an open call.

use super::reasoning::HeldCall;
use super::{ParseEventSink, ParseMode, ParseProgress, ToolCallParser, emit, floor_char_boundary};
use crate::call::{RejectReason, RejectedCall, resolve_call};
use crate::event::{IncompleteReason, ParseEvent, TextEnd};
use crate::format::LexerKind;
use crate::lexer::fence::FENCE;
use crate::lexer::{LexStatus, LexUpdate, Lexer, OpaqueJson, new_lexer};
use crate::parse::Completeness;
use crate::resolve::resolve;

/// Maximum number of bytes per step in an undecided call: more than any look-ahead.
const MAX_UNDECIDED_WINDOW_BYTES: usize = 2048;

/// A call that has not ended, with its complete text.
pub(super) struct OpenCall {
    lexer: Box<dyn Lexer>,
    lexer_kind: Option<LexerKind>,
    raw_text: String,
    marker_len: usize,
    /// The parse mode after the call.
    return_mode: ParseMode,
    /// Whether other text stands before the call on its line.
    inline: bool,
    call: KnownCall,
}

/// What is known about the call so far.
#[derive(Default)]
struct KnownCall {
    /// The index of the call, if `CallStart` was emitted.
    index: Option<usize>,
    name: Option<String>,
    /// Whether the call has named an offered tool.
    is_decided: bool,
    /// Whether the call exceeded the limit. Its rest is text.
    is_oversized: bool,
}

impl KnownCall {
    fn reject(&self, reason: RejectReason) -> RejectedCall {
        let name = self.name.clone().unwrap_or_default();
        RejectedCall { name, reason, suggestions: Vec::new() }
    }
}

impl std::fmt::Debug for OpenCall {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenCall")
            .field("lexer_kind", &self.lexer_kind)
            .field("raw_text", &self.raw_text)
            .finish_non_exhaustive()
    }
}

impl OpenCall {
    pub(super) fn new(marker: &str, lexer_kind: LexerKind, return_mode: ParseMode) -> Self {
        Self::with_lexer(new_lexer(lexer_kind), Some(lexer_kind), marker, return_mode)
    }

    /// Creates a call with an existing lexer. `prefix` is the text read so far.
    pub(super) fn with_lexer(
        lexer: Box<dyn Lexer>,
        lexer_kind: Option<LexerKind>,
        prefix: &str,
        return_mode: ParseMode,
    ) -> Self {
        Self {
            lexer,
            lexer_kind,
            raw_text: prefix.to_owned(),
            marker_len: prefix.len(),
            return_mode,
            inline: false,
            call: KnownCall::default(),
        }
    }

    pub(super) fn set_inline(&mut self, inline: bool) {
        self.inline = inline;
    }

    pub(super) fn is_decided(&self) -> bool {
        self.call.is_decided
    }

    pub(super) fn depth(&self) -> usize {
        self.lexer.depth()
    }

    pub(super) fn raw_text(&self) -> &str {
        &self.raw_text
    }

    pub(super) fn into_return_mode(self) -> ParseMode {
        self.return_mode
    }

    /// Whether prose can look like the start of a call in this syntax.
    fn is_ambiguous(&self) -> bool {
        matches!(
            self.lexer_kind,
            Some(
                LexerKind::BareJson
                    | LexerKind::Fence
                    | LexerKind::ToolCode
                    | LexerKind::Pythonic
                    | LexerKind::React
            )
        )
    }

    fn is_in_reasoning(&self) -> bool {
        matches!(self.return_mode, ParseMode::Reasoning(_))
    }

    fn body(&self) -> &str {
        self.raw_text.get(self.marker_len..).unwrap_or_default()
    }

    /// Returns the end of the part of `input` that may be stored before the call has named an
    /// offered tool, if the input is longer.
    fn undecided_end(&self, input: &str, limit: usize) -> Option<usize> {
        let remaining = limit.saturating_sub(self.raw_text.chars().count());
        input.char_indices().nth(remaining).map(|(at, _)| at)
    }
}

impl ToolCallParser {
    pub(super) fn parse_open_call(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        let ParseMode::OpenCall(mut open) = std::mem::replace(&mut self.mode, ParseMode::Text)
        else {
            return ParseProgress::continue_after(0);
        };
        let mut update = LexUpdate::default();
        // An undecided call is read in small steps, because most of its text would be read again.
        let undecided = open.is_ambiguous() && !open.call.is_decided;
        let max_window = if undecided {
            MAX_UNDECIDED_WINDOW_BYTES.max(4 * self.limits.max_undecided_chars)
        } else {
            input.len()
        };
        let window = floor_char_boundary(input, max_window);
        let (input, text_end, clipped) =
            (&input[..window], text_end.filter(|_| window == input.len()), window < input.len());
        let status = open.lexer.lex(input, text_end, &self.tools, &mut update);
        let read = match status {
            LexStatus::NeedMore { held } => input.len() - held,
            LexStatus::Done { used } | LexStatus::NotACall { used } => used,
        };
        if undecided {
            let limit = open.undecided_end(input, self.limits.max_undecided_chars);
            let is_known =
                update.name.as_ref().is_some_and(|name| resolve(&self.tools, name).is_some());
            let until = if is_known { update.name_at } else { read };
            if let Some(split_at) = limit.filter(|split_at| *split_at < until) {
                let text = open.raw_text.clone() + &input[..split_at];
                let data =
                    text.starts_with(['{', '[']).then(|| OpaqueJson::from_prefix(&text)).flatten();
                let progress = self.abandon_open_call(*open, &input[..split_at], split_at, sink);
                if let Some(data) = data {
                    self.mode = ParseMode::OpaqueJson(data);
                }
                return progress;
            }
        }
        let remaining = self.limits.max_call_bytes.saturating_sub(open.raw_text.len());
        let accepted = if read > remaining { floor_char_boundary(input, remaining) } else { read };
        if update.name_at <= accepted {
            self.set_tool_name(&mut open, &update, sink);
        }
        if open.call.is_oversized {
            self.emit_as_text(&open, &input[..read], sink);
        } else {
            if let (Some(index), Some(range)) = (open.call.index, update.fragment) {
                let fragment = range.start..range.end.min(accepted);
                emit(input.get(fragment).unwrap_or_default(), sink, |fragment| {
                    ParseEvent::Arguments { index, fragment }
                });
            }
            open.raw_text.push_str(&input[..accepted]);
            if accepted < read {
                self.reject_oversized(&mut open, sink);
                self.emit_as_text(&open, &input[accepted..read], sink);
            }
        }
        match status {
            LexStatus::NeedMore { .. } => {
                self.mode = ParseMode::OpenCall(open);
                if clipped {
                    ParseProgress::continue_after(read)
                } else {
                    ParseProgress::wait_after(read)
                }
            }
            LexStatus::Done { .. } => {
                self.complete_open_call(*open, sink);
                ParseProgress::continue_after(read)
            }
            LexStatus::NotACall { .. } => {
                let data = open.lexer.take_opaque_json();
                let progress = self.abandon_open_call(*open, "", read, sink);
                if let Some(data) = data {
                    self.mode = ParseMode::OpaqueJson(data);
                }
                progress
            }
        }
    }

    /// Records the tool name and emits `CallStart` for an offered tool.
    fn set_tool_name(
        &mut self,
        open: &mut OpenCall,
        update: &LexUpdate,
        sink: &mut ParseEventSink<'_>,
    ) {
        let Some(raw_name) = &update.name else { return };
        let tools = std::sync::Arc::clone(&self.tools);
        let Some(matched) = resolve(&tools, raw_name) else {
            open.call.name = Some(raw_name.clone());
            return;
        };
        open.call.is_decided = true;
        open.call.name = Some(matched.tool.name.clone());
        if !update.in_list
            && !open.is_in_reasoning()
            && !open.call.is_oversized
            && open.call.index.is_none()
        {
            let index = self.emitted.start_call();
            open.call.index = Some(index);
            sink(ParseEvent::CallStart { index, name: &matched.tool.name });
        }
    }

    /// Emits text that is not a call as reasoning or as text.
    fn emit_as_text(&mut self, open: &OpenCall, text: &str, sink: &mut ParseEventSink<'_>) {
        if open.is_in_reasoning() {
            emit(text, sink, ParseEvent::Reasoning);
        } else {
            self.emit_visible_text(text, sink);
        }
    }

    /// Rejects a call that exceeds the limit.
    fn reject_oversized(&mut self, open: &mut OpenCall, sink: &mut ParseEventSink<'_>) {
        let text = std::mem::take(&mut open.raw_text);
        open.call.is_oversized = true;
        if open.is_in_reasoning() {
            emit(&text, sink, ParseEvent::Reasoning);
            return;
        }
        let limit = self.limits.max_call_bytes;
        let rejected = open.call.reject(RejectReason::TooLong(limit));
        sink(ParseEvent::Rejected { index: open.call.index, rejected: &rejected, text: &text });
        self.context.push(&text);
    }

    /// Ends a call that turned out not to be a call. `more` is its last text; `read` is the number
    /// of consumed bytes.
    fn abandon_open_call(
        &mut self,
        mut open: OpenCall,
        more: &str,
        read: usize,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        open.raw_text.push_str(more);
        // A fenced block that is only partly a call is an example.
        let example = matches!(open.lexer_kind, Some(LexerKind::Fence | LexerKind::ToolCode));
        let intended =
            open.lexer.was_intended() && (open.call.is_decided || !open.is_ambiguous()) && !example;
        let intended =
            intended || open.call.index.is_some() || self.starts_with_special(&open.raw_text);
        let ticks =
            open.raw_text.lines().filter(|line| line.trim_start().starts_with(FENCE)).count();
        if open.call.is_oversized {
        } else if intended && !open.is_in_reasoning() {
            let rejected = open.call.reject(RejectReason::Malformed(
                "the text after the start of the call is malformed".to_owned(),
            ));
            sink(ParseEvent::Rejected {
                index: open.call.index,
                rejected: &rejected,
                text: &open.raw_text,
            });
            self.context.push(&open.raw_text);
        } else {
            let text = std::mem::take(&mut open.raw_text);
            self.emit_as_text(&open, &text, sink);
        }
        if example {
            self.context.open_fence = (ticks % 2 == 1).then_some(FENCE.len());
        }
        self.mode = open.return_mode;
        ParseProgress::continue_after(read)
    }

    /// Whether `text` starts the answer, with a marker that never occurs in prose. Such an answer
    /// is meant as a call, even if no call can be read.
    fn starts_with_special(&self, text: &str) -> bool {
        let mut markers = self.markers.all.iter().filter(|marker| !marker.in_prose);
        !self.emitted.has_text && markers.any(|marker| text.starts_with(marker.text))
    }

    fn complete_open_call(&mut self, open: OpenCall, sink: &mut ParseEventSink<'_>) {
        if open.call.is_oversized {
            self.mode = open.return_mode;
        } else if open.is_in_reasoning() {
            self.mode = ParseMode::HeldCall(Box::new(HeldCall::new(open)));
        } else {
            self.emit_calls(&open, Completeness::Complete, sink);
            self.mode = open.return_mode;
        }
    }

    /// Decodes a complete call and emits its events.
    pub(super) fn emit_calls(
        &mut self,
        open: &OpenCall,
        completeness: Completeness,
        sink: &mut ParseEventSink<'_>,
    ) {
        let decoded = match open.lexer.decode(open.body(), completeness) {
            Ok(calls) if calls.is_empty() && open.is_ambiguous() => {
                return self.emit_visible_text(&open.raw_text, sink);
            }
            Ok(calls) if calls.is_empty() => {
                Err(RejectReason::Malformed("the block of calls contains no call".to_owned()))
            }
            Err(_) if open.is_ambiguous() && !open.call.is_decided => {
                return self.emit_visible_text(&open.raw_text, sink);
            }
            other => other,
        };
        self.context.reset_after_call(open.inline);
        let calls = match decoded {
            Ok(calls) => calls,
            Err(reason) => {
                let rejected = open.call.reject(reason);
                return sink(ParseEvent::Rejected {
                    index: open.call.index,
                    rejected: &rejected,
                    text: &open.raw_text,
                });
            }
        };
        let mut index = open.call.index;
        let mut text = open.raw_text.as_str();
        for raw_call in calls {
            let call = resolve_call(&self.tools, &raw_call.name, raw_call.arguments, completeness);
            match call {
                Ok(mut call) => {
                    call.repairs.splice(0..0, raw_call.repairs);
                    let index = index.take().unwrap_or_else(|| self.emitted.start_call());
                    self.emitted.after_call = true;
                    sink(ParseEvent::Call { index, call: &call, inline: open.inline, text });
                    if let Some(end) = open.lexer.raw_end(open.body()) {
                        self.raw_calls.add(index, end, sink);
                    }
                }
                Err(rejected) => {
                    sink(ParseEvent::Rejected { index: index.take(), rejected: &rejected, text });
                }
            }
            text = "";
        }
    }

    /// Handles the end of the text inside the call.
    pub(super) fn finish_open_call(
        &mut self,
        mut open: OpenCall,
        rest: &str,
        text_end: TextEnd,
        sink: &mut ParseEventSink<'_>,
    ) {
        if open.call.is_oversized {
            return self.emit_as_text(&open, rest, sink);
        }
        let fits = open.raw_text.len() + rest.len() <= self.limits.max_call_bytes;
        if text_end == TextEnd::Stop
            && open.call.is_decided
            && fits
            && open.lexer.lacks_only_closers(rest.len())
        {
            let completeness = Completeness::Stopped;
            let text = open.raw_text.clone() + rest;
            let body = text.get(open.marker_len..).unwrap_or_default();
            let calls = open.lexer.decode(body, completeness);
            if calls.is_ok_and(|calls| {
                calls.into_iter().all(|raw| {
                    resolve_call(&self.tools, &raw.name, raw.arguments, completeness).is_ok()
                })
            }) {
                open.raw_text = text;
                return self.emit_calls(&open, completeness, sink);
            }
        }
        open.raw_text.push_str(rest);
        if open.is_ambiguous() && !open.call.is_decided {
            return self.emit_visible_text(&open.raw_text, sink);
        }
        let reason = match text_end {
            TextEnd::Stop => IncompleteReason::Stopped,
            TextEnd::Length => IncompleteReason::Length,
            TextEnd::Interrupted | TextEnd::Unknown => IncompleteReason::Interrupted,
        };
        sink(ParseEvent::Incomplete { index: open.call.index, reason, text: &open.raw_text });
    }
}
