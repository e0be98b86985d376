//! Sans-I/O state machine of one run.
//!
//! A run leads from a user message to the model's last response. The module does no I/O and reads
//! no clock: [`Run::start`] and each input return the next [`Effect`], which the caller performs
//! before it reports the outcome as the next input. However a run ends,
//! [`Run::into_conversation`] returns a valid conversation: every call has a result.

mod circuit_breaker;
mod compaction;
mod config;
mod correction;
mod delimiters;
mod dropped_tools;
mod effect;
mod empty_response;
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
mod response_parser;
mod stats;
mod text_calls;
mod wrapped_call;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::prompt::FailedAttempt;

use crate::content::Content;
use crate::conversation::{AssistantMessage, Conversation, ConversationError, Message};
use crate::provider::{FinishReason, Response, StreamChunk};
use crate::tools::{OfferedTools, describe_losses};
use compaction::Compaction;
use correction::{CorrectionState, RetryDecision};
use empty_response::empty_response_problem;
use iteration_calls::{IterationCalls, reasoning_before_calls};
use plan::{Plan, PlanDecision};
use rejected_call::RejectedTextCall;
use rejected_tools::ToolOmissions;
use response_parser::{ParsedCall, ParsedResponse, ResponseParser};
use text_calls::TextCallVerdict;

pub use crate::settings::{RunLimits, ToolCalling};
pub use circuit_breaker::MAX_CONSECUTIVE_FAILURES;
#[cfg(test)]
pub(crate) use compaction::SUMMARY_SYSTEM_PROMPT;
pub use config::RunConfig;
pub use effect::{
    CallContext, CallOrigin, CallStatus, CallWarning, Effect, PendingCall, RunOutcome,
    StartDecision,
};
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
    conversation: Conversation,
    tool_call_mode: ToolCallMode,
    correction: CorrectionState,
    /// Whether the run has reached its iteration limit, so that the model can only answer.
    is_last_request: bool,
    /// The model's text in each attempt of the current correction.
    attempt_texts: Vec<String>,
    /// Whether an earlier response proves that the model got the tools: by a native call, or by a
    /// count of prompt tokens that includes them. A later count may be smaller, because some servers
    /// do not count the prompt that they have in their cache.
    tools_were_read: bool,
    /// Number of invalid native calls in the last response.
    rejected_calls: u32,
    /// What the model has not been told about servers that became unavailable.
    untold_losses: Vec<String>,
    /// The rejected calls that the caller has not taken.
    untaken_rejections: Vec<RejectedToolCall>,
    /// Whether the rejected calls of the last attempt were prose, which is now the answer.
    answer_was_rejected: bool,
    retries_remaining: u32,
    consecutive_failures: u32,
    calls: IterationCalls,
    compaction: Compaction,
    plan: Plan,
    /// The ids of the calls of this run whose results the last request contains.
    visible_results: Arc<[String]>,
    /// The parser of the response to the last request.
    response_parser: Option<ResponseParser>,
    stats: RunStats,
    correction_examples: Vec<CorrectionExample>,
    /// The tools that the provider does not take.
    omissions: ToolOmissions,
}

