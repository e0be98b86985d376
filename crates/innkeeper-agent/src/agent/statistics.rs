//! Counts of tool calls over all runs of an agent.

use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::RunResult;
use crate::run::{CallOrigin, RunOutcome};

/// Counts over all runs of one agent.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Statistics {
    /// The number of finished runs.
    pub runs: u64,
    /// The number of runs with a last response.
    pub succeeded: u64,
    /// The tool calls that were run or refused.
    #[serde(flatten)]
    pub calls: CallStatistics,
    /// The number of requests after invalid calls.
    pub corrections: u64,
    /// The number of requests after failures of the provider.
    pub request_retries: u64,
    /// The number of runs that ended without a valid call.
    pub given_up: u64,
    /// The number of failures of the provider, by kind.
    pub failures: BTreeMap<Cow<'static, str>, u64>,
}

/// Counts of tool calls that were run or refused.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CallStatistics {
    /// The number of calls.
    #[serde(rename = "calls")]
    pub count: u64,
    /// The number of calls that were valid at the first attempt.
    pub first_attempt: u64,
    /// The number of calls by origin, in the order of [`CALL_ORIGINS`].
    #[serde(rename = "calls_by_origin")]
    pub by_origin: [u64; 5],
    /// The number of failed attempts before the calls.
    pub retries: u64,
}

/// All origins of a call.
pub const CALL_ORIGINS: [CallOrigin; 5] = [
    CallOrigin::Native,
    CallOrigin::Recovered,
    CallOrigin::Repaired,
    CallOrigin::Corrected,
    CallOrigin::Constrained,
];

impl Statistics {
    pub(super) fn count(&mut self, report: &RunResult) {
        self.runs += 1;
        self.succeeded += u64::from(report.is_completed());
        self.given_up += u64::from(matches!(report.outcome, RunOutcome::NoValidCall { .. }));
        self.corrections += u64::from(report.stats.corrections);
        self.request_retries += u64::from(report.stats.request_retries);
        for (kind, count) in &report.stats.failures {
            *self.failures.entry(kind.clone()).or_default() += u64::from(*count);
        }
        for record in report.tool_calls.iter().filter(|record| !record.outcome.rejected) {
            self.calls.count += 1;
            self.calls.first_attempt += u64::from(record.attempts.failed_attempts == 0);
            self.calls.retries += u64::from(record.attempts.failed_attempts);
            let at = CALL_ORIGINS.iter().position(|mechanism| *mechanism == record.origin);
            self.calls.by_origin[at.unwrap_or_default()] += 1;
        }
    }

    /// Returns the mean number of failed attempts per call, or 0 without calls.
    pub fn mean_retries(&self) -> f64 {
        if self.calls.count == 0 {
            0.0
        } else {
            self.calls.retries as f64 / self.calls.count as f64
        }
    }

    /// Returns the counts as a JSON object.
    pub fn to_json(&self) -> Value {
        let origin_counts = CALL_ORIGINS.iter().zip(self.calls.by_origin);
        let calls: serde_json::Map<_, _> = origin_counts
            .map(|(mechanism, count)| (mechanism.name().to_owned(), count.into()))
            .collect();
        json!({
            "messages": self.runs,
            "answered": self.succeeded,
            "calls": self.calls.count,
            "first_attempt": self.calls.first_attempt,
            "mean_retries": self.mean_retries(),
            "mechanisms": calls,
            "corrections": self.corrections,
            "repeated": self.request_retries,
            "given_up": self.given_up,
            "failures": self.failures,
        })
    }

    /// Returns the counts in Prometheus' text format, labelled with the model.
    pub fn to_prometheus(&self, model: &str) -> String {
        let model = model.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        let mut text = CounterText { text: String::new(), model };
        text.add_one("messages", "Finished runs.", self.runs);
        text.add_one("answered", "Runs with a last response.", self.succeeded);
        text.add_one(
            "first_attempt_calls",
            "Calls valid at the first attempt.",
            self.calls.first_attempt,
        );
        text.add_one("retries", "Failed attempts at a call.", self.calls.retries);
        let calls = CALL_ORIGINS.iter().zip(self.calls.by_origin);
        let calls =
            calls.map(|(mechanism, count)| (format!(",mechanism=\"{}\"", mechanism.name()), count));
        text.add("calls", "Calls by origin.", calls);
        let failures = self.failures.iter();
        let failures = failures.map(|(kind, count)| (format!(",class=\"{kind}\""), *count));
        text.add("failures", "Failures of the provider by kind.", failures);
        text.text
    }
}

/// Counters in Prometheus' text format.
struct CounterText {
    text: String,
    /// The escaped label.
    model: String,
}

impl CounterText {
    fn add_one(&mut self, name: &str, help: &str, value: u64) {
        self.add(name, help, [(String::new(), value)]);
    }

    fn add(&mut self, name: &str, help: &str, values: impl IntoIterator<Item = (String, u64)>) {
        let name = format!("innkeeper_model_{name}_total");
        self.text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} counter\n"));
        for (labels, value) in values {
            let model = &self.model;
            self.text.push_str(&format!("{name}{{model=\"{model}\"{labels}}} {value}\n"));
        }
    }
}
