//! Parses a response once, while it arrives: for the display and for the conversation.
//!
//! All texts of a response are one text for the parser, whether they are streamed or not, so that
//! the displayed text and the text in the conversation agree. What the parser takes for a call is
//! one only if [`TextCallJudge`] agrees, once the whole response is there. Next to a native call, a
//! call in the text is text: models repeat native calls in their text, and a call must not run
//! twice.

mod parsed_text;

use std::ops::Range;

use innkeeper_toolcall::event::{ParseEvent, TextEnd};
use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{
    Completeness, Format, ParserOptions, RawArguments, RejectedCall, ResolvedCall, ToolCallParser,
    resolve_call,
};

use super::quotation::{CallPlace, MarkedParts};
use super::rejected_call::RejectedTextCall;
use super::text_calls::{TextCallJudge, TextCallVerdict};
use super::wrapped_call::is_wrapped_call;
use super::{CallOrigin, RunConfig};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
use crate::provider::{FinishReason, Response, StreamChunk};
use parsed_text::{CallPosition, ParsedText, SpanKind, TextSpan};

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
    /// Invalid calls in the text, if its calls count.
    pub(super) problems: Vec<FailedAttempt>,
    /// The same calls, as the result of the run names them.
    pub(super) rejected: Vec<RejectedTextCall>,
    /// What the text calls of the response are.
    pub(super) verdict: TextCallVerdict,
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
    parser: ToolCallParser,
    parsed: ParsedText,
    has_native_call: bool,
    has_text: bool,
    /// What the calls in the text are, once the response is complete. Until then, nothing behind the
    /// first call is displayed.
    verdict: Option<TextCallVerdict>,
    /// The number of displayed spans.
    displayed: usize,
}

impl ResponseParser {
    pub(super) fn new(config: &RunConfig, constrained: bool) -> Self {
        // Constrained output is plain JSON, whatever the model's own call format is.
        let format = if constrained { Format::Detect } else { config.settings.tool_use.format };
        let options = ParserOptions { format, ..ParserOptions::default() };
        let tools = &config.tools.known;
        Self {
            parser: ToolCallParser::new(tools.clone(), &options),
            parsed: ParsedText {
                text: String::new(),
                spans: Vec::new(),
                reasoning_calls: Vec::new(),
                has_tools: !tools.is_empty(),
                blocklist: config.settings.blocklist.clone(),
            },
            has_native_call: false,
            has_text: false,
            verdict: None,
            displayed: 0,
        }
    }

