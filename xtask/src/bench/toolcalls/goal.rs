//! The goals of the tool-call parser, with the measured values.

use super::super::goal::GoalBound;
use super::super::report::{Samples, format_number};
use super::cases::{
    BenchParser, CASES, CODE_LONG, CODE_SHORT, HERMES_64, PROSE_LONG, PROSE_SHORT_PACKAGE,
    TextShape, UNCLOSED, XML_64,
};

/// The heading row and one row per goal.
pub(super) fn table_rows(samples: &Samples) -> Vec<Vec<String>> {
    let innkeeper_median = |case, key| samples.median(case, BenchParser::Innkeeper.name(), "", key);
    let rate = |case, peer: BenchParser| samples.ratio(case, peer.name(), "", "mb_per_second");
    let goals = [
        (
            "Hermes: time per byte ÷ 64 KiB, maximum",
            worst_ratio(samples, TextShape::Hermes),
            GoalBound::AtMost(1.5),
        ),
        (
            "XML: time per byte ÷ 64 KiB, maximum",
            worst_ratio(samples, TextShape::Xml),
            GoalBound::AtMost(1.5),
        ),
        ("Hermes, 64 KiB: ms", innkeeper_median(HERMES_64, "ms"), GoalBound::AtMost(20.0)),
        ("XML, 64 KiB: ms", innkeeper_median(XML_64, "ms"), GoalBound::AtMost(20.0)),
        (
            "unclosed, 100 MB: memory MB",
            innkeeper_median(UNCLOSED, "growth_kb").map(|kb| kb / 1024.0),
            GoalBound::AtMost(4.0),
        ),
        (
            "prose, 4 kB chunks ÷ memchr",
            rate(PROSE_LONG, BenchParser::Memchr),
            GoalBound::AtLeast(0.333),
        ),
        (
            "prose, 16 B chunks ÷ @ai-sdk-tool/parser",
            rate(PROSE_SHORT_PACKAGE, BenchParser::AiSdkPackage),
            GoalBound::AtLeast(20.0),
        ),
        (
            "prose with code, 16 B chunks ÷ memchr3",
            rate(CODE_SHORT, BenchParser::Memchr3),
            GoalBound::AtLeast(0.15),
        ),
        (
            "prose with code, 4 kB chunks ÷ memchr3",
            rate(CODE_LONG, BenchParser::Memchr3),
            GoalBound::AtLeast(0.1),
        ),
    ];
    let mut rows = vec![["figure", "measured", "goal", ""].map(str::to_owned).to_vec()];
    for (description, measured, bound) in goals {
        let verdict = bound.verdict(measured).to_owned();
        rows.push(vec![description.to_owned(), format_number(measured), bound.describe(), verdict]);
    }
    rows
}

/// The maximum over all sizes of the median time per byte, relative to 64 KiB.
fn worst_ratio(samples: &Samples, shape: TextShape) -> Option<f64> {
    CASES
        .iter()
        .filter(|case| case.shape == shape)
        .filter_map(|case| {
            samples.median(case.name, BenchParser::Innkeeper.name(), "", "to_reference")
        })
        .max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::runs::BenchRun;
    use super::*;

    #[test]
    fn the_worst_ratio_to_64_kib_counts() {
        let mut samples = Samples::default();
        for (case, ratios) in
            [("Hermes, 1 MB", [1.2, 1.2, 9.0]), ("Hermes, 8 KiB", [1.0, 1.1, 1.1])]
        {
            for ratio in ratios {
                let entry = BenchRun { case, peer: BenchParser::Innkeeper.name(), runtime: "" };
                samples.add(&entry, &json!({"to_reference": ratio}));
            }
        }
        let rows = table_rows(&samples);
        assert_eq!(rows[1][1..], ["1.20", "≤ 1.5", "met"]);
        assert_eq!(rows[2][3], "not measured");
    }
}
