//! The samples of all rounds, with medians, ratios and tables.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::runs::{
    BENCH_RUNS, BenchRun, INNKEEPER, PYTHON_SDK, RAW_PIPE, RMCP, TYPESCRIPT_SDK, case_columns,
};
use crate::{figures, output};

/// All measured figures by case, peer, runtime and key.
#[derive(Debug, Default)]
pub(super) struct Samples {
    figures: BTreeMap<[String; 4], Vec<f64>>,
}

impl Samples {
    /// Adds the figures of one JSON line.
    pub(super) fn add(&mut self, entry: &BenchRun, line: &Value) {
        for (key, value) in line.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                let key_path = [entry.case, entry.peer, entry.runtime, key].map(str::to_owned);
                self.figures.entry(key_path).or_default().push(number);
            }
        }
    }

    /// The median of one figure over all rounds.
    pub(super) fn median(&self, case: &str, peer: &str, runtime: &str, key: &str) -> Option<f64> {
        median(self.rounds([case, peer, runtime, key])?.to_vec())
    }

    /// The median ratio of a figure of the host to the same figure of another client.
    ///
    /// Each ratio has both figures from the same round, because the machine's speed changes between
    /// rounds.
    pub(super) fn ratio(&self, case: &str, peer: &str, runtime: &str, key: &str) -> Option<f64> {
        let innkeeper = self.rounds([case, INNKEEPER, runtime, key])?;
        let other = self.rounds([case, peer, runtime, key])?;
        let ratios = innkeeper.iter().zip(other).filter(|(_, other)| **other > 0.0);
        median(ratios.map(|(innkeeper, other)| innkeeper / other).collect())
    }

    /// One figure of all rounds, by case, peer, runtime and key.
    pub(super) fn rounds(&self, key_path: [&str; 4]) -> Option<&[f64]> {
        self.figures.get(&key_path.map(str::to_owned)).map(Vec::as_slice)
    }

    /// All samples as JSON.
    pub(super) fn json(&self) -> Value {
        let lines = self.figures.iter().map(|([case, peer, runtime, key], figures)| {
            json!({"case": case, "peer": peer, "runtime": runtime, "figure": key, "rounds": figures,
                "median": self.median(case, peer, runtime, key)})
        });
        Value::Array(lines.collect())
    }

    /// The medians as text columns.
    pub(super) fn terminal_table(&self) -> String {
        output::format_table(&self.table_rows())
    }

    /// The medians as a Markdown table.
    pub(super) fn markdown_table(&self) -> String {
        figures::markdown_table(&self.table_rows())
    }

    fn table_rows(&self) -> Vec<Vec<String>> {
        let heading = ["", "runtime", "raw pipe", "rmcp", "TypeScript SDK", "Python SDK"]
            .into_iter()
            .chain(["innkeeper", "÷ raw pipe", "÷ rmcp"]);
        let mut rows = vec![heading.map(str::to_owned).collect()];
        for case in BENCH_RUNS.iter().map(|entries| entries[0].case) {
            let (title, figures) = case_columns(case);
            for figure in figures {
                for runtime in ["current", "multi"] {
                    let median_of = |peer: &str| {
                        self.median(case, peer, runtime, figure.key)
                            .map(|value| value / figure.divisor)
                    };
                    let against = |peer: &str| self.ratio(case, peer, runtime, figure.key);
                    let figures = [
                        median_of(RAW_PIPE),
                        median_of(RMCP),
                        median_of(TYPESCRIPT_SDK),
                        median_of(PYTHON_SDK),
                        median_of(INNKEEPER),
                        against(RAW_PIPE),
                        against(RMCP),
                    ];
                    let mut row = vec![format!("{title}: {}", figure.heading), runtime.to_owned()];
                    row.extend(figures.map(format_number));
                    rows.push(row);
                }
            }
        }
        rows
    }
}

pub(super) fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len().is_multiple_of(2) {
        Some(f64::midpoint(*figures.get(middle.checked_sub(1)?)?, figures[middle]))
    } else {
        Some(figures[middle])
    }
}

/// Formats a figure with three significant digits; a missing figure is a dash.
pub(super) fn format_number(figure: Option<f64>) -> String {
    match figure {
        None => "–".to_owned(),
        Some(figure) if figure.abs() >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure.abs() >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(figures: &[f64]) -> Samples {
        let mut samples = Samples::default();
        for figure in figures {
            samples.add(&BENCH_RUNS[0][0], &json!({"peer": "bare", "p50_us": figure}));
        }
        samples
    }

    #[test]
    fn the_median_is_the_middle_of_odd_and_even_rounds() {
        let median =
            |figures: &[f64]| samples(figures).median("sequential", "bare", "current", "p50_us");
        assert_eq!(median(&[9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 9.0]), Some(3.0));
        assert_eq!(median(&[]), None);
    }

    #[test]
    fn a_ratio_is_the_median_of_what_each_round_gave() {
        let mut samples = samples(&[1.0, 10.0, 2.0]);
        for figure in [2.0, 30.0, 3.0] {
            let innkeeper_run = BENCH_RUNS[0].iter().find(|entry| entry.is_innkeeper()).unwrap();
            samples.add(innkeeper_run, &json!({"p50_us": figure}));
        }
        assert_eq!(samples.ratio("sequential", RAW_PIPE, "current", "p50_us"), Some(2.0));
        assert_eq!(samples.ratio("sequential", RMCP, "current", "p50_us"), None);
    }

    #[test]
    fn a_client_with_one_runtime_has_its_figure_in_its_column_and_a_dash_in_the_other_row() {
        let mut samples = Samples::default();
        for (entry, micros) in BENCH_RUNS[0].iter().zip(1_u8..) {
            samples.add(entry, &json!({"p50_us": micros}));
        }
        let rows = samples.table_rows();
        assert_eq!(rows[0][4..7], ["TypeScript SDK", "Python SDK", "innkeeper"]);
        assert_eq!(
            rows[1][1..],
            ["current", "1.00", "2.00", "7.00", "8.00", "3.00", "3.00", "1.50"]
        );
        assert_eq!(rows[2][1..], ["multi", "4.00", "5.00", "–", "–", "6.00", "1.50", "1.20"]);
    }

    #[test]
    fn a_figure_that_is_not_there_is_a_dash() {
        assert_eq!(format_number(None), "–");
        assert_eq!(format_number(Some(1.5)), "1.50");
        let table = samples(&[4.0]).terminal_table();
        assert!(table.contains("4.00") && table.contains('–'));
    }
}
