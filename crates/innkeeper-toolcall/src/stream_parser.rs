//! Streaming parser that separates visible text from tool calls.
//!
//! The parser processes each byte once, except for a bounded look-ahead and for text that looks
//! like a call but is not a call. Text is emitted at once, except for an end that may be the start
//! of a marker. The parser stores only that end, bounded by the longest marker and look-ahead, and
//! the open call, bounded by [`ParserLimits`].

mod bytes;
mod context;
mod encodings;
mod harmony;
mod lead_ins;
mod markers;
mod occurrence;
mod open_call;
mod options;
mod prompt_end;
mod raw_calls;
mod reasoning;
mod text;
mod text_markers;

use std::sync::Arc;

use crate::Tools;
use crate::event::{ParseEvent, TextEnd};
use crate::lexer::OpaqueJson;
use crate::sanitize::is_blank;
use context::TextContext;
use harmony::HarmonyHeader;
use open_call::OpenCall;
use raw_calls::RawCalls;
use reasoning::{CallSection, HeldCall, ReasoningState};
use text_markers::TextMarkers;

pub use occurrence::CallSearch;
pub use options::{ParserLimits, ParserOptions};

/// The state of the parser, for debugging.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParserState {
    /// In text for the user.
    Narrative,
    /// In text that may become a call, also in reasoning. The parser holds the text.
    MaybeToolStart,
    /// In a call of an offered tool.
    InToolCall,
    /// After a call, before any other text.
    AfterToolCall,
    /// In the model's reasoning.
    Reasoning,
}

/// The receiver of events.
pub type ParseEventSink<'s> = dyn FnMut(ParseEvent<'_>) + 's;

#[derive(Debug)]
enum ParseMode {
    Text,
    Reasoning(ReasoningState),
    /// A complete call in reasoning. The call counts only if the reasoning does not continue after
    /// the call.
    HeldCall(Box<HeldCall>),
    CallSection(CallSection),
    OpenCall(Box<OpenCall>),
    /// JSON data that is not a call.
    OpaqueJson(OpaqueJson),
    HarmonyHeader(HarmonyHeader),
    HarmonyBody(harmony::HarmonyBody),
}

/// A streaming parser for tool calls; see the [module](self).
///
/// # Examples
///
/// ```
/// use innkeeper_toolcall::{ParseEvent, ParserOptions, TextEnd, Tool, ToolCallParser, Tools};
///
/// let schema = serde_json::json!({"properties": {"path": {"type": "string"}}});
/// let tools = Tools::from_iter([Tool::new("read", "Reads a file.", schema)]);
/// let mut parser = ToolCallParser::new(tools.into(), &ParserOptions::default());
/// let mut called = Vec::new();
/// let mut sink = |event: ParseEvent<'_>| match event {
///     ParseEvent::Call { call, .. } => called.push(format!("{} {}", call.name, call.arguments)),
///     other => print!("{}", other.text()),
/// };
/// parser.push(r#"I read it. <tool_call>{"name": "read", "argum"#, &mut sink);
/// parser.push(r#"ents": {"path": "a.txt"}}</tool_call>"#, &mut sink);
/// parser.finish(TextEnd::Stop, &mut sink);
/// assert_eq!(called, [r#"read {"path":"a.txt"}"#]);
/// ```
#[derive(Debug)]
pub struct ToolCallParser {
    tools: Arc<Tools>,
    markers: &'static TextMarkers,
    limits: ParserLimits,
    mode: ParseMode,
    context: TextContext,
    pending: PendingInput,
    emitted: Emitted,
    raw_calls: RawCalls,
}

/// Input that needs more text for a decision.
#[derive(Debug, Default)]
struct PendingInput {
    /// The end of the last chunk.
    held: String,
    /// The first bytes of an incomplete character, three at most.
    partial_char: Vec<u8>,
}

/// What the parser has found so far.
#[derive(Debug, Default)]
struct Emitted {
    /// The number of calls that have started.
    call_count: usize,
    after_call: bool,
    has_reasoning: bool,
    /// Whether text for the user was emitted.
    has_text: bool,
}

impl Emitted {
    /// Counts a call and returns its index.
    fn start_call(&mut self) -> usize {
        self.call_count += 1;
        self.call_count - 1
    }
}

/// Maximum number of bytes of the next chunk that are joined to the held text: more than a marker
/// and its look-ahead.
const MAX_JOINED_BYTES: usize = 1024;

