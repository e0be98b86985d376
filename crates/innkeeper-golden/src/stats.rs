//! Statistics over many goldens.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::file::{Golden, ReplyRecord};

/// What a set of goldens covers. All maps count by name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Statistics {
    /// The number of goldens.
    pub goldens: usize,
    /// The goldens of each provider.
    pub providers: BTreeMap<String, usize>,
    /// The goldens of each HTTP API.
    pub apis: BTreeMap<String, usize>,
    /// The goldens by category.
    #[serde(flatten)]
    pub categories: CategoryStatistics,
    /// The goldens of each origin.
    pub origins: BTreeMap<String, usize>,
    /// The calls that reached a server, of each tool.
    pub tools: BTreeMap<String, ToolStatistics>,
    /// The failures of calls and requests.
    #[serde(flatten)]
    pub failures: FailureStatistics,
    /// When the goldens were recorded.
    #[serde(flatten)]
    pub recorded: RecordingTimes,
}

/// The goldens by category.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CategoryStatistics {
    /// The goldens of each category.
    #[serde(rename = "categories")]
    pub counts: BTreeMap<String, usize>,
    /// The goldens without a category.
    pub without_category: usize,
}

/// The failures by class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FailureStatistics {
    /// The failed calls.
    #[serde(rename = "call_failures")]
    pub calls: BTreeMap<String, usize>,
    /// The failed requests to models: the class, or `status_503`, or `silent` without any response.
    #[serde(rename = "provider_failures")]
    pub providers: BTreeMap<String, usize>,
}

/// When goldens were recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RecordingTimes {
    /// The time of the oldest recording.
    pub oldest: Option<String>,
    /// The time of the newest recording.
    pub newest: Option<String>,
}

/// The calls of one tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ToolStatistics {
    /// The number of calls.
    pub calls: usize,
    /// The failed calls of each class; `tool_error` if the tool reported the failure, and
    /// `abandoned` if the run gave up first.
    pub failures: BTreeMap<String, usize>,
}

impl Statistics {
    /// Counts the goldens.
    pub fn collect(goldens: &[&Golden]) -> Self {
        let mut statistics = Self { goldens: goldens.len(), ..Self::default() };
        for golden in goldens {
            statistics.add(golden);
        }
        let times = goldens.iter().map(|golden| &golden.recorded_at);
        statistics.recorded.oldest = times.clone().min().cloned();
        statistics.recorded.newest = times.max().cloned();
        statistics
    }

    fn add(&mut self, golden: &Golden) {
        count(&mut self.providers, &golden.input.provider);
        count(&mut self.apis, &golden.input.api);
        count(&mut self.origins, golden.origin.as_str());
        match golden.category {
            Some(category) => count(&mut self.categories.counts, category.as_str()),
            None => self.categories.without_category += 1,
        }
        for call in &golden.tool_calls {
            let tool = self.tools.entry(call.name.clone()).or_default();
            tool.calls += 1;
            let Some(class) = call.outcome.failure_class() else { continue };
            count(&mut tool.failures, class);
            count(&mut self.failures.calls, class);
        }
        for exchange in &golden.provider_responses {
            match &exchange.response {
                ReplyRecord::Http(response) if response.status < 400 => {}
                ReplyRecord::Http(response) => {
                    count(&mut self.failures.providers, &format!("status_{}", response.status));
                }
                ReplyRecord::Failed { kind, .. } => count(&mut self.failures.providers, kind),
                ReplyRecord::Silent {} => count(&mut self.failures.providers, "silent"),
            }
        }
    }
}

fn count(counts: &mut BTreeMap<String, usize>, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn golden(recorded_at: &str, category: Option<&str>, calls: &Value) -> Golden {
        let failure = json!({"failed": {"ms": 1, "kind": "connection", "message": "gone"}});
        let text = json!({
            "version": 1, "test_name": "t", "origin": "recorded", "category": category,
            "recorded_at": recorded_at, "program": "p",
            "input": {
                "server_config": {}, "system_prompt": "", "provider": "openai", "model": "m",
                "api": "chat", "base_url": "http://a.example", "user_prompt": "", "namespace": "",
                "streaming": true, "settings": {},
            },
            "golden_output": {}, "tool_calls": calls,
            "provider_responses": [{
                "iteration": 1,
                "request": {"method": "POST", "url": "u", "body": null, "begin_ms": 0},
                "response": failure,
            }],
        });
        Golden::from_json(&text.to_string()).unwrap()
    }

    #[test]
    fn goldens_are_counted_by_what_they_cover() {
        let call = |name: &str, outcome: Value| {
            json!({"name": name, "arguments": {}, "round": 1,
            "begin_ms": 0, "end_ms": 1, "outcome": outcome})
        };
        let calls = json!([
            call("fs.read", json!({"result": {}})),
            call("fs.read", json!({"tool_error": {}})),
            call("fs.read", json!({"failed": {"class": "timed_out", "message": "late"}})),
            call("fs.list", json!({"abandoned": {}})),
        ]);
        let newer = golden("2026-11-29T05:40:00Z", Some("error_recovery"), &calls);
        let older = golden("2026-10-01T00:00:00Z", None, &json!([]));
        let statistics = Statistics::collect(&[&newer, &older]);
        let expected = json!({
            "goldens": 2, "providers": {"openai": 2}, "apis": {"chat": 2},
            "categories": {"error_recovery": 1}, "without_category": 1, "origins": {"recorded": 2},
            "tools": {
                "fs.list": {"calls": 1, "failures": {"abandoned": 1}},
                "fs.read": {"calls": 3, "failures": {"timed_out": 1, "tool_error": 1}},
            },
            "call_failures": {"abandoned": 1, "timed_out": 1, "tool_error": 1},
            "provider_failures": {"connection": 2},
            "oldest": "2026-10-01T00:00:00Z", "newest": "2026-11-29T05:40:00Z",
        });
        assert_eq!(serde_json::to_value(&statistics).unwrap(), expected);
        assert_eq!(Statistics::collect(&[]), Statistics::default());
    }
}
