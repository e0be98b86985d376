//! What a run does after a failed request: it sends a shorter or another one, waits, asks for a
//! correction, or ends.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_toolcall::prompt::FailedAttempt;

use super::history::stated_window;
use super::rejected_call::RejectedTextCall;
use super::response_parser::ParsedResponse;
use super::{Effect, Run, RunConfig, ToolCallMode, correction};
use crate::provider::{FinishReason, LlmError, LlmErrorKind, Response};

/// Longest `Retry-After` delay that a run waits for. A provider that demands more is unavailable
/// for now.
pub const MAX_RETRY_AFTER: Duration = Duration::from_secs(120);

/// Initial and maximum delay before a failed request is retried.
const INITIAL_BACKOFF: Duration = Duration::from_millis(500);
const MAX_BACKOFF: Duration = Duration::from_secs(8);

/// Maximum number of retries of a request that failed without a response from the provider.
const MAX_CONNECTION_RETRIES: u32 = 2;

impl Run {
    /// Handles a failed request. `jitter`, from 0 to 1, varies the delays.
    pub fn on_error(&mut self, mut error: LlmError, jitter: f64) -> Effect {
        *self.stats.failures.entry(error.kind.name().into()).or_default() += 1;
        if matches!(
            error.kind,
            LlmErrorKind::Connection | LlmErrorKind::TimedOut | LlmErrorKind::InvalidResponse
        ) {
            self.stats.usage_is_complete = false;
        }
        if self.history.is_pending() {
            let may_succeed_later = matches!(
                error.kind,
                LlmErrorKind::RetryLater { .. }
                    | LlmErrorKind::Connection
                    | LlmErrorKind::LocalRateLimit { .. }
            );
            if may_succeed_later {
                self.history.cancel_summary();
            } else {
                self.history.on_summary_error();
                return self.request_effect();
            }
        }
        if error.kind == LlmErrorKind::ContextLength && self.on_context_length(&error) {
            self.stats.request_retries += 1;
            return Effect::Sleep(Duration::ZERO);
        }
        let is_final = !error.kind.is_retryable() || error.kind == LlmErrorKind::MalformedToolCall;
        if self.plan.is_requested && is_final {
            return self.continue_without_plan(&error.to_string());
        }
        if error.kind == LlmErrorKind::ToolsUnsupported
            && self.tools.mode == ToolCallMode::Native
            && self.config.allows_prompt_mode()
        {
            self.tools.mode = ToolCallMode::Prompt;
            return Effect::Sleep(Duration::ZERO);
        }
        if self.omit_rejected_tools(&error) {
            self.stats.request_retries += 1;
            return Effect::Sleep(Duration::ZERO);
        }
        if error.kind == LlmErrorKind::MalformedToolCall {
            if self.requests.is_last {
                return self.end_with_failure(error);
            }
            // The text that the server could not parse may contain the call.
            let Some(output) = error.partial_output.take() else {
                let rejected = vec![RejectedTextCall::unreadable("", &*error.message)];
                self.reject_text_calls(ParsedResponse { rejected, ..ParsedResponse::default() });
                let problem = FailedAttempt::new(&*error.message);
                return self.request_correction(problem, String::new(), jitter);
            };
            let response = Response {
                finish_reason: FinishReason::MalformedToolCall,
                ..Response::from_text(output)
            };
            return self.on_response(&response, jitter);
        }
        if matches!(error.kind, LlmErrorKind::LocalRateLimit { .. }) {
            // No request was sent. The caller of the run has waited if it is to wait.
            self.stats.requests -= 1;
            return self.end_with_failure(error);
        }
        let after = error.kind.retry_after();
        let waits = after.is_none_or(|after| after <= MAX_RETRY_AFTER);
        // Retries rarely help if the server is missing or does not respond.
        let max_retries = match matches!(error.kind, LlmErrorKind::RetryLater { .. }) {
            true => self.requests.retries_remaining,
            false => MAX_CONNECTION_RETRIES
                .saturating_sub(self.requests.consecutive_failures)
                .min(self.requests.retries_remaining),
        };
        if !error.kind.is_retryable() || !waits || max_retries == 0 {
            return self.end_with_failure(error);
        }
        let own_backoff =
            correction::backoff(INITIAL_BACKOFF, self.requests.consecutive_failures, jitter)
                .min(MAX_BACKOFF);
        self.requests.consecutive_failures += 1;
        self.requests.retries_remaining -= 1;
        self.stats.request_retries += 1;
        Effect::Sleep(after.unwrap_or_default().max(own_backoff))
    }

    /// Handles an error that says that the request is too long. Returns whether a shorter one is
    /// possible.
    fn on_context_length(&mut self, error: &LlmError) -> bool {
        let window = stated_window(&error.message);
        if let Some(window) = window.filter(|window| window / 2 < self.config.max_tokens) {
            let max_tokens = window / 2;
            self.config = Arc::new(RunConfig { max_tokens, ..(*self.config).clone() });
        }
        self.history.on_context_length(&self.config, window)
    }
}