impl ToolCallParser {
    /// Creates a parser for one response of a model with these tools. `max_undecided_chars` is at
    /// least 1, and `max_call_bytes` at least four times `max_undecided_chars`.
    pub fn new(tools: Arc<Tools>, options: &ParserOptions) -> Self {
        let markers = TextMarkers::for_format(options.format);
        let mode = ParseMode::after_prompt(&markers.all, options);
        let ParserLimits { max_undecided_chars, max_call_bytes } = options.limits;
        let max_undecided_chars = max_undecided_chars.clamp(1, usize::MAX / 4);
        Self {
            tools,
            markers,
            limits: ParserLimits {
                max_call_bytes: max_call_bytes.max(4 * max_undecided_chars),
                max_undecided_chars,
            },
            mode,
            context: TextContext::default(),
            pending: PendingInput::default(),
            emitted: Emitted::default(),
            raw_calls: RawCalls::default(),
        }
    }

    /// Parses the next chunk of text and emits events to `sink`. The chunks may have any length.
    pub fn push(&mut self, chunk: &str, sink: &mut ParseEventSink<'_>) {
        let mut rest = chunk;
        while !self.pending.held.is_empty() && !rest.is_empty() {
            // The held text never needs more bytes than this for a decision.
            let split_at = floor_char_boundary(rest, MAX_JOINED_BYTES);
            let mut joined = std::mem::take(&mut self.pending.held);
            joined.push_str(&rest[..split_at]);
            rest = &rest[split_at..];
            let read = self.parse(&joined, None, sink);
            let remaining = joined.len() - read;
            if remaining <= split_at {
                // The rest is entirely part of this chunk: continue without a copy.
                rest = &chunk[chunk.len() - rest.len() - remaining..];
                joined.clear();
                self.pending.held = joined;
                break;
            }
            joined.drain(..read);
            self.pending.held = joined;
        }
        if rest.is_empty() {
            return;
        }
        let read = self.parse(rest, None, sink);
        if read < rest.len() {
            self.pending.held.push_str(&rest[read..]);
        }
    }

    /// Ends the text and emits the remaining events. Held text becomes text, and an open call
    /// becomes `Incomplete`.
    pub fn finish(&mut self, text_end: TextEnd, sink: &mut ParseEventSink<'_>) {
        self.flush_partial_char(sink);
        let held = std::mem::take(&mut self.pending.held);
        let read = self.parse(&held, Some(text_end), sink);
        self.flush(&held[read..], text_end, sink);
        if text_end == TextEnd::Length && !self.emitted.after_call {
            self.raw_calls.doubt_last(sink);
        }
    }

    /// Parses a complete text.
    pub fn parse_all(mut self, text: &str, text_end: TextEnd, sink: &mut ParseEventSink<'_>) {
        self.push(text, sink);
        self.finish(text_end, sink);
    }

    /// Returns the state after the last chunk.
    pub fn state(&self) -> ParserState {
        match &self.mode {
            ParseMode::OpenCall(open) if open.is_decided() => ParserState::InToolCall,
            ParseMode::OpenCall(_) | ParseMode::HeldCall(_) => ParserState::MaybeToolStart,
            ParseMode::Text
            | ParseMode::Reasoning(_)
            | ParseMode::CallSection(_)
            | ParseMode::OpaqueJson(_)
            | ParseMode::HarmonyHeader(_)
            | ParseMode::HarmonyBody(_)
                if !self.pending.held.is_empty() =>
            {
                ParserState::MaybeToolStart
            }
            ParseMode::Text if self.emitted.after_call => ParserState::AfterToolCall,
            ParseMode::Text | ParseMode::OpaqueJson(_) => ParserState::Narrative,
            ParseMode::Reasoning(_) => ParserState::Reasoning,
            ParseMode::CallSection(_) => ParserState::AfterToolCall,
            ParseMode::HarmonyHeader(_) => ParserState::MaybeToolStart,
            ParseMode::HarmonyBody(body) if body.is_reasoning() => ParserState::Reasoning,
            ParseMode::HarmonyBody(_) => ParserState::Narrative,
        }
    }

    /// Returns the number of brackets that the open or possible call has opened and not closed,
    /// after the last chunk. 0 outside of a call, and in a call whose syntax has no brackets.
    pub fn call_depth(&self) -> usize {
        match &self.mode {
            ParseMode::OpenCall(open) => open.depth(),
            ParseMode::Text => usize::from(self.pending.held.contains(['{', '['])),
            ParseMode::Reasoning(_)
            | ParseMode::HeldCall(_)
            | ParseMode::CallSection(_)
            | ParseMode::OpaqueJson(_)
            | ParseMode::HarmonyHeader(_)
            | ParseMode::HarmonyBody(_) => 0,
        }
    }

