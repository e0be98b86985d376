//! Sans-I/O state machine of one run.
//!
//! A run leads from a user message to the model's last response. The module does no I/O and reads
//! no clock: [`Run::start`] and each input return the next [`Effect`], which the caller performs
//! before it reports the outcome as the next input. However a run ends,
//! [`Run::into_conversation`] returns a valid conversation: every call has a result.

mod circuit_breaker;
mod config;
mod correction;
mod delimiters;
mod dropped_tools;
mod effect;
mod empty_response;
mod history;
mod iteration_calls;
mod last_request;
mod loop_detection;
mod made_up_turn;
mod next_request;
mod plan;
mod quotation;
mod recovery;
mod rejected_call;
mod rejected_tools;
mod request;
mod request_failure;
mod response;
mod response_parser;
mod stats;
mod text_calls;
mod wrapped_call;

use std::sync::Arc;

use crate::content::Content;
use crate::conversation::{AssistantMessage, Conversation, ConversationError};
use crate::provider::StreamChunk;
use crate::tools::{OfferedTools, describe_losses};
use correction::CorrectionState;
use history::History;
use iteration_calls::IterationCalls;
use next_request::RequestState;
use plan::{Plan, PlanDecision};
use rejected_tools::ToolOmissions;

pub use crate::settings::{RunLimits, ToolCalling};
pub use circuit_breaker::MAX_CONSECUTIVE_FAILURES;
pub use config::RunConfig;
pub use effect::{
    CallContext, CallOrigin, CallStatus, CallWarning, Effect, PendingCall, RunOutcome,
    StartDecision,
};
#[cfg(test)]
pub(crate) use history::SUMMARY_SYSTEM_PROMPT;
pub use plan::{PlanCondition, PlanStep};
pub use recovery::{ErrorRecord, RecoveryAction};
pub use rejected_call::RejectedToolCall;
pub use rejected_tools::OmittedTools;
#[cfg(test)]
pub(crate) use request::EXAMPLE_QUESTION;
pub use request::ToolCallMode;
pub use request_failure::MAX_RETRY_AFTER;
pub use response_parser::{ResponseEvent, ResponseEventSink};
pub use stats::{CorrectionExample, IterationUsage, RunStats};

/// The state of one run, which owns its conversation. See the [module](self).
#[derive(Debug)]
pub struct Run {
    config: Arc<RunConfig>,
    history: History,
    tools: ToolDelivery,
    correction: CorrectionState,
    requests: RequestState,
    calls: IterationCalls,
    plan: Plan,
    stats: RunStats,
}

/// How the model gets the tools.
#[derive(Debug)]
struct ToolDelivery {
    mode: ToolCallMode,
    /// Whether an earlier response proves that the model got the tools: by a native call, or by a
    /// count of prompt tokens that includes them. A later count may be smaller, because some servers
    /// do not count the prompt that they have in their cache.
    were_read: bool,
    omissions: ToolOmissions,
}

impl Run {
    /// Creates a run that continues this conversation.
    pub fn new(config: Arc<RunConfig>, conversation: Conversation) -> Self {
        let mode = config.initial_tool_call_mode();
        let retries_remaining = config.settings.limits.retry_budget;
        let correction = CorrectionState::new(&config);
        let plan =
            Plan::new(config.settings.tool_use.planning && !config.tools.available.is_empty());
        let tools = config.tools.clone();
        let mut run = Self {
            config,
            history: History::new(conversation),
            tools: ToolDelivery { mode, were_read: false, omissions: ToolOmissions::default() },
            correction,
            requests: RequestState { retries_remaining, ..RequestState::default() },
            calls: IterationCalls::default(),
            plan,
            stats: RunStats { usage_is_complete: true, ..RunStats::default() },
        };
        run.offer_tools(tools);
        run
    }

    /// Starts the run with a user message. Pending calls of an earlier run get error results. Must
    /// be called once, before all inputs.
    ///
    /// # Errors
    ///
    /// [`ConversationError::MessageTooLong`] if the message exceeds the limit.
    pub fn start(&mut self, message: impl Into<Content>) -> Result<Effect, ConversationError> {
        self.history.conversation.fail_pending(INTERRUPTED_MESSAGE);
        self.history.conversation.push_user(message)?;
        Ok(self.next_iteration())
    }

    /// Ends the run and returns the conversation. Calls without a result get an error result.
    pub fn into_conversation(mut self) -> Conversation {
        self.take_conversation()
    }

    /// Does the same as [`Self::into_conversation`] for an owner that cannot move the run. The run
    /// must not be used afterwards.
    pub(crate) fn take_conversation(&mut self) -> Conversation {
        self.flush_results(INTERRUPTED_MESSAGE);
        std::mem::take(&mut self.history.conversation)
    }

    /// Adds a call that did not end because the run was interrupted to the errors.
    pub(crate) fn record_interrupted_call(&mut self, tool: &str, call_id: &str, error: &str) {
        self.calls.record_run_error(ErrorRecord {
            iteration: self.stats.iterations,
            tool: Some(tool.to_owned()),
            call_id: Some(call_id.to_owned()),
            error: error.to_owned(),
            recovery_action: None,
        });
    }

    /// Adds a problem that is not the outcome of a call to the errors.
    fn record_error(&mut self, tool: Option<String>, error: String) {
        self.calls.record_run_error(ErrorRecord {
            iteration: self.stats.iterations,
            tool,
            call_id: None,
            error,
            recovery_action: None,
        });
    }

