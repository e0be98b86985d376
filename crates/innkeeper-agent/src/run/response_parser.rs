//! Extracts the text and the calls of a response.

use innkeeper_toolcall::event::{ParseEvent, TextEnd as Ended};
use innkeeper_toolcall::prompt::FailedAttempt;
use innkeeper_toolcall::{
    Completeness, Format, ParserOptions, RawArguments, RejectedCall, ResolvedCall, ToolCallParser,
    resolve_call,
};

use super::{CallOrigin, RunConfig};
use crate::conversation::{AssistantMessage, ContentPart, PartContent, ToolCall};
use crate::provider::{FinishReason, Response};

/// The message, calls and problems of a response.
#[derive(Debug, Default)]
pub(super) struct ParsedResponse {
    /// The message for the conversation; calls in the text are call parts.
    pub(super) message: AssistantMessage,
    /// The calls of the response in their order, resolved or rejected.
    pub(super) calls: Vec<ParsedCall>,
    /// Invalid calls in the text.
    pub(super) problems: Vec<FailedAttempt>,
}

/// A call of a response.
#[derive(Debug)]
pub(super) struct ParsedCall {
    /// The resolved call, or the rejection.
    pub(super) call: Result<ResolvedCall, RejectedCall>,
    /// The origin of the call.
    pub(super) origin: CallOrigin,
}

/// Parses a response. The text is searched for calls only if the response has no native calls.
pub(super) fn parse_response(
    config: &RunConfig,
    response: &Response,
    constrained: bool,
) -> ParsedResponse {
    let tools = &config.known_tools;
    let native_calls = response.message.calls().count();
    let native = native_calls > 0;
    let mut parsed = ParsedResponse::default();
    let truncated = is_truncated(&response.finish_reason);
    for part in &response.message.parts {
        match &part.content {
            PartContent::ToolCall(call) => {
                // Only the last call can be truncated.
                let last = parsed.calls.len() + 1 == native_calls;
                let completeness = if truncated && last {
                    Completeness::Truncated
                } else {
                    Completeness::Complete
                };
                let call = resolve_call(
                    tools,
                    &call.name,
                    RawArguments::Text(&call.arguments),
                    completeness,
                );
                let origin = match &call {
                    Ok(call) if !call.repairs.is_empty() => CallOrigin::Repaired,
                    Ok(_) | Err(_) => CallOrigin::Native,
                };
                parsed.calls.push(ParsedCall { call, origin });
                parsed.message.parts.push(part.clone());
            }
            PartContent::Text(text) if !native && !tools.is_empty() => {
                let ended = if truncated { Ended::Length } else { Ended::Stop };
                parsed.parse_text(config, part, text, ended, constrained);
            }
            PartContent::Text(_) | PartContent::Reasoning(_) | PartContent::Other => {
                parsed.message.parts.push(part.clone());
            }
        }
    }
    parsed
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

impl ParsedResponse {
    /// Extracts the calls from a text.
    fn parse_text(
        &mut self,
        config: &RunConfig,
        part: &ContentPart,
        text: &str,
        ended: Ended,
        constrained: bool,
    ) {
        let before = self.calls.len();
        // Constrained output is plain JSON, whatever the model's own call format is.
        let format = if constrained { Format::Detect } else { config.format };
        let options = ParserOptions { format, ..ParserOptions::default() };
        let mut parser = ToolCallParser::new(config.known_tools.clone(), &options);
        let mut parts = PartMerger::default();
        let mut take =
            |event: ParseEvent<'_>| self.handle_event(config, &mut parts, &event, constrained);
        parser.push(text, &mut take);
        parser.finish(ended, &mut take);
        let thinks = parts.0.iter().any(|part| matches!(part.content, PartContent::Reasoning(_)));
        if self.calls.len() == before && (!thinks || part.provider_block.is_some()) {
            // The original part keeps the provider's block.
            self.message.parts.push(part.clone());
        } else {
            self.message.parts.extend(parts.0);
        }
    }

    fn handle_event(
        &mut self,
        config: &RunConfig,
        parts: &mut PartMerger,
        event: &ParseEvent<'_>,
        constrained: bool,
    ) {
        match event {
            ParseEvent::Text(text) => parts.push(PartContent::Text, text),
            ParseEvent::Reasoning(text) => parts.push(PartContent::Reasoning, text),
            ParseEvent::Markup(_) | ParseEvent::CallStart { .. } | ParseEvent::Arguments { .. } => {
            }
            ParseEvent::Call { call, .. } => {
                let arguments = call.arguments.to_string();
                let (id, name) = (String::new(), call.name.clone());
                parts.0.push(ContentPart::new(PartContent::ToolCall(ToolCall {
                    id,
                    name,
                    arguments,
                })));
                let origin = match (constrained, call.repairs.is_empty()) {
                    (true, _) => CallOrigin::Constrained,
                    (false, true) => CallOrigin::Recovered,
                    (false, false) => CallOrigin::Repaired,
                };
                self.calls.push(ParsedCall { call: Ok((*call).clone()), origin });
            }
            ParseEvent::Rejected { rejected, text, .. } => {
                parts.push(PartContent::Text, text);
                self.problems
                    .push(FailedAttempt::new(config.blocklist.rejection_message(rejected)));
            }
            ParseEvent::Incomplete { text, .. } => {
                parts.push(PartContent::Text, text);
                self.problems.push(FailedAttempt::new("the tool call is incomplete"));
            }
        }
    }
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