    /// Parses the next chunk of a streamed response.
    pub(super) fn push(
        &mut self,
        chunk: &StreamChunk,
        judge: &TextCallJudge<'_>,
        sink: &mut ResponseEventSink<'_>,
    ) {
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
            StreamChunk::Done(response) => self.finish(response, judge, sink),
        }
    }

    fn push_text(&mut self, text: &str) {
        self.has_text = true;
        let Self { parser, parsed, .. } = self;
        parser.push(text, &mut |event| parsed.add_event(&event));
    }

    /// Ends the parse with the complete response, whose text is parsed here if it was not streamed.
    fn finish(
        &mut self,
        response: &Response,
        judge: &TextCallJudge<'_>,
        sink: &mut ResponseEventSink<'_>,
    ) {
        if self.verdict.is_some() {
            return;
        }
        if !self.has_text {
            self.push_text(&response.message.visible_text());
        }
        let is_truncated = is_truncated(&response.finish_reason);
        let text_end = if is_truncated { TextEnd::Length } else { TextEnd::Stop };
        let Self { parser, parsed, .. } = self;
        parser.finish(text_end, &mut |event| parsed.add_event(&event));
        self.has_native_call |= has_native_call(response);
        if !self.has_native_call && !is_truncated && self.parsed.text.trim().is_empty() {
            self.parsed.reasoning_calls = calls_in_reasoning(response, judge.config);
        }
        self.parsed.place_calls(judge.mode);
        self.verdict = Some(match self.has_native_call {
            true => TextCallVerdict::Text,
            false => {
                let mut found = self.parsed.text_calls();
                found.is_wrapped = found.is_empty()
                    && is_wrapped_call(&self.parsed.text_after_reasoning(), judge.config);
                judge.judge(&found, &self.parsed.text)
            }
        });
        self.display(sink);
    }

    /// Displays the spans whose kind is final.
    fn display(&mut self, sink: &mut ResponseEventSink<'_>) {
        let calls_are_text = match &self.verdict {
            // The model is asked what it means, and may write all of it again.
            Some(TextCallVerdict::Unclear(_) | TextCallVerdict::Foreign(_)) => return,
            Some(verdict) => Some(verdict.is_text()),
            None => self.has_native_call.then_some(true),
        };
        while let Some(TextSpan { range, kind }) = self.parsed.spans.get(self.displayed) {
            let text = &self.parsed.text[range.clone()];
            match (kind, calls_are_text) {
                (SpanKind::Call { .. }, None) => return,
                (SpanKind::Call { position, .. }, Some(are_text)) => {
                    if are_text || *position != CallPosition::OwnLine {
                        display_text(text, sink);
                    }
                }
                (SpanKind::Text | SpanKind::Problem(_) | SpanKind::EarlyEnd(_), _) => {
                    display_text(text, sink);
                }
                (SpanKind::Reasoning, _) => sink(ResponseEvent::Reasoning(text)),
                (SpanKind::CallStart(tool), None | Some(false)) => {
                    sink(ResponseEvent::ToolCallDetected { tool });
                }
                (SpanKind::CallStart(_), Some(true)) | (SpanKind::Markup, _) => {}
            }
            self.displayed += 1;
        }
    }

    /// Returns the text that was displayed so far.
    pub(super) fn displayed_text(&self) -> String {
        let displayed = &self.parsed.spans[..self.displayed];
        let texts = displayed.iter().filter(|span| match span.kind {
            SpanKind::Text | SpanKind::Problem(_) | SpanKind::EarlyEnd(_) => true,
            SpanKind::Call { .. } => self.has_native_call,
            SpanKind::Reasoning | SpanKind::Markup | SpanKind::CallStart(_) => false,
        });
        texts.map(|span| &self.parsed.text[span.range.clone()]).collect()
    }

    /// Returns the parsed response.
    pub(super) fn into_parsed(
        mut self,
        judge: &TextCallJudge<'_>,
        response: &Response,
        constrained: bool,
    ) -> ParsedResponse {
        self.finish(response, judge, &mut |_| {});
        if self.parsed.text != response.message.visible_text() {
            // The chunks do not match the response, for example after a failed stream.
            self = Self::new(judge.config, constrained);
            self.finish(response, judge, &mut |_| {});
        }
        let builder = ResponseBuilder {
            config: judge.config,
            constrained,
            native_calls: response.message.calls().count(),
            truncated: is_truncated(&response.finish_reason),
            response: ParsedResponse {
                verdict: self.verdict.unwrap_or_default(),
                ..ParsedResponse::default()
            },
        };
        builder.build(self.parsed, response)
    }
}