impl Run {
    /// Creates a run that continues this conversation.
    pub fn new(config: Arc<RunConfig>, conversation: Conversation) -> Self {
        let tool_call_mode = config.initial_tool_call_mode();
        let retries_remaining = config.settings.limits.retry_budget;
        let correction = CorrectionState::new(&config);
        let plan =
            Plan::new(config.settings.tool_use.planning && !config.tools.available.is_empty());
        let tools = config.tools.clone();
        let mut run = Self {
            config,
            conversation,
            tool_call_mode,
            correction,
            is_last_request: false,
            attempt_texts: Vec::new(),
            tools_were_read: false,
            rejected_calls: 0,
            untold_losses: Vec::new(),
            untaken_rejections: Vec::new(),
            answer_was_rejected: false,
            retries_remaining,
            consecutive_failures: 0,
            calls: IterationCalls::default(),
            compaction: Compaction::default(),
            plan,
            visible_results: Arc::default(),
            response_parser: None,
            stats: RunStats { usage_is_complete: true, ..RunStats::default() },
            correction_examples: Vec::new(),
            omissions: ToolOmissions::default(),
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
        self.conversation.fail_pending(INTERRUPTED_MESSAGE);
        self.conversation.push_user(message)?;
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
        std::mem::take(&mut self.conversation)
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

    /// Ends a run that is interrupted, and returns the conversation. The text of an incomplete
    /// response that [`Self::on_chunk`] displayed is in the conversation, with a note, because the
    /// user may refer to the text.
    pub(crate) fn take_interrupted_conversation(&mut self) -> Conversation {
        self.flush_results(INTERRUPTED_MESSAGE);
        if let Some(parser) = self.response_parser.take() {
            let text = parser.displayed_text();
            if !text.trim().is_empty() {
                let text = format!("{text}\n\n{INTERRUPTED_RESPONSE_NOTE}");
                // No call is pending, so that the message fits.
                let _ = self.conversation.push_assistant(AssistantMessage::from_text(text));
            }
        }
        std::mem::take(&mut self.conversation)
    }

    /// Returns the current tool call mode.
    pub fn tool_call_mode(&self) -> ToolCallMode {
        self.tool_call_mode
    }

    /// Returns the counts so far.
    pub fn stats(&self) -> &RunStats {
        &self.stats
    }

    /// Returns the corrected calls so far, as training examples.
    pub fn correction_examples(&self) -> &[CorrectionExample] {
        &self.correction_examples
    }

    /// Returns the errors so far, in their order: failed and rejected calls, and loops.
    pub fn errors(&self) -> &[ErrorRecord] {
        self.calls.errors()
    }

    /// Returns the conversation in its current state.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Replaces the tools from the next request on. Must not be called between a request and its
    /// response, because the response is parsed with the tools of its request.
    ///
    /// If a server became unavailable, the model is told with the next results which tools it lost.
    pub fn on_tools_changed(&mut self, tools: OfferedTools) {
        for loss in describe_losses(self.config.tools.losses(&tools)) {
            self.calls.record_run_error(ErrorRecord {
                iteration: self.stats.iterations,
                tool: None,
                call_id: None,
                error: loss.clone(),
                recovery_action: None,
            });
            self.untold_losses.push(loss);
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
        if let Some(mut parser) = self.response_parser.take() {
            parser.push(chunk, &self.text_call_judge(), sink);
            self.response_parser = Some(parser);
        }
    }

    /// Handles a response of the model. `jitter`, from 0 to 1, varies the delays.
    pub fn on_response(&mut self, response: &Response, jitter: f64) -> Effect {
        self.consecutive_failures = 0;
        self.stats.add_usage(response.usage);
        if self.compaction.is_pending() {
            return self.on_summary(response);
        }
        self.stats.responses += 1;
        if self.plan.is_requested {
            return self.on_plan(response);
        }
        if let Some(usage) = response.usage {
            let conversation = &mut self.conversation;
            self.compaction.on_usage(&self.config, conversation, usage.prompt_tokens);
        }
        if self.server_dropped_tools(response) {
            self.tool_call_mode = ToolCallMode::Prompt;
            return Effect::Sleep(Duration::ZERO);
        }
        let constrained = self.correction.constrained;
        let parser = self.response_parser.take();
        let parser = parser.unwrap_or_else(|| ResponseParser::new(&self.config, constrained));
        let mut parsed = parser.into_parsed(&self.text_call_judge(), response, constrained);
        if self.is_last_request {
            return self.end_with_last_text(parsed);
        }
        if let Some(question) = self.question_about_text(&mut parsed, response, jitter) {
            return question;
        }
        if parsed.calls.is_empty()
            && parsed.problems.is_empty()
            && let Some(problem) = empty_response_problem(response)
        {
            if response.finish_reason == FinishReason::MalformedToolCall {
                parsed.rejected.push(RejectedTextCall::unreadable("", &*problem));
            }
            parsed.problems.push(FailedAttempt::new(problem));
        }
        let native = response.message.calls().next().is_some();
        self.tools_were_read |= native || self.counts_tools(response);
        self.check_text_calls(&mut parsed, native);
        if let Some(problem) = merge_errors(std::mem::take(&mut parsed.problems)) {
            self.reject_text_calls(parsed);
            return self.request_correction(problem, response.message.visible_text(), jitter);
        }
        if !parsed.calls.is_empty() && !native {
            self.record_correction(response);
        }
        self.attempt_texts.clear();
        self.answer_was_rejected = parsed.verdict == TextCallVerdict::Prose;
        self.accept_response(parsed, response)
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

    /// Accepts a response without problems.
    fn accept_response(&mut self, parsed: ParsedResponse, response: &Response) -> Effect {
        let ParsedResponse { message, calls, .. } = parsed;
        let failed_attempts = self.correction.attempts.len() as u32 + self.rejected_calls;
        let constrained = self.correction.constrained;
        self.correction = CorrectionState::default();
        self.rejected_calls = 0;
        let reasoning = reasoning_before_calls(&message);
        // The run adds a result for every call, so no call is pending here.
        if self.conversation.push_assistant(message).is_err() {
            return Effect::Finish(RunOutcome::NotSent {
                reason: "a call has no result".to_owned(),
            });
        }
        let text = if calls.is_empty() { response.message.visible_text() } else { String::new() };
        // The continuation of a paused response answers the failures.
        if !calls.is_empty() || response.finish_reason != FinishReason::Paused {
            let pending = self.conversation.pending_calls();
            self.calls.start(self.stats.iterations, pending, &calls, &text);
        }
        if calls.is_empty() {
            return RunOutcome::from_finish_reason(&response.finish_reason)
                .map_or_else(|| self.next_iteration(), Effect::Finish);
        }
        let refused_whole = response.finish_reason == FinishReason::Refusal;
        let too_many = calls.len() > self.config.settings.limits.max_calls;
        let mut planned = Vec::new();
        for (index, (parsed, reasoning)) in calls.into_iter().zip(reasoning).enumerate() {
            let ParsedCall { call, origin } = parsed;
            let fits = call.map_err(|rejected| self.config.rejection_message(&rejected)).and_then(
                |call| {
                    let problem = self.config.call_problem(&call);
                    problem.map_or(Ok(call), Err)
                },
            );
            let is_corrected = fits.is_ok() && failed_attempts > 0 && !constrained;
            let origin = if is_corrected { CallOrigin::Corrected } else { origin };
            let visible_results = self.visible_results.clone();
            let context = CallContext { origin, failed_attempts, reasoning, visible_results };
            let rejection = match fits {
                Ok(_) if refused_whole => DECLINED_MESSAGE.to_owned(),
                Ok(_) if too_many => self.config.too_many_calls_message(),
                Ok(call) => {
                    let pending = self.calls.plan(index, call, context);
                    self.plan.assign(&pending.id, &pending.call.name, pending.retry_attempt > 0);
                    planned.push(pending);
                    continue;
                }
                Err(reason) => reason,
            };
            self.rejected_calls += 1;
            let backtracking = self.config.settings.tool_use.backtracking;
            let rejected = self.calls.reject(index, rejection, context, backtracking);
            self.untaken_rejections.push(rejected);
        }
        if refused_whole {
            self.flush_results(DECLINED_MESSAGE);
            return Effect::Finish(RunOutcome::Refused);
        }
        Effect::CallTools(planned)
    }

    /// Calls in the text are all run or none: a problem of one call rejects the response. A native
    /// call gets an error result of its own.
    fn check_text_calls(&self, parsed: &mut ParsedResponse, native: bool) {
        if native {
            return;
        }
        let too_many = parsed.calls.len() > self.config.settings.limits.max_calls;
        for parsed_call in &parsed.calls {
            let Ok(call) = &parsed_call.call else { continue };
            let problem = match self.config.call_problem(call) {
                Some(problem) => {
                    parsed.problems.push(FailedAttempt::new(&*problem));
                    problem
                }
                None if too_many => self.config.too_many_calls_message(),
                None => continue,
            };
            parsed.rejected.push(RejectedTextCall::misfit(call, problem));
        }
        if too_many {
            parsed.problems.push(FailedAttempt::new(self.config.too_many_calls_message()));
        }
    }

    /// Requests a correction of an invalid response, within the limits.
    fn request_correction(&mut self, problem: FailedAttempt, text: String, chance: f64) -> Effect {
        self.attempt_texts.push(text);
        let next = if self.retries_remaining == 0 {
            self.correction.attempts.push(problem);
            RetryDecision::GiveUp
        } else {
            self.correction.record_failure(&self.config, problem, chance)
        };
        match next {
            RetryDecision::Retry(delay) => {
                self.retries_remaining -= 1;
                self.stats.corrections += 1;
                Effect::Sleep(delay)
            }
            RetryDecision::Constrain => {
                self.retries_remaining -= 1;
                self.stats.corrections += 1;
                self.correction.constrained = true;
                Effect::Sleep(Duration::ZERO)
            }
            RetryDecision::GiveUp => {
                let attempts = std::mem::take(&mut self.correction.attempts);
                Effect::Finish(RunOutcome::NoValidCall { attempts })
            }
        }
    }

    fn record_correction(&mut self, response: &Response) {
        let texts = std::mem::take(&mut self.attempt_texts);
        let problems = self.correction.attempts.iter().map(|attempt| attempt.problem.clone());
        let attempts: Vec<_> = texts.into_iter().zip(problems).collect();
        if !attempts.is_empty() {
            let user_message =
                self.conversation.messages().iter().rev().find_map(|message| match message {
                    Message::User(content) => Some(content.to_text().into_owned()),
                    Message::Assistant(_) | Message::ToolResults(_) => None,
                });
            let user_message = user_message.unwrap_or_default();
            let corrected_text = response.message.visible_text();
            self.correction_examples.push(CorrectionExample {
                user_message,
                attempts,
                corrected_text,
            });
        }
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
            for loss in std::mem::take(&mut self.untold_losses) {
                last.content = std::mem::take(&mut last.content).with_text(&loss);
            }
        }
        if self.conversation.push_tool_results(results).is_err() {
            self.conversation.fail_pending(reason);
        }
    }
}

/// Result of a call that was interrupted.
pub(crate) const INTERRUPTED_MESSAGE: &str = "interrupted: unknown whether the call completed";

/// The end of a response that was interrupted.
pub(crate) const INTERRUPTED_RESPONSE_NOTE: &str = "[The response ends here: it was interrupted.]";

/// Result of a call in a response that ended with a refusal.
const DECLINED_MESSAGE: &str = "not run: the model refused the request";

/// Merges all problems of one response into one.
fn merge_errors(problems: Vec<FailedAttempt>) -> Option<FailedAttempt> {
    let texts: Vec<_> = problems.into_iter().map(|problem| problem.problem).collect();
    (!texts.is_empty()).then(|| FailedAttempt::new(texts.join("; ")))
}

#[cfg(test)]
mod tests;
