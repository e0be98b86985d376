//! `coverage`: which lines the tests run, a row per crate, by cargo-tarpaulin.

use std::collections::BTreeMap;
use std::fs;

use serde_json::Value;

use crate::program::{relative, root};
use crate::test::Tool;
use crate::{Chore, say};

/// Runs the tests under the tool and prints the table.
///
/// # Errors
///
/// A test fails, or the report cannot be read.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`coverage` takes no `{argument}`"));
    }
    let line = "--workspace --exclude xtask --engine llvm --follow-exec --skip-clean --timeout 600 \
                --out Json --output-dir target/coverage --target-dir target/coverage";
    Tool::TARPAULIN.provide()?.line(line).run()?;
    let file = root().join("target/coverage/tarpaulin-report.json");
    let text =
        fs::read_to_string(&file).map_err(|error| format!("`{}`: {error}", relative(&file)))?;
    let report: Value =
        serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", relative(&file)))?;
    say::line(say::table(&rows(&by_crate(&report))));
    Ok(())
}

/// Covered and coverable lines of each crate, test files left out.
fn by_crate(report: &Value) -> BTreeMap<String, (u64, u64)> {
    let mut crates: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for file in report["files"].as_array().into_iter().flatten() {
        let parts: Vec<&str> =
            file["path"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        let Some(at) = parts.iter().rposition(|part| *part == "crates") else { continue };
        let is_test = parts.contains(&"tests") || parts.last() == Some(&"tests.rs");
        let Some(name) = parts.get(at + 1).filter(|_| !is_test) else { continue };
        let entry = crates.entry((*name).to_owned()).or_default();
        entry.0 += file["covered"].as_u64().unwrap_or(0);
        entry.1 += file["coverable"].as_u64().unwrap_or(0);
    }
    crates
}

fn rows(crates: &BTreeMap<String, (u64, u64)>) -> Vec<Vec<String>> {
    let row = |name: &str, (covered, coverable): (u64, u64)| {
        let share = 100.0 * covered as f64 / coverable.max(1) as f64;
        vec![name.to_owned(), covered.to_string(), coverable.to_string(), format!("{share:.1} %")]
    };
    let all = crates.values().fold((0, 0), |sum, each| (sum.0 + each.0, sum.1 + each.1));
    let mut rows = vec![["crate", "covered", "lines", "share"].map(str::to_owned).to_vec()];
    rows.extend(crates.iter().map(|(name, counts)| row(name, *counts)));
    rows.push(row("all", all));
    rows
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn lines_are_summed_by_crate_without_test_files() {
        let file = |path: &[&str], covered: u64| json!({"path": path, "covered": covered, "coverable": 10});
        let report = json!({"files": [
            file(&["/", "x", "crates", "a", "src", "lib.rs"], 4),
            file(&["/", "x", "crates", "a", "src", "b.rs"], 6),
            file(&["/", "x", "crates", "a", "src", "b", "tests.rs"], 9),
            file(&["/", "x", "crates", "c", "tests", "it", "main.rs"], 9),
        ]});
        let crates = by_crate(&report);
        assert_eq!(crates.len(), 1);
        assert_eq!(crates["a"], (10, 20));
        assert_eq!(rows(&crates)[2][3], "50.0 %");
    }
}
