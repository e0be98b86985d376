//! The tables of `bench-repair`: by kind of mistake, by format.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::figures;

/// The counts of a row by name.
type CountsByName = BTreeMap<String, u64>;

/// A column of a table.
struct TableColumn {
    heading: &'static str,
    count: &'static str,
    /// The count that is 100 %; without it, the cell shows the absolute count.
    total: Option<&'static str>,
}

const fn share_column(
    heading: &'static str,
    count: &'static str,
    total_key: &'static str,
) -> TableColumn {
    TableColumn { heading, count, total: Some(total_key) }
}

const fn count_column(heading: &'static str, count: &'static str) -> TableColumn {
    TableColumn { heading, count, total: None }
}

const INNKEEPER_COLUMNS: &[TableColumn] = &[
    count_column("n", "n"),
    share_column("read, format known", "told", "n"),
    share_column("read, format unknown", "repaired", "n"),
    share_column("after one correction", "corrected", "n"),
    share_column("left as text", "missed", "n"),
    count_column("wrong calls", "wrong"),
];

const PARSER_COLUMNS: &[TableColumn] = &[
    count_column("n", "crate_n"),
    share_column("`tool-parser`", "crate", "crate_n"),
    count_column("wrong calls", "crate_wrong"),
    share_column("Innkeeper", "crate_ours", "crate_n"),
    count_column("n", "package_n"),
    share_column("`@ai-sdk-tool/parser`", "package", "package_n"),
    count_column("wrong calls", "package_wrong"),
    share_column("Innkeeper", "package_ours", "package_n"),
];

/// Kinds that the sums exclude: the first has no mistake, the second cannot be detected.
const EXCLUDED_SLIPS: [&str; 2] = ["none", "a single backslash before `t`"];

/// All tables with their headings. `result` has one row per kind of mistake and format.
pub(super) fn all_tables(result: &[Value]) -> String {
    let sections = [
        ("Innkeeper by kind of mistake", "slip", INNKEEPER_COLUMNS),
        ("Innkeeper by format", "form", INNKEEPER_COLUMNS),
        ("Published parsers by kind of mistake", "slip", PARSER_COLUMNS),
        ("Published parsers by format", "form", PARSER_COLUMNS),
    ];
    sections
        .iter()
        .map(|(heading, key, columns)| {
            format!("### {heading}\n\n{}", build_table(result, key, columns))
        })
        .collect::<Vec<_>>()
        .join("\n")
}

fn build_table(result: &[Value], key: &str, columns: &[TableColumn]) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut sums: BTreeMap<&str, CountsByName> = BTreeMap::new();
    let mut all = CountsByName::new();
    for row in result {
        let apart = row["slip"].as_str().is_some_and(|slip| EXCLUDED_SLIPS.contains(&slip));
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
    let first = if key == "slip" { "mistake" } else { "format" };
    let heading = std::iter::once(first).chain(columns.iter().map(|column| column.heading));
    let mut rows = vec![heading.map(str::to_owned).collect::<Vec<_>>()];
    let sum = if key == "slip" { "all except the first and the last" } else { "all" };
    for (name, counts) in names.iter().map(|name| (*name, &sums[name])).chain([(sum, &all)]) {
        let cells = columns.iter().map(|column| column.format_cell(counts));
        rows.push(std::iter::once(name.to_owned()).chain(cells).collect());
    }
    figures::markdown_table(&rows)
}

impl TableColumn {
    fn format_cell(&self, counts: &CountsByName) -> String {
        let count = |name: &str| counts.get(name).copied().unwrap_or_default();
        match self.total {
            None => count(self.count).to_string(),
            Some(total) if count(total) == 0 => "–".to_owned(),
            Some(total) => {
                format!("{:.1} %", 100.0 * count(self.count) as f64 / count(total) as f64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn rows_are_summed_without_correct_and_undetectable_cases() {
        let row = |slip: &str, form: &str, n: u64, corrected: u64| json!({"slip": slip, "form": form, "counts": {"n": n, "told": corrected, "crate_n": 0}});
        let [none, last] = EXCLUDED_SLIPS;
        let result =
            [row(none, "a", 4, 4), row("x", "a", 3, 2), row("x", "b", 1, 0), row(last, "a", 9, 0)];
        let text = all_tables(&result);
        assert!(text.contains("| none | 4 | 100.0 % |"), "{text}");
        assert!(text.contains("| x | 4 | 50.0 % | 0.0 % | 0.0 % | 0.0 % | 0 |"), "{text}");
        assert!(text.contains("| a | 3 | 66.7 % |"), "{text}");
        assert!(text.contains("| all except the first and the last | 4 | 50.0 % |"), "{text}");
        assert!(text.contains("| all | 4 | 50.0 % |"), "{text}");
        assert!(text.contains("| x | 0 | – | 0 | – |"), "{text}");
    }
}
