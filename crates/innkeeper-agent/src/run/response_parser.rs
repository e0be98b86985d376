//! Parses a response once, while it arrives: for the display and for the conversation.
//!
//! All texts of a response are one text for the parser, whether they are streamed or not, so that
//! the displayed text and the text in the conversation agree. What the parser takes for a call is
//! one only if [`TextCallJudge`] agrees, once the whole response is there. Next to a native call, a
//! call in the text is text: models repeat native calls in their text, and a call must not run
//! twice.

mod parsed_response;
mod parsed_text;
mod reasoning;

use innkeeper_toolcall::event::TextEnd;
use innkeeper_toolcall::{Format, ParserOptions, ToolCallParser};

use super::RunConfig;
use super::text_calls::{TextCallJudge, TextCallVerdict};
use super::wrapped_call::is_wrapped_call;
use crate::provider::{FinishReason, Response, StreamChunk};
use parsed_response::ResponseBuilder;
use parsed_text::{CallPosition, ParsedText, SpanKind, TextSpan};
use reasoning::calls_in_reasoning;

pub(super) use parsed_response::{ParsedCall, ParsedResponse};
pub(super) use reasoning::text_without_reasoning;

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
