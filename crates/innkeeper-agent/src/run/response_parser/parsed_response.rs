//! The message and the calls of a parsed response.

use std::ops::Range;

use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{Completeness, RawArguments, RejectedCall, ResolvedCall, resolve_call};

use super::parsed_text::{CallPosition, ParsedText, SpanKind};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
use crate::provider::Response;
use crate::run::rejected_call::RejectedTextCall;
use crate::run::text_calls::TextCallVerdict;
use crate::run::{CallOrigin, RunConfig};

/// The message, calls and problems of a response.
#[derive(Debug, Default)]
pub(in crate::run) struct ParsedResponse {
    /// The message for the conversation; calls in the text are call parts.
    pub(in crate::run) message: AssistantMessage,
    /// The calls of the response in their order, resolved or rejected.
    pub(in crate::run) calls: Vec<ParsedCall>,
    /// Invalid calls in the text, if its calls count.
    pub(in crate::run) problems: Vec<FailedAttempt>,
    /// The same calls, as the result of the run names them.
    pub(in crate::run) rejected: Vec<RejectedTextCall>,
    pub(in crate::run) verdict: TextCallVerdict,
}

#[derive(Debug)]
pub(in crate::run) struct ParsedCall {
    pub(in crate::run) call: Result<ResolvedCall, RejectedCall>,
    pub(in crate::run) origin: CallOrigin,
}

/// Assembles the message and the calls from the parts of a response and its parsed text.
pub(super) struct ResponseBuilder<'c> {
    pub(super) config: &'c RunConfig,
    pub(super) constrained: bool,
    pub(super) native_calls: usize,
    pub(super) truncated: bool,
    pub(super) response: ParsedResponse,
}

impl ResponseBuilder<'_> {
    pub(super) fn build(mut self, mut parsed: ParsedText, response: &Response) -> ParsedResponse {
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