    /// Ends a run that is interrupted, and returns the conversation. The text of an incomplete
    /// response that [`Self::on_chunk`] displayed is in the conversation, with a note, because the
    /// user may refer to the text.
    pub(crate) fn take_interrupted_conversation(&mut self) -> Conversation {
        self.flush_results(INTERRUPTED_MESSAGE);
        if let Some(parser) = self.requests.response_parser.take() {
            let text = parser.displayed_text();
            if !text.trim().is_empty() {
                let text = format!("{text}\n\n{INTERRUPTED_RESPONSE_NOTE}");
                // No call is pending, so that the message fits.
                let _ = self.history.conversation.push_assistant(AssistantMessage::from_text(text));
            }
        }
        std::mem::take(&mut self.history.conversation)
    }

    /// Returns the current tool call mode.
    pub fn tool_call_mode(&self) -> ToolCallMode {
        self.tools.mode
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> &RunStats {
        &self.stats
    }

    /// Returns the corrected calls so far, as training examples.
    pub fn correction_examples(&self) -> &[CorrectionExample] {
        &self.correction.examples
    }

    /// Returns the errors so far, in their order: failed and rejected calls, and loops.
    pub fn errors(&self) -> &[ErrorRecord] {
        self.calls.errors()
    }

    /// Returns the conversation in its current state.
    pub fn conversation(&self) -> &Conversation {
        &self.history.conversation
    }

    /// Replaces the tools from the next request on. Must not be called between a request and its
    /// response, because the response is parsed with the tools of its request.
    ///
    /// If a server became unavailable, the model is told with the next results which tools it lost.
    pub fn on_tools_changed(&mut self, tools: OfferedTools) {
        for loss in describe_losses(self.config.tools.losses(&tools)) {
            self.record_error(None, loss.clone());
            self.tools.omissions.untold_losses.push(loss);
        }
        self.offer_tools(tools);
    }

    /// Handles the end of a delay.
    pub fn on_delay(&mut self) -> Effect {
        self.request_effect()
    }

    /// Handles a chunk of a streamed response, and passes what is to be displayed to `sink`. The
    /// input after [`StreamChunk::Done`] is [`Self::on_response`] with the same response.
    pub fn on_chunk(&mut self, chunk: &StreamChunk, sink: &mut ResponseEventSink<'_>) {
        if let Some(mut parser) = self.requests.response_parser.take() {
            parser.push(chunk, &self.text_call_judge(), sink);
            self.requests.response_parser = Some(parser);
        }
    }

    /// Handles the result of a call that was run or refused. `content` is the result for the
    /// model, to which the run may add advice.
    pub fn on_tool_result(
        &mut self,
        id: &str,
        content: impl Into<Content>,
        status: CallStatus,
    ) -> Effect {
        let Some(index) = self.calls.open_index(id) else { return Effect::AwaitTools };
        let was_run = matches!(status, CallStatus::Succeeded | CallStatus::Failed);
        self.plan.record(id, status == CallStatus::Succeeded, was_run);
        self.calls.finish(
            index,
            content.into(),
            status,
            self.config.settings.tool_use.backtracking,
        );
        if self.calls.is_finished() { self.end_iteration() } else { Effect::AwaitTools }
    }

    /// Returns the warnings that the run has added to results since the last call of this function.
    pub fn take_warnings(&mut self) -> Vec<CallWarning> {
        self.calls.take_warnings()
    }

    /// Handles an effect without calls: all calls of the response were rejected.
    pub fn on_calls_rejected(&mut self) -> Effect {
        self.end_iteration()
    }

    /// Decides about the start of a pending call: other calls of its response may have failed since,
    /// and a plan may order the calls. After [`StartDecision::Defer`], the caller asks again when
    /// another call has ended.
    pub fn start_decision(&self, id: &str) -> StartDecision {
        if let Some(reason) =
            self.calls.start_refusal(id, self.config.settings.tool_use.backtracking)
        {
            return StartDecision::Refuse(reason);
        }
        match self.plan.decide(id) {
            PlanDecision::Start => StartDecision::Start,
            PlanDecision::Defer => StartDecision::Defer,
            PlanDecision::Skip(reason) => StartDecision::Refuse(reason),
        }
    }

    /// Returns the steps of the plan; empty without a plan.
    pub fn plan(&self) -> &[PlanStep] {
        self.plan.steps()
    }

    /// Ends an iteration whose calls all have results.
    fn end_iteration(&mut self) -> Effect {
        let has_failed = self.calls.has_failed();
        self.flush_results(INTERRUPTED_MESSAGE);
        if has_failed && !self.config.settings.tool_use.backtracking {
            return Effect::Finish(RunOutcome::CallFailed);
        }
        if self.calls.ends_run() {
            return Effect::Finish(RunOutcome::LoopDetected);
        }
        self.next_iteration()
    }

    fn next_iteration(&mut self) -> Effect {
        if self.stats.iterations >= self.config.settings.limits.max_iterations {
            // Without a response there is nothing to answer with.
            return match self.stats.iterations {
                0 => Effect::Finish(RunOutcome::IterationLimit),
                _ => self.start_last_request(),
            };
        }
        self.stats.iterations += 1;
        self.request_effect()
    }

    /// Adds the results of the calls to the conversation; missing results become errors with the
    /// text `why`.
    fn flush_results(&mut self, reason: &str) {
        let mut results = self.calls.take_results(reason);
        if let Some(last) = results.last_mut() {
            for loss in std::mem::take(&mut self.tools.omissions.untold_losses) {
                last.content = std::mem::take(&mut last.content).with_text(&loss);
            }
        }
        if self.history.conversation.push_tool_results(results).is_err() {
            self.history.conversation.fail_pending(reason);
        }
    }
}

/// Result of a call that was interrupted.
pub(crate) const INTERRUPTED_MESSAGE: &str = "interrupted: unknown whether the call completed";

pub(crate) const INTERRUPTED_RESPONSE_NOTE: &str = "[The response ends here: it was interrupted.]";

#[cfg(test)]
mod tests;
