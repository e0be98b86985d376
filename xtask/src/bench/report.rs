//! The figures of all rounds, their medians, and the tables made of them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::plan::{BARE, Entry, OURS, PLAN, SDK, words};
use crate::say;

/// Every figure measured, by case, peer, runtime and key.
#[derive(Debug, Default)]
pub(super) struct Samples {
    figures: BTreeMap<[String; 4], Vec<f64>>,
}

impl Samples {
    /// Adds the numbers of one line.
    pub(super) fn add(&mut self, entry: &Entry, line: &Value) {
        for (key, value) in line.as_object().into_iter().flatten() {
            if let Some(number) = value.as_f64() {
                let place = [entry.case, entry.peer, entry.runtime, key].map(str::to_owned);
                self.figures.entry(place).or_default().push(number);
            }
        }
    }

    /// The median of one figure over the rounds.
    pub(super) fn median(&self, case: &str, peer: &str, runtime: &str, key: &str) -> Option<f64> {
        median(self.rounds([case, peer, runtime, key])?.to_vec())
    }

    /// The median over the rounds of one figure of the host divided by the same of another client.
    /// Both are from the same round: the machine's speed changes from one to the next.
    pub(super) fn ratio(&self, case: &str, peer: &str, runtime: &str, key: &str) -> Option<f64> {
        let ours = self.rounds([case, OURS, runtime, key])?;
        let other = self.rounds([case, peer, runtime, key])?;
        let ratios = ours.iter().zip(other).filter(|(_, other)| **other > 0.0);
        median(ratios.map(|(ours, other)| ours / other).collect())
    }

    fn rounds(&self, place: [&str; 4]) -> Option<&[f64]> {
        self.figures.get(&place.map(str::to_owned)).map(Vec::as_slice)
    }

    /// All figures of all rounds.
    pub(super) fn json(&self) -> Value {
        let lines = self.figures.iter().map(|([case, peer, runtime, key], figures)| {
            json!({"case": case, "peer": peer, "runtime": runtime, "figure": key, "rounds": figures,
                "median": self.median(case, peer, runtime, key)})
        });
        Value::Array(lines.collect())
    }

    /// The medians as a person reads them on a terminal.
    pub(super) fn table(&self) -> String {
        say::table(&self.rows())
    }

    /// The same for a page.
    pub(super) fn markdown(&self) -> String {
        markdown(&self.rows())
    }

    fn rows(&self) -> Vec<Vec<String>> {
        let heading = ["", "runtime", "bare pipe", "rmcp", "innkeeper", "÷ bare", "÷ rmcp"];
        let mut rows = vec![heading.map(str::to_owned).to_vec()];
        for case in PLAN.iter().map(|entries| entries[0].case) {
            let (title, figures) = words(case);
            for figure in figures {
                for runtime in ["current", "multi"] {
                    let of = |peer: &str| {
                        self.median(case, peer, runtime, figure.key)
                            .map(|value| value / figure.divisor)
                    };
                    let against = |peer: &str| self.ratio(case, peer, runtime, figure.key);
                    let figures = [of(BARE), of(SDK), of(OURS), against(BARE), against(SDK)];
                    let mut row = vec![format!("{title}: {}", figure.called), runtime.to_owned()];
                    row.extend(figures.map(number));
                    rows.push(row);
                }
            }
        }
        rows
    }
}

fn median(mut figures: Vec<f64>) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let middle = figures.len() / 2;
    if figures.len().is_multiple_of(2) {
        Some(f64::midpoint(*figures.get(middle.checked_sub(1)?)?, figures[middle]))
    } else {
        Some(figures[middle])
    }
}

/// Three digits that mean something, or a dash.
pub(super) fn number(figure: Option<f64>) -> String {
    match figure {
        None => "–".to_owned(),
        Some(figure) if figure.abs() >= 100.0 => format!("{figure:.0}"),
        Some(figure) if figure.abs() >= 10.0 => format!("{figure:.1}"),
        Some(figure) => format!("{figure:.2}"),
    }
}

/// Rows as a table of a page; the first is the heading.
pub(super) fn markdown(rows: &[Vec<String>]) -> String {
    let mut text = String::new();
    for (at, row) in rows.iter().enumerate() {
        text.push_str(&format!("| {} |\n", row.join(" | ")));
        if at == 0 {
            let columns: Vec<&str> = row
                .iter()
                .enumerate()
                .map(|(at, _)| if at == 0 { "---" } else { "---:" })
                .collect();
            text.push_str(&format!("| {} |\n", columns.join(" | ")));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples(figures: &[f64]) -> Samples {
        let mut samples = Samples::default();
        for figure in figures {
            samples.add(&PLAN[0][0], &json!({"peer": "bare", "p50_us": figure}));
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
            let ours = PLAN[0].iter().find(|entry| entry.is_ours()).unwrap();
            samples.add(ours, &json!({"p50_us": figure}));
        }
        assert_eq!(samples.ratio("sequential", BARE, "current", "p50_us"), Some(2.0));
        assert_eq!(samples.ratio("sequential", SDK, "current", "p50_us"), None);
    }

    #[test]
    fn a_figure_that_is_not_there_is_a_dash() {
        assert_eq!(number(None), "–");
        assert_eq!(number(Some(1.5)), "1.50");
        let table = samples(&[4.0]).table();
        assert!(table.contains("4.00") && table.contains('–'));
    }
}
