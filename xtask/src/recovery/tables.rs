//! The tables of a recovery: by what is wrong, and by form.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::page;

/// What is counted of a row.
type Counts = BTreeMap<String, u64>;

/// A column: its heading, and the count it shows.
struct Column {
    heading: &'static str,
    count: &'static str,
    /// What the count is a share of; without, it stands for itself.
    of: Option<&'static str>,
}

const fn share(heading: &'static str, count: &'static str, of: &'static str) -> Column {
    Column { heading, count, of: Some(of) }
}

const fn number(heading: &'static str, count: &'static str) -> Column {
    Column { heading, count, of: None }
}

const OURS: &[Column] = &[
    number("n", "n"),
    share("read, format known", "told", "n"),
    share("read, format unknown", "repaired", "n"),
    share("after one message", "corrected", "n"),
    share("taken for text", "missed", "n"),
    number("wrong calls", "wrong"),
];

const PEERS: &[Column] = &[
    number("n", "crate_n"),
    share("`tool-parser`", "crate", "crate_n"),
    number("wrong calls", "crate_wrong"),
    share("ours", "crate_ours", "crate_n"),
    number("n", "package_n"),
    share("`@ai-sdk-tool/parser`", "package", "package_n"),
    number("wrong calls", "package_wrong"),
    share("ours", "package_ours", "package_n"),
];

/// Nothing is wrong in the first of these, and nobody can tell that anything is in the second: sums
/// with them would say little.
const APART: [&str; 2] = ["none", "a single backslash before `t`"];

/// All tables with their headings. `result` has a row for each thing done wrong in each form.
pub(super) fn all(result: &[Value]) -> String {
    let parts = [
        ("What our parser and our loop do, by what is wrong", "slip", OURS),
        ("The same by form", "form", OURS),
        ("Beside published parsers, by what is wrong", "slip", PEERS),
        ("The same by form", "form", PEERS),
    ];
    let part = |(heading, key, columns): &(&str, &str, &[Column])| {
        format!("### {heading}\n\n{}", table(result, key, columns))
    };
    parts.iter().map(part).collect::<Vec<_>>().join("\n")
}

fn table(result: &[Value], key: &str, columns: &[Column]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, Counts> = BTreeMap::new();
    let mut all = Counts::new();
    for row in result {
        let apart = row["slip"].as_str().is_some_and(|slip| APART.contains(&slip));
        if key == "form" && apart {
            continue;
        }
        let name = row[key].as_str().unwrap_or_default();
        if !names.contains(&name) {
            names.push(name);
        }
        for (count, value) in row["counts"].as_object().into_iter().flatten() {
            let value = value.as_u64().unwrap_or_default();
            *sums.entry(name).or_default().entry(count.clone()).or_default() += value;
            if !apart {
                *all.entry(count.clone()).or_default() += value;
            }
        }
    }
    let first = if key == "slip" { "what is wrong" } else { "form" };
    let heading = std::iter::once(first).chain(columns.iter().map(|column| column.heading));
    let mut rows = vec![heading.map(str::to_owned).collect::<Vec<_>>()];
    let sum = if key == "slip" { "all but the first and the last" } else { "all" };
    for (name, counts) in names.iter().map(|name| (*name, &sums[name])).chain([(sum, &all)]) {
        let cells = columns.iter().map(|column| column.cell(counts));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    page::table(&rows)
}

impl Column {
    fn cell(&self, counts: &Counts) -> String {
        let count = |name: &str| counts.get(name).copied().unwrap_or_default();
        match self.of {
            None => count(self.count).to_string(),
            Some(of) if count(of) == 0 => "–".to_owned(),
            Some(of) => format!("{:.1} %", 100.0 * count(self.count) as f64 / count(of) as f64),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_summed_without_what_is_right_and_what_cannot_be_told() {
        let row = |slip: &str, form: &str, n: u64, told: u64| json!({"slip": slip, "form": form, "counts": {"n": n, "told": told, "crate_n": 0}});
        let [none, last] = APART;
        let result =
            [row(none, "a", 4, 4), row("x", "a", 3, 2), row("x", "b", 1, 0), row(last, "a", 9, 0)];
        let text = all(&result);
        assert!(text.contains("| none | 4 | 100.0 % |"), "{text}");
        assert!(text.contains("| x | 4 | 50.0 % | 0.0 % | 0.0 % | 0.0 % | 0 |"), "{text}");
        assert!(text.contains("| a | 3 | 66.7 % |"), "{text}");
        assert!(text.contains("| all but the first and the last | 4 | 50.0 % |"), "{text}");
        assert!(text.contains("| all | 4 | 50.0 % |"), "{text}");
        assert!(text.contains("| x | 0 | – | 0 | – |"), "{text}");
    }
}
