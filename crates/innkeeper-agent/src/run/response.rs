//! What a run does with a response of the model: it runs the calls, asks for a correction, or ends.

use std::time::Duration;

use innkeeper_toolcall::prompt::FailedAttempt;

use super::empty_response::empty_response_problem;
use super::iteration_calls::reasoning_before_calls;
use super::rejected_call::RejectedTextCall;
use super::response_parser::{ParsedCall, ParsedResponse, ResponseParser};
use super::text_calls::TextCallVerdict;
use super::{CallContext, CallOrigin, Effect, Run, RunOutcome, ToolCallMode};
use crate::provider::{FinishReason, Response};

/// Result of a call in a response that ended with a refusal.
const DECLINED_MESSAGE: &str = "not run: the model refused the request";

impl Run {
    /// Handles a response of the model. `jitter`, from 0 to 1, varies the delays.
    pub fn on_response(&mut self, response: &Response, jitter: f64) -> Effect {
        self.requests.consecutive_failures = 0;
        self.stats.add_usage(response.usage);
        if self.history.is_pending() {
            return self.on_summary(response);
        }
        self.stats.responses += 1;
        if self.plan.is_requested {
            return self.on_plan(response);
        }
        if let Some(usage) = response.usage {
            self.history.on_usage(&self.config, usage.prompt_tokens);
        }
        if self.server_dropped_tools(response) {
            self.tools.mode = ToolCallMode::Prompt;
            return Effect::Sleep(Duration::ZERO);
        }
        let constrained = self.correction.constrained;
        let parser = self.requests.response_parser.take();
        let parser = parser.unwrap_or_else(|| ResponseParser::new(&self.config, constrained));
        let mut parsed = parser.into_parsed(&self.text_call_judge(), response, constrained);
        if self.requests.is_last {
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
        self.tools.were_read |= native || self.counts_tools(response);
        self.check_text_calls(&mut parsed, native);
        if let Some(problem) = merge_errors(std::mem::take(&mut parsed.problems)) {
            self.reject_text_calls(parsed);
            return self.request_correction(problem, response.message.visible_text(), jitter);
        }
        if !parsed.calls.is_empty() && !native {
            let user_message = self.history.conversation.last_user_message();
            self.correction.add_example(user_message, response.message.visible_text());
        }
        self.accept_response(parsed, response)
    }

    /// Accepts a response without problems.
    fn accept_response(&mut self, parsed: ParsedResponse, response: &Response) -> Effect {
        let failed_attempts = self.correction.failed_attempts();
        let constrained = self.correction.constrained;
        let ParsedResponse { message, calls, verdict, .. } = parsed;
        self.correction.accept(verdict == TextCallVerdict::Prose);
        let reasoning = reasoning_before_calls(&message);
        // The run adds a result for every call, so no call is pending here.
        if self.history.conversation.push_assistant(message).is_err() {
            return Effect::Finish(RunOutcome::NotSent {
                reason: "a call has no result".to_owned(),
            });
        }
        let text = if calls.is_empty() { response.message.visible_text() } else { String::new() };
        // The continuation of a paused response answers the failures.
        if !calls.is_empty() || response.finish_reason != FinishReason::Paused {
            let pending = self.history.conversation.pending_calls();
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
            let visible_results = self.requests.visible_results.clone();
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
            self.correction.rejected_calls += 1;
            let backtracking = self.config.settings.tool_use.backtracking;
            self.calls.reject(index, rejection, context, backtracking);
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
}

/// Merges all problems of one response into one.
fn merge_errors(problems: Vec<FailedAttempt>) -> Option<FailedAttempt> {
    let texts: Vec<_> = problems.into_iter().map(|problem| problem.problem).collect();
    (!texts.is_empty()).then(|| FailedAttempt::new(texts.join("; ")))
}
