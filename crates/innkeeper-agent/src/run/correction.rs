//! Limits, delays and temperature of corrections after invalid calls.

use std::time::Duration;

use innkeeper_toolcall::prompt::FailedAttempt;

use super::{CorrectionExample, Effect, Run, RunConfig, RunOutcome};
use crate::content::Content;

/// Maximum delay between two attempts.
const MAX_RETRY_DELAY: Duration = Duration::from_secs(30);

/// Maximum jitter, as a fraction of the delay.
const JITTER: f64 = 0.3;

/// The temperature from which a correction is lowered if none is set.
const ASSUMED_TEMPERATURE: f64 = 0.7;

/// The failed attempts at one response, and the corrected ones of the run.
#[derive(Debug, Default)]
pub(super) struct CorrectionState {
    /// The problem of each attempt, oldest first.
    pub(super) attempts: Vec<FailedAttempt>,
    /// The model's text in each attempt.
    texts: Vec<String>,
    /// Number of invalid native calls in the last response.
    pub(super) rejected_calls: u32,
    /// Whether the server enforces the call syntax in the next response.
    pub(super) constrained: bool,
    /// Whether the model was asked what a call in its text means.
    pub(super) asked_about_text: bool,
    pub(super) examples: Vec<CorrectionExample>,
    /// Whether the rejected calls of the last attempt were prose, which is now the answer.
    pub(super) answer_was_rejected: bool,
}

/// The decision after a failed attempt.
#[derive(Debug, PartialEq)]
pub(super) enum RetryDecision {
    /// Send a correction request after this delay.
    Retry(Duration),
    /// Send a correction request with constrained output.
    Constrain,
    GiveUp,
}

impl CorrectionState {
    /// Starts without attempts.
    pub(super) fn new(config: &RunConfig) -> Self {
        Self { constrained: config.constrains_first_response(), ..Self::default() }
    }

    /// Whether the model may be asked what a call in its text means: once, because an answer that it
    /// repeats is its answer.
    pub(super) fn can_ask_about_text(&self, config: &RunConfig) -> bool {
        !self.asked_about_text && self.attempts.len() < config.settings.limits.max_retries as usize
    }

    /// Ends the attempts, because a response is accepted.
    pub(super) fn accept(&mut self, answer_was_rejected: bool) {
        let examples = std::mem::take(&mut self.examples);
        *self = Self { examples, answer_was_rejected, ..Self::default() };
    }

    /// Returns the number of failed attempts at the calls of the next response.
    pub(super) fn failed_attempts(&self) -> u32 {
        self.attempts.len() as u32 + self.rejected_calls
    }

    /// Returns the text of the last attempt, which was sent back.
    pub(super) fn last_text(&self) -> Option<&str> {
        self.texts.last().map(String::as_str)
    }

    pub(super) fn add_text(&mut self, text: String) {
        self.texts.push(text);
    }

    /// Adds the attempts as an example, if there are any, with the text of a valid call.
    pub(super) fn add_example(&mut self, user_message: Option<&Content>, corrected_text: String) {
        let problems = self.attempts.iter().map(|attempt| attempt.problem.clone());
        let attempts: Vec<_> = std::mem::take(&mut self.texts).into_iter().zip(problems).collect();
        if !attempts.is_empty() {
            let user_message = user_message.map(|content| content.to_text().into_owned());
            let user_message = user_message.unwrap_or_default();
            self.examples.push(CorrectionExample { user_message, attempts, corrected_text });
        }
    }

    /// Records a failed attempt. A model that repeats a problem will repeat it again, so two equal
    /// problems in a row end the unconstrained retries.
    pub(super) fn record_failure(
        &mut self,
        config: &RunConfig,
        problem: FailedAttempt,
        chance: f64,
    ) -> RetryDecision {
        let same = self.attempts.last() == Some(&problem);
        self.attempts.push(problem);
        if same || self.attempts.len() > config.settings.limits.max_retries as usize {
            let free = !self.constrained && config.can_constrain();
            return if free { RetryDecision::Constrain } else { RetryDecision::GiveUp };
        }
        RetryDecision::Retry(backoff(
            config.settings.limits.retry_delay,
            self.attempts.len() as u32 - 1,
            chance,
        ))
    }

    /// Returns the temperature of the next attempt, which is lower after failed attempts: those in
    /// the text, and the invalid native calls in the last response. Without a setting, a correction is
    /// cooler than what the provider is assumed to use.
    pub(super) fn temperature(&self, config: &RunConfig) -> Option<f64> {
        let attempts = self.attempts.len() + usize::from(self.rejected_calls > 0);
        let lowered =
            (attempts > 0 && config.capabilities.temperature).then_some(ASSUMED_TEMPERATURE);
        let start = config.settings.requests.temperature.or(lowered)?;
        let cooler =
            (start - config.settings.requests.temperature_reduction * attempts as f64).max(0.0);
        // Rounding: 0.7 minus 0.3 is 0.4, not 0.3999999999999999.
        Some((cooler * 1e6).round() / 1e6)
    }
}

impl Run {
    /// Requests a correction of an invalid response, within the limits.
    pub(super) fn request_correction(
        &mut self,
        problem: FailedAttempt,
        text: String,
        chance: f64,
    ) -> Effect {
        self.correction.add_text(text);
        let next = if self.requests.retries_remaining == 0 {
            self.correction.attempts.push(problem);
            RetryDecision::GiveUp
        } else {
            self.correction.record_failure(&self.config, problem, chance)
        };
        match next {
            RetryDecision::Retry(delay) => {
                self.requests.retries_remaining -= 1;
                self.stats.corrections += 1;
                Effect::Sleep(delay)
            }
            RetryDecision::Constrain => {
                self.requests.retries_remaining -= 1;
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
}

/// Returns the delay before the attempt after `retries` others; `chance` is from 0 to 1.
pub(super) fn backoff(first: Duration, retries: u32, chance: f64) -> Duration {
    let doubled = first.saturating_mul(2_u32.saturating_pow(retries)).min(MAX_RETRY_DELAY);
    // Also maps NaN to 0.
    let chance = if chance > 0.0 { chance.min(1.0) } else { 0.0 };
    doubled.mul_f64(1.0 + JITTER * chance)
}
