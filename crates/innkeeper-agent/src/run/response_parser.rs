//! Parses a response once, while it arrives: for the display and for the conversation.
//!
//! All texts of a response are one text for the parser, whether they are streamed or not, so that
//! the displayed text and the text in the conversation agree. Beside a native call, a call in the
//! text is text: models repeat native calls in their text, and a call must not run twice.

use std::ops::Range;

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{
    Completeness, Format, ParserOptions, RawArguments, RejectedCall, ResolvedCall, ToolCallParser,
    resolve_call,
};

use super::rejected_call::RejectedTextCall;
use super::{CallOrigin, RunConfig};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
use crate::provider::{FinishReason, Response, StreamChunk};
use crate::safety::ToolBlocklist;

/// An event of a response in progress, for the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseEvent<'t> {
    /// Text for the user.
    Text(&'t str),
    /// Reasoning text.
    Reasoning(&'t str),
    /// The model has started to write a call of this tool.
    ToolCallDetected {
        /// The name of the tool.
        tool: &'t str,
    },
}

/// The receiver of events.
pub type ResponseEventSink<'s> = dyn FnMut(ResponseEvent<'_>) + 's;

/// The message, calls and problems of a response.
#[derive(Debug, Default)]
pub(super) struct ParsedResponse {
    /// The message for the conversation; calls in the text are call parts.
    pub(super) message: AssistantMessage,
    /// The calls of the response in their order, resolved or rejected.
    pub(super) calls: Vec<ParsedCall>,
    /// Invalid calls in the text.
    pub(super) problems: Vec<FailedAttempt>,
    /// The same calls, as the result of the run names them.
    pub(super) rejected: Vec<RejectedTextCall>,
}

/// A call of a response.
#[derive(Debug)]
pub(super) struct ParsedCall {
    /// The resolved call, or the rejection.
    pub(super) call: Result<ResolvedCall, RejectedCall>,
    /// The origin of the call.
    pub(super) origin: CallOrigin,
}

/// The parser of one response.
#[derive(Debug)]
pub(super) struct ResponseParser {
    /// `None` if there are no tools, so that no text can be a call.
    parser: Option<ToolCallParser>,
    parsed: ParsedText,
    /// Whether the model got tools for native calls. Then the parser does not display text after a
    /// call in the text until the response shows whether the call is text.
    allows_native_calls: bool,
    has_native_call: bool,
    has_text: bool,
    is_finished: bool,
    /// The number of displayed spans.
    displayed: usize,
}

/// The text of a response with its classified spans.
#[derive(Debug)]
struct ParsedText {
    text: String,
    spans: Vec<TextSpan>,
    problems: Vec<FailedAttempt>,
    rejected: Vec<RejectedTextCall>,
    blocklist: ToolBlocklist,
}

#[derive(Debug)]
struct TextSpan {
    range: Range<usize>,
    kind: SpanKind,
}

#[derive(Debug)]
enum SpanKind {
    Text,
    Reasoning,
    Markup,
    CallStart(String),
    Call(ResolvedCall),
}

impl ParsedText {
    fn add(&mut self, text: &str, kind: SpanKind) {
        let start = self.text.len();
        self.text.push_str(text);
        self.spans.push(TextSpan { range: start..self.text.len(), kind });
    }

    fn add_event(&mut self, event: &ParseEvent<'_>) {
        let kind = match event {
            ParseEvent::Text(_) => SpanKind::Text,
            ParseEvent::Reasoning(_) => SpanKind::Reasoning,
            ParseEvent::Markup(_) => SpanKind::Markup,
            ParseEvent::CallStart { name, .. } => SpanKind::CallStart((*name).to_owned()),
            ParseEvent::Arguments { .. } => return,
            ParseEvent::Call { call, .. } => SpanKind::Call((*call).clone()),
            ParseEvent::Rejected { rejected, .. } => {
                let problem = self.blocklist.rejection_message(rejected);
                self.rejected.push(RejectedTextCall::unreadable(&*rejected.name, &*problem));
                self.problems.push(FailedAttempt::new(problem));
                SpanKind::Text
            }
            ParseEvent::Incomplete { index, .. } => {
                let tool = if index.is_some() { self.last_started_tool() } else { "" };
                let rejected = RejectedTextCall::unreadable(tool, "the tool call is incomplete");
                self.rejected.push(rejected);
                self.problems.push(FailedAttempt::new("the tool call is incomplete"));
                SpanKind::Text
            }
        };
        self.add(event.text(), kind);
    }

