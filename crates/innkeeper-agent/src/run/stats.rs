//! Counts and corrected calls of a run.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::provider::Usage;

/// A call that a model got wrong first and right later, as a training example.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CorrectionExample {
    /// The user message.
    pub user_message: String,
    /// The model's text and its error, per failed attempt.
    pub attempts: Vec<(String, String)>,
    /// The text of the valid call.
    pub corrected_text: String,
}

/// The token usage of one iteration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct IterationUsage {
    /// The sum of all responses of the iteration, as reported by the provider, with corrections and
    /// summaries.
    pub usage: Usage,
    /// Whether every response of the iteration reported its token usage.
    pub is_complete: bool,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStats {
    /// The number of iterations.
    pub iterations: u32,
    /// The number of requests, including retries.
    pub requests: u32,
    /// The number of responses, without summaries of the history.
    pub responses: u32,
    /// The number of summaries of the history that the model wrote.
    #[serde(default)]
    pub summaries: u32,
    /// The number of retries after a failure.
    pub request_retries: u32,
    /// The number of correction requests after invalid calls.
    pub corrections: u32,
    /// The number of failures of the provider, by kind.
    pub failures: BTreeMap<Cow<'static, str>, u32>,
    /// The token usage of all responses, as reported by the provider.
    pub usage: Usage,
    /// Whether every response reported its token usage.
    pub usage_is_complete: bool,
    /// The token usage of each iteration with a response, in their order.
    #[serde(default)]
    pub usage_by_iteration: Vec<IterationUsage>,
}

impl RunStats {
    /// Adds the counts of a further run of the same conversation.
    pub(crate) fn add_run(&mut self, further: Self) {
        let Self {
            iterations,
            requests,
            responses,
            summaries,
            request_retries,
            corrections,
            failures,
            usage,
            usage_is_complete,
            usage_by_iteration,
        } = further;
        // An iteration without a response has no usage.
        let complete = IterationUsage { usage: Usage::default(), is_complete: true };
        self.usage_by_iteration.resize(self.iterations as usize, complete);
        self.usage_by_iteration.extend(usage_by_iteration);
        self.iterations += iterations;
        self.requests += requests;
        self.responses += responses;
        self.summaries += summaries;
        self.request_retries += request_retries;
        self.corrections += corrections;
        for (kind, count) in failures {
            *self.failures.entry(kind).or_default() += count;
        }
        self.usage = self.usage.saturating_add(usage);
        self.usage_is_complete &= usage_is_complete;
    }

    /// Counts the usage of a response; `None` if the provider did not report it.
    pub(super) fn add_usage(&mut self, usage: Option<Usage>) {
        let iterations = (self.iterations as usize).max(1);
        let complete = IterationUsage { usage: Usage::default(), is_complete: true };
        self.usage_by_iteration.resize(iterations, complete);
        let Some(current) = self.usage_by_iteration.last_mut() else { return };
        match usage {
            Some(usage) => {
                self.usage = self.usage.saturating_add(usage);
                current.usage = current.usage.saturating_add(usage);
            }
            None => (self.usage_is_complete, current.is_complete) = (false, false),
        }
    }
}
