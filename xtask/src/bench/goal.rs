//! What the host is to reach, and what it does reach.

use super::plan::{BARE, OURS, SDK};
use super::report::{Samples, number};
use crate::{page, say};

/// A goal: the host's figure against another's, or by itself.
struct Goal {
    what: &'static str,
    case: &'static str,
    runtime: &'static str,
    key: &'static str,
    /// Whom the figure is divided by; for no one it is divided by `unit`.
    against: Option<&'static str>,
    unit: f64,
    bound: Bound,
}

#[derive(Clone, Copy)]
pub(super) enum Bound {
    AtMost(f64),
    AtLeast(f64),
}

const fn goal(
    what: &'static str,
    place: [&'static str; 3],
    against: &'static str,
    bound: Bound,
) -> Goal {
    let [case, runtime, key] = place;
    Goal { what, case, runtime, key, against: Some(against), unit: 1.0, bound }
}

const GOALS: &[Goal] = &[
    goal(
        "one call at a time ÷ bare",
        ["sequential", "current", "p50_us"],
        BARE,
        Bound::AtMost(1.7),
    ),
    goal(
        "one call at a time ÷ rmcp",
        ["sequential", "current", "p50_us"],
        SDK,
        Bound::AtMost(0.45),
    ),
    goal(
        "50 in flight: calls/s ÷ rmcp",
        ["flight", "current", "per_second"],
        SDK,
        Bound::AtLeast(6.0),
    ),
    goal("1 MB result ÷ bare", ["result", "current", "p50_us"], BARE, Bound::AtMost(1.5)),
    goal(
        "threads: one at a time ÷ rmcp",
        ["sequential", "multi", "p50_us"],
        SDK,
        Bound::AtMost(0.5),
    ),
    goal("threads: calls/s ÷ rmcp", ["flight", "multi", "per_second"], SDK, Bound::AtLeast(2.5)),
    goal("20 servers ready ÷ rmcp", ["start", "current", "ready_ms"], SDK, Bound::AtMost(1.0)),
    goal("HTTP: one at a time ÷ rmcp", ["http", "current", "p50_us"], SDK, Bound::AtMost(1.0)),
    goal("HTTP: as an event ÷ rmcp", ["http-events", "current", "p50_us"], SDK, Bound::AtMost(1.0)),
    goal(
        "HTTP: 50 in flight, calls/s ÷ rmcp",
        ["http-flight", "current", "per_second"],
        SDK,
        Bound::AtLeast(1.0),
    ),
    goal("HTTP: 1 MB result ÷ rmcp", ["http-result", "current", "p50_us"], SDK, Bound::AtMost(1.0)),
    Goal {
        what: "idle memory with 20 servers, MB",
        case: "start",
        runtime: "current",
        key: "idle_kb",
        against: None,
        unit: 1024.0,
        bound: Bound::AtMost(10.0),
    },
];

impl Goal {
    fn reached(&self, samples: &Samples) -> Option<f64> {
        let Self { case, runtime, key, .. } = *self;
        match self.against {
            None => Some(samples.median(case, OURS, runtime, key)? / self.unit),
            Some(other) => samples.ratio(case, other, runtime, key),
        }
    }
}

impl Bound {
    pub(super) fn words(self) -> String {
        match self {
            Self::AtMost(figure) => format!("≤ {figure}"),
            Self::AtLeast(figure) => format!("≥ {figure}"),
        }
    }

    /// How a figure stands to it.
    pub(super) fn word(self, reached: Option<f64>) -> &'static str {
        match reached.map(|figure| self.holds(figure)) {
            None => "not measured",
            Some(true) => "met",
            Some(false) => "MISSED",
        }
    }

    fn holds(self, figure: f64) -> bool {
        match self {
            Self::AtMost(most) => figure <= most,
            Self::AtLeast(least) => figure >= least,
        }
    }
}

fn rows(samples: &Samples) -> Vec<Vec<String>> {
    let mut rows = vec![["goal", "reached", "wanted", ""].map(str::to_owned).to_vec()];
    for goal in GOALS {
        let reached = goal.reached(samples);
        let word = goal.bound.word(reached);
        rows.push(vec![goal.what.to_owned(), number(reached), goal.bound.words(), word.to_owned()]);
    }
    rows
}

/// The goals on a terminal.
pub(super) fn table(samples: &Samples) -> String {
    say::table(&rows(samples))
}

/// The goals on a page.
pub(super) fn markdown_table(samples: &Samples) -> String {
    page::table(&rows(samples))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::plan::PLAN;
    use super::*;

    #[test]
    fn goals_compare_with_the_right_peer_and_say_met_missed_or_not_measured() {
        let mut samples = Samples::default();
        for (entry, micros) in PLAN[0].iter().zip([4.0, 16.0, 8.0, 9.0, 24.0, 10.0]) {
            samples.add(entry, &json!({"p50_us": micros}));
        }
        let rows = rows(&samples);
        assert_eq!(rows[1][1..], ["2.00", "≤ 1.7", "MISSED"]);
        assert_eq!(rows[2][1..], ["0.50", "≤ 0.45", "MISSED"]);
        assert_eq!(rows[5][1..], ["0.42", "≤ 0.5", "met"]);
        assert_eq!(rows[3][3], "not measured");
    }
}