    /// Returns the tool of the call that started last.
    fn last_started_tool(&self) -> &str {
        let tool = self.spans.iter().rev().find_map(|span| match &span.kind {
            SpanKind::CallStart(tool) => Some(tool.as_str()),
            SpanKind::Text | SpanKind::Reasoning | SpanKind::Markup | SpanKind::Call(_) => None,
        });
        tool.unwrap_or_default()
    }
}

impl ResponseParser {
    pub(super) fn new(config: &RunConfig, constrained: bool, allows_native_calls: bool) -> Self {
        // Constrained output is plain JSON, whatever the model's own call format is.
        let format = if constrained { Format::Detect } else { config.format };
        let options = ParserOptions { format, ..ParserOptions::default() };
        let tools = &config.tools.known;
        Self {
            parser: (!tools.is_empty()).then(|| ToolCallParser::new(tools.clone(), &options)),
            parsed: ParsedText {
                text: String::new(),
                spans: Vec::new(),
                problems: Vec::new(),
                rejected: Vec::new(),
                blocklist: config.blocklist.clone(),
            },
            allows_native_calls,
            has_native_call: false,
            has_text: false,
            is_finished: false,
            displayed: 0,
        }
    }

    /// Parses the next chunk of a streamed response.
    pub(super) fn push(&mut self, chunk: &StreamChunk, sink: &mut ResponseEventSink<'_>) {
        match chunk {
            StreamChunk::Text(text) => {
                self.push_text(text);
                self.display(sink);
            }
            StreamChunk::Reasoning(text) => sink(ResponseEvent::Reasoning(text)),
            StreamChunk::ToolCallStart { name, .. } => {
                self.has_native_call = true;
                self.display(sink);
                sink(ResponseEvent::ToolCallDetected { tool: name });
            }
            StreamChunk::ArgumentsDelta { .. } => {}
            StreamChunk::Done(response) => self.finish(response, sink),
        }
    }

    fn push_text(&mut self, text: &str) {
        self.has_text = true;
        let Self { parser, parsed, .. } = self;
        match parser {
            Some(parser) => parser.push(text, &mut |event| parsed.add_event(&event)),
            None => parsed.add(text, SpanKind::Text),
        }
    }

    /// Ends the parse with the complete response, whose text is parsed here if it was not streamed.
    fn finish(&mut self, response: &Response, sink: &mut ResponseEventSink<'_>) {
        if self.is_finished {
            return;
        }
        if !self.has_text {
            self.push_text(&response.message.visible_text());
        }
        let text_end =
            if is_truncated(&response.finish_reason) { TextEnd::Length } else { TextEnd::Stop };
        let Self { parser, parsed, .. } = self;
        if let Some(parser) = parser {
            parser.finish(text_end, &mut |event| parsed.add_event(&event));
        }
        self.is_finished = true;
        self.has_native_call |= has_native_call(response);
        self.display(sink);
    }

    /// Displays the spans whose kind is final.
    fn display(&mut self, sink: &mut ResponseEventSink<'_>) {
        while let Some(TextSpan { range, kind }) = self.parsed.spans.get(self.displayed) {
            let text = &self.parsed.text[range.clone()];
            match kind {
                SpanKind::Call(_) if self.has_native_call => display_text(text, sink),
                SpanKind::Call(_) if self.allows_native_calls && !self.is_finished => return,
                SpanKind::Text => display_text(text, sink),
                SpanKind::Reasoning => sink(ResponseEvent::Reasoning(text)),
                SpanKind::CallStart(tool) if !self.has_native_call => {
                    sink(ResponseEvent::ToolCallDetected { tool });
                }
                SpanKind::Call(_) | SpanKind::CallStart(_) | SpanKind::Markup => {}
            }
            self.displayed += 1;
        }
    }

