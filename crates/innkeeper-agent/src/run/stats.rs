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

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunStats {
    /// The number of iterations.
    pub iterations: u32,
    /// The number of requests, including retries.
    pub requests: u32,
    /// The number of responses.
    pub responses: u32,
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
}
