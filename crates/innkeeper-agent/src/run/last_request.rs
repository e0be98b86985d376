//! The last request of a run that has reached its iteration limit.
//!
//! The model gets no tools and is asked to answer with what it has. Whatever it answers, the outcome
//! remains the iteration limit, and nothing is corrected: the limit is exceeded by this one request.

use super::response_parser::ParsedResponse;
use super::{Effect, Run, RunOutcome};
use crate::conversation::{AssistantMessage, PartContent};
use crate::provider::LlmError;

/// The end of the last request.
pub(super) const LAST_REQUEST_INSTRUCTIONS: &str = "You have reached the limit of responses with \
    tool calls, so no tool can be called any more. Answer the request now with what you have. Say \
    what is missing, and do not write a tool call.";

impl Run {
    /// Requests the last answer.
    pub(super) fn start_last_request(&mut self) -> Effect {
        self.requests.is_last = true;
        self.request_effect()
    }

    pub(super) fn end_with_last_text(&mut self, parsed: ParsedResponse) -> Effect {
        let mut parts = parsed.message.parts;
        parts.retain(|part| !matches!(part.content, PartContent::ToolCall(_)));
        let message = AssistantMessage { parts };
        if !message.visible_text().trim().is_empty() {
            // All calls have results here, so that the message fits.
            self.history.conversation.push_assistant(message).unwrap_or_default();
        }
        Effect::Finish(RunOutcome::IterationLimit)
    }

    /// Ends the run after a failed request. A last request that fails changes the outcome of the run
    /// as little as its answer does.
    pub(super) fn end_with_failure(&mut self, error: LlmError) -> Effect {
        if !self.requests.is_last {
            return Effect::Finish(RunOutcome::Failed(error));
        }
        self.record_error(None, format!("the model gave no last answer: {error}"));
        Effect::Finish(RunOutcome::IterationLimit)
    }
}