    /// Returns the text that was displayed so far.
    pub(super) fn displayed_text(&self) -> String {
        let displayed = &self.parsed.spans[..self.displayed];
        let texts = displayed.iter().filter(|span| match span.kind {
            SpanKind::Text => true,
            SpanKind::Call(_) => self.has_native_call,
            SpanKind::Reasoning | SpanKind::Markup | SpanKind::CallStart(_) => false,
        });
        texts.map(|span| &self.parsed.text[span.range.clone()]).collect()
    }

    /// Returns the parsed response.
    pub(super) fn into_parsed(
        mut self,
        config: &RunConfig,
        response: &Response,
        constrained: bool,
    ) -> ParsedResponse {
        self.finish(response, &mut |_| {});
        if self.parsed.text != response.message.visible_text() {
            // The chunks do not match the response, for example after a failed stream.
            self = Self::new(config, constrained, self.allows_native_calls);
            self.finish(response, &mut |_| {});
        }
        let builder = ResponseBuilder {
            config,
            constrained,
            native_calls: response.message.calls().count(),
            truncated: is_truncated(&response.finish_reason),
            response: ParsedResponse::default(),
        };
        builder.build(self.parsed, response)
    }
}

/// Returns the text of a response without the reasoning that a model wrote into its text.
pub(super) fn text_without_reasoning(response: &Response) -> String {
    let no_tools = std::sync::Arc::new(innkeeper_toolcall::Tools::default());
    let mut parser = ToolCallParser::new(no_tools, &ParserOptions::default());
    let (mut text, mut has_reasoning) = (String::new(), false);
    let mut add = |event: ParseEvent<'_>| match event {
        ParseEvent::Reasoning(_) => has_reasoning = true,
        ParseEvent::Markup(_) | ParseEvent::Arguments { .. } => {}
        event => text.push_str(event.text()),
    };
    let visible_text = response.message.visible_text();
    parser.push(&visible_text, &mut add);
    parser.finish(TextEnd::Stop, &mut add);
    // Other markup is part of a text without reasoning.
    if has_reasoning { text } else { visible_text }
}

fn display_text(text: &str, sink: &mut ResponseEventSink<'_>) {
    if !text.is_empty() {
        sink(ResponseEvent::Text(text));
    }
}

fn has_native_call(response: &Response) -> bool {
    response.message.calls().next().is_some()
}

/// Returns whether the end of the response may be missing.
fn is_truncated(reason: &FinishReason) -> bool {
    match reason {
        FinishReason::Length
        | FinishReason::ContextFull
        | FinishReason::Refusal
        | FinishReason::MalformedToolCall
        | FinishReason::Other(_) => true,
        FinishReason::Stop | FinishReason::ToolCalls | FinishReason::Paused => false,
    }
}

/// Assembles the message and the calls from the parts of a response and its parsed text.
struct ResponseBuilder<'c> {
    config: &'c RunConfig,
    constrained: bool,
    native_calls: usize,
    truncated: bool,
    response: ParsedResponse,
}