    /// Parses until the rest is too short for a decision. Returns the number of consumed bytes.
    fn parse(
        &mut self,
        input: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> usize {
        let mut at = 0;
        let mut asked_at_end = false;
        while at < input.len() || text_end.is_some() && !asked_at_end {
            let rest = &input[at..];
            asked_at_end = rest.is_empty();
            let progress = if matches!(self.mode, ParseMode::Text) {
                self.parse_text(rest, text_end, sink)
            } else {
                self.parse_section(rest, text_end, sink)
            };
            at += progress.consumed;
            if !progress.can_continue {
                break;
            }
        }
        at
    }

    /// Parses a part of a section that is not text for the user. A function of its own, because
    /// most chunks are text and do not need its stack frame.
    #[inline(never)]
    fn parse_section(
        &mut self,
        rest: &str,
        text_end: Option<TextEnd>,
        sink: &mut ParseEventSink<'_>,
    ) -> ParseProgress {
        match &mut self.mode {
            ParseMode::Text => self.parse_text(rest, text_end, sink),
            ParseMode::Reasoning(_) => self.parse_reasoning(rest, text_end, sink),
            ParseMode::HeldCall(_) => self.parse_held_call(rest, text_end, sink),
            ParseMode::CallSection(_) => self.parse_call_section(rest, text_end, sink),
            ParseMode::OpenCall(_) => self.parse_open_call(rest, text_end, sink),
            ParseMode::OpaqueJson(_) => self.parse_opaque_json(rest, sink),
            ParseMode::HarmonyHeader(_) => self.parse_harmony_header(rest, text_end, sink),
            ParseMode::HarmonyBody(_) => self.parse_harmony_body(rest, text_end, sink),
        }
    }

    /// Emits the text that was held for a decision.
    fn flush(&mut self, rest: &str, text_end: TextEnd, sink: &mut ParseEventSink<'_>) {
        match std::mem::replace(&mut self.mode, ParseMode::Text) {
            ParseMode::Text | ParseMode::OpaqueJson(_) => self.emit_visible_text(rest, sink),
            ParseMode::Reasoning(_) => emit(rest, sink, ParseEvent::Reasoning),
            ParseMode::HeldCall(pending)
                if matches!(text_end, TextEnd::Stop | TextEnd::Unknown) =>
            {
                self.commit_held_call(*pending, sink);
                emit(rest, sink, ParseEvent::Markup);
            }
            ParseMode::HeldCall(pending) => {
                // The reasoning might have continued.
                let HeldCall { open_call, trailing_text } = *pending;
                self.finish_open_call(open_call, &(trailing_text + rest), text_end, sink);
            }
            ParseMode::CallSection(section) => {
                section.finish(rest, &self.raw_calls, sink);
            }
            ParseMode::OpenCall(open) => self.finish_open_call(*open, rest, text_end, sink),
            ParseMode::HarmonyHeader(header) => header.finish(rest, text_end, sink),
            ParseMode::HarmonyBody(body) => body.emit(rest, sink),
        }
    }

    /// Emits text for the user. A function of its own, because it would be copied to each of its
    /// callers.
    #[inline(never)]
    fn emit_visible_text(&mut self, text: &str, sink: &mut ParseEventSink<'_>) {
        if text.is_empty() {
            return;
        }
        self.context.push(text);
        if (self.emitted.after_call || !self.emitted.has_text) && !is_blank(text) {
            self.emitted.after_call = false;
            self.emitted.has_text = true;
        }
        sink(ParseEvent::Text(text));
    }
}

/// The result of one parse step.
#[derive(Debug, Clone, Copy)]
struct ParseProgress {
    consumed: usize,
    /// Whether parsing can continue at once. Otherwise the rest is too short for a decision.
    can_continue: bool,
}

impl ParseProgress {
    const fn continue_after(consumed: usize) -> Self {
        Self { consumed, can_continue: true }
    }

    const fn wait_after(consumed: usize) -> Self {
        Self { consumed, can_continue: false }
    }
}

/// Emits an event for `text`, unless `text` is empty.
fn emit<'t>(
    text: &'t str,
    sink: &mut ParseEventSink<'_>,
    event: impl FnOnce(&'t str) -> ParseEvent<'t>,
) {
    if !text.is_empty() {
        sink(event(text));
    }
}

/// Returns the greatest character boundary at or before `at`.
fn floor_char_boundary(text: &str, at: usize) -> usize {
    if at >= text.len() {
        return text.len();
    }
    (0..=at).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0)
}
