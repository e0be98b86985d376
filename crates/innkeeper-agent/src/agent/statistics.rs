//! How well a model calls tools, counted over messages.

use std::collections::BTreeMap;

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
    /// Failures of the provider, by the name of their class.
    pub failures: BTreeMap<&'static str, u64>,
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
        for (class, count) in &report.tally.failures {
            *self.failures.entry(class).or_default() += u64::from(*count);
        }
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
            "failures": self.failures,
        })
    }

    /// All of it as the text that Prometheus reads, for this model.
    pub fn to_prometheus(&self, model: &str) -> String {
        let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let mut text = String::new();
        let mut counter = |name: &str, help: &str, values: &[(String, u64)]| {
            let name = format!("innkeeper_model_{name}_total");
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} counter\n"));
            for (labels, value) in values {
                text.push_str(&format!("{name}{{model=\"{model}\"{labels}}} {value}\n"));
            }
        };
        let one = |value: u64| vec![(String::new(), value)];
        counter("messages", "Messages that came to an end.", &one(self.messages));
        counter("answered", "Messages with an answer.", &one(self.answered));
        counter(
            "first_attempt_calls",
            "Calls right at the first attempt.",
            &one(self.first_attempt),
        );
        counter("retries", "Attempts at a call that were none.", &one(self.retries));
        let made = MECHANISMS.iter().zip(self.made);
        let made: Vec<_> = made
            .map(|(mechanism, count)| (format!(",mechanism=\"{}\"", mechanism.name()), count))
            .collect();
        counter("calls", "Calls, by how they were made.", &made);
        let failures = self.failures.iter();
        let failures: Vec<_> =
            failures.map(|(class, count)| (format!(",class=\"{class}\""), *count)).collect();
        counter("failures", "Failures of the provider, by class.", &failures);
        text
    }
}
