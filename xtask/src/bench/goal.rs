//! The goals of the host's figures, with the measured values.

use super::report::{Samples, format_number};
use super::runs::{INNKEEPER, RAW_PIPE, RMCP};
use crate::{figures, output};

/// A goal for one figure of the host, absolute or relative to another client.
struct Goal {
    title: &'static str,
    case: &'static str,
    runtime: &'static str,
    key: &'static str,
    /// The client whose figure is the divisor; without a client, `unit` is the divisor.
    baseline: Option<&'static str>,
    unit: f64,
    bound: GoalBound,
}

#[derive(Clone, Copy)]
pub(super) enum GoalBound {
    AtMost(f64),
    AtLeast(f64),
}

const fn goal(
    description: &'static str,
    path: [&'static str; 3],
    against: &'static str,
    bound: GoalBound,
) -> Goal {
    let [case, runtime, key] = path;
    Goal { title: description, case, runtime, key, baseline: Some(against), unit: 1.0, bound }
}

const GOALS: &[Goal] = &[
    goal(
        "one call at a time ÷ raw pipe",
        ["sequential", "current", "p50_us"],
        RAW_PIPE,
        GoalBound::AtMost(1.35),
    ),
    goal(
        "threads: one at a time ÷ raw pipe",
        ["sequential", "multi", "p50_us"],
        RAW_PIPE,
        GoalBound::AtMost(1.7),
    ),
    goal(
        "50 in flight: calls/s ÷ rmcp",
        ["flight", "current", "per_second"],
        RMCP,
        GoalBound::AtLeast(7.0),
    ),
    goal(
        "threads: calls/s ÷ rmcp",
        ["flight", "multi", "per_second"],
        RMCP,
        GoalBound::AtLeast(4.0),
    ),
    goal(
        "500 in flight over 10 servers: calls/s ÷ rmcp",
        ["servers", "current", "per_second"],
        RMCP,
        GoalBound::AtLeast(8.0),
    ),
    goal(
        "10 kB round trip ÷ raw pipe",
        ["medium", "current", "p50_us"],
        RAW_PIPE,
        GoalBound::AtMost(1.6),
    ),
    goal(
        "1 MB round trip, not decoded ÷ raw pipe",
        ["message", "current", "p50_us"],
        RAW_PIPE,
        GoalBound::AtMost(1.3),
    ),
    goal("20 servers ready ÷ rmcp", ["start", "current", "ready_ms"], RMCP, GoalBound::AtMost(1.1)),
    goal("HTTP: one at a time ÷ rmcp", ["http", "current", "p50_us"], RMCP, GoalBound::AtMost(1.0)),
    goal("HTTP: SSE ÷ rmcp", ["http-events", "current", "p50_us"], RMCP, GoalBound::AtMost(1.0)),
    goal(
        "HTTP: 50 in flight, calls/s ÷ rmcp",
        ["http-flight", "current", "per_second"],
        RMCP,
        GoalBound::AtLeast(1.0),
    ),
    goal(
        "HTTP: 1 MB result ÷ rmcp",
        ["http-result", "current", "p50_us"],
        RMCP,
        GoalBound::AtMost(1.0),
    ),
    Goal {
        title: "idle memory with 20 servers and supervisors, MB",
        case: "start",
        runtime: "current",
        key: "total_kb",
        baseline: None,
        unit: 1024.0,
        bound: GoalBound::AtMost(10.0),
    },
];

impl Goal {
    fn measured_value(&self, samples: &Samples) -> Option<f64> {
        let Self { case, runtime, key, .. } = *self;
        match self.baseline {
            None => Some(samples.median(case, INNKEEPER, runtime, key)? / self.unit),
            Some(other) => samples.ratio(case, other, runtime, key),
        }
    }
}

impl GoalBound {
    pub(super) fn describe(self) -> String {
        match self {
            Self::AtMost(figure) => format!("≤ {figure}"),
            Self::AtLeast(figure) => format!("≥ {figure}"),
        }
    }

    /// Compares a measured value with the bound.
    pub(super) fn verdict(self, measured: Option<f64>) -> &'static str {
        match measured.map(|figure| self.is_met_by(figure)) {
            None => "not measured",
            Some(true) => "met",
            Some(false) => "MISSED",
        }
    }

    fn is_met_by(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }
}

fn table_rows(samples: &Samples) -> Vec<Vec<String>> {
    let mut rows = vec![["figure", "measured", "goal", ""].map(str::to_owned).to_vec()];
    for goal in GOALS {
        let measured = goal.measured_value(samples);
        let verdict_text = goal.bound.verdict(measured);
        rows.push(vec![
            goal.title.to_owned(),
            format_number(measured),
            goal.bound.describe(),
            verdict_text.to_owned(),
        ]);
    }
    rows
}

/// The goals as text columns.
pub(super) fn terminal_table(samples: &Samples) -> String {
    output::format_table(&table_rows(samples))
}

/// The goals as a Markdown table.
pub(super) fn markdown_table(samples: &Samples) -> String {
    figures::markdown_table(&table_rows(samples))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::runs::BENCH_RUNS;
    use super::*;

    #[test]
    fn goals_compare_with_the_right_peer_and_say_met_missed_or_not_measured() {
        let mut samples = Samples::default();
        for (entry, micros) in BENCH_RUNS[0].iter().zip([4.0, 16.0, 8.0, 9.0, 24.0, 10.0]) {
            samples.add(entry, &json!({"p50_us": micros}));
        }
        let rows = table_rows(&samples);
        assert_eq!(rows[1][1..], ["2.00", "≤ 1.35", "MISSED"]);
        assert_eq!(rows[2][1..], ["1.11", "≤ 1.7", "met"]);
        assert_eq!(rows[3][3], "not measured");
    }
}
