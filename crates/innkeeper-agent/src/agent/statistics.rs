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
    /// The number of tool calls that were run or refused.
    pub calls: u64,
    /// The number of those calls that were valid at the first attempt.
    pub first_attempt: u64,
    /// The number of those calls by origin, in the order of [`CALL_ORIGINS`].
    pub calls_by_origin: [u64; 5],
    /// The number of failed attempts before those calls.
    pub retries: u64,
    /// The number of requests after invalid calls.
    pub corrections: u64,
    /// The number of requests after failures of the provider.
    pub request_retries: u64,
    /// The number of runs that ended without a valid call.
    pub given_up: u64,
    /// The number of failures of the provider, by kind.
    pub failures: BTreeMap<Cow<'static, str>, u64>,
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
        for record in report.tool_calls.iter().filter(|record| !record.rejected) {
            self.calls += 1;
            self.first_attempt += u64::from(record.failed_attempts == 0);
            self.retries += u64::from(record.failed_attempts);
            let at = CALL_ORIGINS.iter().position(|mechanism| *mechanism == record.origin);
            self.calls_by_origin[at.unwrap_or_default()] += 1;
        }
    }

    /// Returns the mean number of failed attempts per call, or 0 without calls.
    pub fn mean_retries(&self) -> f64 {
        if self.calls == 0 { 0.0 } else { self.retries as f64 / self.calls as f64 }
    }

    /// Returns the counts as a JSON object.
    pub fn to_json(&self) -> Value {
        let origin_counts = CALL_ORIGINS.iter().zip(self.calls_by_origin);
        let calls: serde_json::Map<_, _> = origin_counts
            .map(|(mechanism, count)| (mechanism.name().to_owned(), count.into()))
            .collect();
        json!({
            "messages": self.runs,
            "answered": self.succeeded,
            "calls": self.calls,
            "first_attempt": self.first_attempt,
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
        let mut text = String::new();
        let mut counter = |name: &str, help: &str, values: &[(String, u64)]| {
            let name = format!("innkeeper_model_{name}_total");
            text.push_str(&format!("# HELP {name} {help}\n# TYPE {name} counter\n"));
            for (labels, value) in values {
                text.push_str(&format!("{name}{{model=\"{model}\"{labels}}} {value}\n"));
            }
        };
        let single = |value: u64| vec![(String::new(), value)];
        counter("messages", "Finished runs.", &single(self.runs));
        counter("answered", "Runs with a last response.", &single(self.succeeded));
        counter(
            "first_attempt_calls",
            "Calls valid at the first attempt.",
            &single(self.first_attempt),
        );
        counter("retries", "Failed attempts at a call.", &single(self.retries));
        let origin_counts = CALL_ORIGINS.iter().zip(self.calls_by_origin);
        let calls: Vec<_> = origin_counts
            .map(|(mechanism, count)| (format!(",mechanism=\"{}\"", mechanism.name()), count))
            .collect();
        counter("calls", "Calls by origin.", &calls);
        let failures = self.failures.iter();
        let failures: Vec<_> =
            failures.map(|(kind, count)| (format!(",class=\"{kind}\""), *count)).collect();
        counter("failures", "Failures of the provider by kind.", &failures);
        text
    }
}