impl ResponseBuilder<'_> {
    fn build(mut self, parsed: ParsedText, response: &Response) -> ParsedResponse {
        let mut end = 0;
        for part in &response.message.parts {
            match &part.content {
                PartContent::ToolCall(call) => self.add_native_call(part, call),
                PartContent::Text(text) => {
                    let start = end;
                    end += text.len();
                    self.add_text_part(part, start..end, &parsed);
                }
                PartContent::Reasoning(_) | PartContent::Other => {
                    self.response.message.parts.push(part.clone());
                }
            }
        }
        if self.native_calls == 0 {
            self.response.problems = parsed.problems;
            self.response.rejected = parsed.rejected;
        }
        self.response
    }

    fn add_native_call(&mut self, part: &ContentPart, call: &ToolCall) {
        // Only the last call can be truncated.
        let last = self.response.calls.len() + 1 == self.native_calls;
        let completeness =
            if self.truncated && last { Completeness::Truncated } else { Completeness::Complete };
        let arguments = RawArguments::Text(&call.arguments);
        let call = resolve_call(&self.config.tools.known, &call.name, arguments, completeness);
        let origin = match &call {
            Ok(call) if !call.repairs.is_empty() => CallOrigin::Repaired,
            Ok(_) | Err(_) => CallOrigin::Native,
        };
        self.response.calls.push(ParsedCall { call, origin });
        self.response.message.parts.push(part.clone());
    }

    /// Adds a text part, which has this range of the text. The original part remains if the part
    /// is only text, or if its provider's block must return unchanged.
    fn add_text_part(&mut self, part: &ContentPart, range: Range<usize>, parsed: &ParsedText) {
        let mut parts = PartMerger::default();
        let (mut only_text, mut has_call) = (true, false);
        for span in parsed.spans.iter().filter(|span| is_in(&span.range, &range)) {
            let clip = span.range.start.max(range.start)..span.range.end.min(range.end);
            let text = &parsed.text[clip];
            match &span.kind {
                SpanKind::Text => parts.push(PartContent::Text, text),
                SpanKind::Call(_) if self.native_calls > 0 => parts.push(PartContent::Text, text),
                // The call belongs to the part in which the call starts.
                SpanKind::Call(call) => {
                    has_call = true;
                    if span.range.start >= range.start {
                        parts.0.push(call_part(call));
                        self.add_text_call(call);
                    }
                }
                SpanKind::Reasoning => {
                    parts.push(PartContent::Reasoning, text);
                    only_text = false;
                }
                SpanKind::Markup => only_text = false,
                SpanKind::CallStart(_) => {}
            }
        }
        if !has_call && (only_text || part.provider_block.is_some() || parts.0.is_empty()) {
            self.response.message.parts.push(part.clone());
        } else {
            self.response.message.parts.extend(parts.0);
        }
    }

    fn add_text_call(&mut self, call: &ResolvedCall) {
        let origin = match (self.constrained, call.repairs.is_empty()) {
            (true, _) => CallOrigin::Constrained,
            (false, true) => CallOrigin::Recovered,
            (false, false) => CallOrigin::Repaired,
        };
        self.response.calls.push(ParsedCall { call: Ok(call.clone()), origin });
    }
}

fn call_part(call: &ResolvedCall) -> ContentPart {
    let (id, name, arguments) = (String::new(), call.name.clone(), call.arguments.to_string());
    ContentPart::new(PartContent::ToolCall(ToolCall { id, name, arguments }))
}

/// Returns whether a span overlaps a part. An empty span, such as a further call of a list,
/// belongs to the part of the text before the span.
fn is_in(span: &Range<usize>, part: &Range<usize>) -> bool {
    if part.is_empty() {
        return false;
    }
    if span.is_empty() {
        let before = span.start.saturating_sub(1);
        return part.contains(&before);
    }
    span.start < part.end && span.end > part.start
}

/// Merges consecutive text of one kind into one part.
#[derive(Default)]
struct PartMerger(Vec<ContentPart>);

impl PartMerger {
    fn push(&mut self, kind: fn(String) -> PartContent, chunk: &str) {
        if chunk.is_empty() {
            return;
        }
        match (self.0.last_mut().map(|part| &mut part.content), kind(String::new())) {
            (Some(PartContent::Text(text)), PartContent::Text(_))
            | (Some(PartContent::Reasoning(text)), PartContent::Reasoning(_)) => {
                text.push_str(chunk);
            }
            _ => self.0.push(ContentPart::new(kind(chunk.to_owned()))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_span_is_in_the_parts_that_have_bytes_of_it_and_an_empty_span_in_the_part_before_it() {
        let is_in = |span: Range<usize>| is_in(&span, &(3..6));
        assert!(is_in(2..4) && is_in(3..6) && is_in(5..9) && is_in(0..9));
        assert!(!is_in(0..3) && !is_in(6..9));
        assert!(is_in(4..4) && is_in(6..6));
        assert!(!is_in(3..3) && !is_in(7..7) && !is_in(0..0));
        assert!(!super::is_in(&(0..9), &(4..4)));
    }
}
