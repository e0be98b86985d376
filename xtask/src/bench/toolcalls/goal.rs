//! What the interceptor is to reach, and what it does reach.

use super::super::goal::Bound;
use super::super::report::{Samples, number};
use super::plan::{
    CASES, HERMES_64, PROSE_LONG, PROSE_SHORT_PACKAGE, Peer, Shape, UNCLOSED, XML_64,
};

/// The heading and each goal with its word.
pub(super) fn rows(samples: &Samples) -> Vec<Vec<String>> {
    let ours = |case, key| samples.median(case, Peer::Ours.name(), "", key);
    let rate = |case, peer: Peer| samples.ratio(case, peer.name(), "", "mb_per_second");
    let goals = [
        (
            "Hermes: time a byte ÷ that of 64 KiB, the worst",
            worst(samples, Shape::Hermes),
            Bound::AtMost(1.5),
        ),
        (
            "XML: time a byte ÷ that of 64 KiB, the worst",
            worst(samples, Shape::Xml),
            Bound::AtMost(1.5),
        ),
        ("Hermes, 64 KiB: ms", ours(HERMES_64, "ms"), Bound::AtMost(20.0)),
        ("XML, 64 KiB: ms", ours(XML_64, "ms"), Bound::AtMost(20.0)),
        (
            "never closed, 100 MB: memory MB",
            ours(UNCLOSED, "growth_kb").map(|kb| kb / 1024.0),
            Bound::AtMost(4.0),
        ),
        ("prose by 4 kB ÷ memchr", rate(PROSE_LONG, Peer::Memchr), Bound::AtLeast(0.333)),
        (
            "prose by 16 B ÷ @ai-sdk-tool/parser",
            rate(PROSE_SHORT_PACKAGE, Peer::Package),
            Bound::AtLeast(20.0),
        ),
    ];
    let mut rows = vec![["goal", "reached", "wanted", ""].map(str::to_owned).to_vec()];
    for (what, reached, bound) in goals {
        let word = bound.word(reached).to_owned();
        rows.push(vec![what.to_owned(), number(reached), bound.words(), word]);
    }
    rows
}

/// The greatest of the medians of each size's time a byte, divided by that of 64 KiB.
fn worst(samples: &Samples, shape: Shape) -> Option<f64> {
    CASES
        .iter()
        .filter(|case| case.shape == shape)
        .filter_map(|case| samples.median(case.name, Peer::Ours.name(), "", "to_beside"))
        .max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::super::plan::Entry;
    use super::*;

    #[test]
    fn the_size_that_is_worst_beside_64_kib_is_the_one_that_counts() {
        let mut samples = Samples::default();
        for (case, ratios) in
            [("Hermes, 1 MB", [1.2, 1.2, 9.0]), ("Hermes, 8 KiB", [1.0, 1.1, 1.1])]
        {
            for ratio in ratios {
                let entry = Entry { case, peer: Peer::Ours.name(), runtime: "" };
                samples.add(&entry, &json!({"to_beside": ratio}));
            }
        }
        let rows = rows(&samples);
        assert_eq!(rows[1][1..], ["1.20", "≤ 1.5", "met"]);
        assert_eq!(rows[2][3], "not measured");
    }
}