/// Returns the calls at the end of the model's reasoning: some servers put a call there if the model
/// does not end its reasoning before the call. Only calls in special tokens count, because a model
/// also thinks about calls that it doesn't make.
fn calls_in_reasoning(response: &Response, config: &RunConfig) -> Vec<ResolvedCall> {
    let reasoning = response.message.reasoning();
    if reasoning.is_empty() || config.tools.known.is_empty() {
        return Vec::new();
    }
    let prompt = Some("<think>".to_owned());
    let options = ParserOptions {
        format: config.settings.tool_use.format,
        prompt,
        ..ParserOptions::default()
    };
    let mut parser = ToolCallParser::new(config.tools.known.clone(), &options);
    let mut found = Vec::new();
    let mut length = 0;
    let mut add = |event: ParseEvent<'_>| {
        let start = length;
        length += event.text().len();
        if let ParseEvent::Call { call, .. } = event {
            found.push((start..length, call.clone()));
        }
    };
    parser.push(&reasoning, &mut add);
    parser.finish(TextEnd::Stop, &mut add);
    let ranges: Vec<_> = found.iter().map(|found| found.0.clone()).collect();
    let parts = MarkedParts::new(&reasoning, &ranges, &[]);
    let mut is_certain = false;
    found.retain(|(range, _)| {
        // The further calls of a list have no text.
        if !range.is_empty() {
            let text = &reasoning[range.clone()];
            is_certain = SPECIAL_TOKENS.iter().any(|token| text.starts_with(token))
                && parts.place(range) == CallPlace::TopLevel;
        }
        is_certain
    });
    found.into_iter().map(|found| found.1).collect()
}

/// The starts of tokens that models have for calls only.
const SPECIAL_TOKENS: [&str; 4] = ["<|", "<｜", "[TOOL_CALLS]", "]<]"];

/// Returns the text of a response without the reasoning that a model wrote into its text.
pub(super) fn text_without_reasoning(response: &Response) -> String {
    let no_tools = std::sync::Arc::new(innkeeper_toolcall::Tools::default());
    let mut parser = ToolCallParser::new(no_tools, &ParserOptions::default());
    let mut text = String::new();
    let mut has_reasoning = false;
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
    fn build(mut self, mut parsed: ParsedText, response: &Response) -> ParsedResponse {
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
        if !self.calls_are_text() {
            let reasoning_calls = std::mem::take(&mut parsed.reasoning_calls);
            for call in &reasoning_calls {
                self.response.message.parts.push(call_part(call));
                self.add_text_call(call);
            }
        }
        let is_accepted = self.response.verdict == TextCallVerdict::Accepted;
        if self.native_calls == 0 {
            let rejected = parsed.spans.into_iter().filter_map(|span| match span.kind {
                SpanKind::Problem(rejected) if is_accepted => Some(rejected),
                // No prose looks like the end of a call that there is.
                SpanKind::EarlyEnd(rejected) => Some(rejected),
                _ => None,
            });
            self.response.rejected = rejected.collect();
        }
        if is_accepted {
            let problems = self.response.rejected.iter();
            self.response.problems =
                problems.map(|rejected| FailedAttempt::new(&*rejected.problem)).collect();
        }
        self.response
    }

    fn calls_are_text(&self) -> bool {
        self.native_calls > 0 || self.response.verdict.is_text()
    }

    fn add_native_call(&mut self, part: &ContentPart, call: &ToolCall) {
        // A truncated response ends within its last call.
        let last = self.response.calls.len() + 1 == self.native_calls;
        let is_cut = call.is_cut || self.truncated && last;
        let completeness = if is_cut { Completeness::Truncated } else { Completeness::Complete };
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
        let mut only_text = true;
        let mut has_call = false;
        for span in parsed.spans.iter().filter(|span| is_in(&span.range, &range)) {
            let clip = span.range.start.max(range.start)..span.range.end.min(range.end);
            let text = &parsed.text[clip];
            match &span.kind {
                SpanKind::Text | SpanKind::Problem(_) | SpanKind::EarlyEnd(_) => {
                    parts.push(PartContent::Text, text);
                }
                SpanKind::Call { position, .. }
                    if *position != CallPosition::OwnLine || self.calls_are_text() =>
                {
                    parts.push(PartContent::Text, text);
                }
                // The call belongs to the part in which the call starts.
                SpanKind::Call { call, .. } => {
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
    let name = call.name.clone();
    let arguments = call.arguments.to_string();
    ContentPart::new(PartContent::ToolCall(ToolCall {
        id: String::new(),
        name,
        arguments,
        is_cut: false,
    }))
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
