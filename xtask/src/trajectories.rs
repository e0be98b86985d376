//! `trajectories`: replays the golden actions of public benchmarks through a host and an agent.

use std::fs;

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, install_trajectory_benchmarks};
use crate::{TaskResult, figures, output};

const PAGE_PATH: &str = "docs/reports/trajectories.md";

/// The benchmarks, as the script names them.
const FAMILIES: [&str; 4] = ["bfcl", "retail", "airline", "banking"];

/// The columns after the name of the benchmark, with the keys of the example.
const COLUMNS: [(&str, &str); 8] = [
    ("tasks", "tasks"),
    ("golden calls", "calls"),
    ("of these, errors", "errors"),
    ("of these, of discovered tools", "discovered"),
    ("runs", "runs"),
    ("equal runs", "equal"),
    ("altered runs", "alterations"),
    ("differences found", "noticed"),
];

/// Replays every task. `--tenth` replays every tenth task; `--write` updates the page.
///
/// # Errors
///
/// A benchmark cannot be installed, a result or a final state differs, or the comparison misses an
/// alteration.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (tenth, write) = match arguments {
        [] => (false, false),
        ["--tenth"] => (true, false),
        ["--write"] => (false, true),
        other => return Err(format!("`trajectories` takes no `{}`", other.join(" "))),
    };
    let out = repository_root().join("target/trajectories");
    fs::create_dir_all(&out).map_err(|error| format!("`{}`: {error}", relative_path(&out)))?;
    let python = install_trajectory_benchmarks()?;
    Program::cargo(BUILD_ARGS).run()?;
    let replay = repository_root().join("target/debug/examples/trajectories");
    let script = repository_root().join("xtask/trajectories/trajectories.py");
    let mut rows = vec![head()];
    for family in FAMILIES {
        let file = out.join(format!("{family}.json"));
        let record = Program::new(&python).env("PYTHONHASHSEED", "0").path_arg(&script);
        let record = record.args("record").arg(family).path_arg(&file);
        if tenth { record.arg("--tenth") } else { record }.run()?;
        let line = Program::new(&replay)
            .path_arg(&python)
            .path_arg(&script)
            .arg(family)
            .path_arg(&file)
            .output()?;
        rows.push(row(&line)?);
    }
    let commit = Program::new("git").args("rev-parse --short HEAD").output()?;
    let machine = figures::describe_machine();
    let table = figures::markdown_table(&rows);
    let figures = format!("Commit `{}`; {machine}.\n\n{table}", commit.trim());
    output::print_line(&figures);
    if write { figures::write_to_page(PAGE_PATH, "trajectories", &figures) } else { Ok(()) }
}

fn head() -> Vec<String> {
    ["benchmark"].into_iter().chain(COLUMNS.map(|(title, _)| title)).map(str::to_owned).collect()
}

fn row(line: &str) -> TaskResult<Vec<String>> {
    let figures: Value =
        serde_json::from_str(line).map_err(|error| format!("invalid figures `{line}`: {error}"))?;
    let name = figures["family"].as_str().unwrap_or_default().to_owned();
    let counts = COLUMNS.map(|(_, key)| figures[key].to_string());
    Ok([name].into_iter().chain(counts).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_figures_of_a_benchmark_become_a_row() {
        let line = r#"{"family":"bfcl","tasks":2,"calls":9,"errors":1,"discovered":0,"runs":4,
            "equal":3,"alterations":3,"noticed":2}"#;
        let row = row(line).unwrap();
        assert_eq!(row, ["bfcl", "2", "9", "1", "0", "4", "3", "3", "2"]);
        assert_eq!(row.len(), head().len());
        assert!(super::row("none").is_err());
    }
}
