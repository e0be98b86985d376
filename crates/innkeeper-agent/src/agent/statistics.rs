//! How well a model calls tools, counted over messages.

use serde_json::{Value, json};

use super::Report;
use crate::turn::{Ended, Mechanism};

/// Counts over the messages of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Messages that came to an end.
    pub messages: u64,
    /// Messages with an answer.
    pub answered: u64,
    /// Calls that were run or refused.
    pub calls: u64,
    /// Of these, those that were right at the first attempt.
    pub first_attempt: u64,
    /// Of these, by how they were made, in the order of [`MECHANISMS`].
    pub made: [u64; 5],
    /// Attempts that were none, before the calls that were.
    pub retries: u64,
    /// Requests because a call was none.
    pub corrections: u64,
    /// Requests because a provider failed.
    pub repeated: u64,
    /// Messages given up because no call came about.
    pub given_up: u64,
}

/// Every way in which a call is made.
pub const MECHANISMS: [Mechanism; 5] = [
    Mechanism::Native,
    Mechanism::Recovered,
    Mechanism::Repaired,
    Mechanism::Corrected,
    Mechanism::Constrained,
];

impl Statistics {
    pub(super) fn count(&mut self, report: &Report) {
        self.messages += 1;
        self.answered += u64::from(report.is_success());
        self.given_up += u64::from(matches!(report.ended, Ended::NoCall { .. }));
        self.corrections += u64::from(report.tally.corrections);
        self.repeated += u64::from(report.tally.repeated);
        for step in &report.steps {
            self.calls += 1;
            self.first_attempt += u64::from(step.retries == 0);
            self.retries += u64::from(step.retries);
            let at = MECHANISMS.iter().position(|mechanism| *mechanism == step.mechanism);
            self.made[at.unwrap_or_default()] += 1;
        }
    }

    /// The mean number of attempts that were none before a call; 0 without calls.
    pub fn mean_retries(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.retries as f64 / self.calls as f64 }
    }

    /// All of it as a JSON object.
    pub fn to_json(&self) -> Value {
        let made = MECHANISMS.iter().zip(self.made);
        let made: serde_json::Map<_, _> =
            made.map(|(mechanism, count)| (mechanism.name().to_owned(), count.into())).collect();
        json!({
            "messages": self.messages,
            "answered": self.answered,
            "calls": self.calls,
            "first_attempt": self.first_attempt,
            "mean_retries": self.mean_retries(),
            "mechanisms": made,
            "corrections": self.corrections,
            "repeated": self.repeated,
            "given_up": self.given_up,
        })
    }
}
