//! `eval-tool-search`: measures the search for tools on two public benchmarks.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_benchmarks, install_once, install_venv_with_options};
use crate::{TaskResult, figures, output};

const PAGE_PATH: &str = "docs/reports/tool-search.md";

/// The second benchmark. The evaluation only reads the package; its dependencies are not installed.
const REQUIREMENTS: &str = include_str!("../eval_tool_search/requirements.txt");

/// The benchmarks, as the examples name them.
const BENCHMARKS: [&str; 2] = ["BFCL", "LiveMCPBench"];

/// Measures the half of the tasks that served no tuning. `--write` updates the page; `--tuning`
/// measures the other half.
///
/// # Errors
///
/// A benchmark cannot be installed, or an example does not build or run.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (write, tuning) = match arguments {
        [] => (false, false),
        ["--write"] => (true, false),
        ["--tuning"] => (false, true),
        other => return Err(format!("`eval-tool-search` takes no `{}`", other.join(" "))),
    };
    let home = repository_root().join("target/test-servers");
    let out = repository_root().join("target/tool-search");
    for dir in [&home, &out] {
        fs::create_dir_all(dir).map_err(|error| format!("`{}`: {error}", relative_path(dir)))?;
    }
    install_benchmarks(&home)?;
    install_once(&home.join("livemcpbench"), REQUIREMENTS, |dir| {
        install_venv_with_options(dir, REQUIREMENTS, "--no-deps")
    })?;
    let quality = Program::cargo("run --locked --quiet --package innkeeper-toolcall")
        .args("--example search_quality --")
        .path_arg(&site_packages(&home.join("bfcl"))?.join("bfcl_eval/data"))
        .path_arg(&site_packages(&home.join("livemcpbench"))?)
        .path_arg(&out);
    if tuning { quality.arg("--tuning") } else { quality }.run()?;
    let rows = fs::read_to_string(out.join("rows.jsonl")).map_err(|error| error.to_string())?;
    let mut tokens = vec![token_head()];
    for benchmark in BENCHMARKS {
        let text = Program::cargo("run --locked --quiet --package innkeeper-agent")
            .args("--example search_tokens --")
            .path_arg(&out.join(format!("{benchmark}.json")))
            .output()?;
        tokens.push(token_row(benchmark, &parse(&text)?));
    }
    let half = if tuning { "half for tuning" } else { "other half" };
    let commit = Program::new("git").args("rev-parse --short HEAD").output()?;
    let figures = format!(
        "The {half}, commit `{}`; {}.\n\n{}\n{}",
        commit.trim(),
        figures::describe_machine(),
        figures::markdown_table(&quality_rows(&rows)?),
        figures::markdown_table(&tokens),
    );
    output::print_line(&figures);
    if write { figures::write_to_page(PAGE_PATH, "tool-search", &figures) } else { Ok(()) }
}

/// Returns the directory of the packages of a Python environment.
fn site_packages(venv: &Path) -> TaskResult<PathBuf> {
    let lib = venv.join("lib");
    let entries =
        fs::read_dir(&lib).map_err(|error| format!("`{}`: {error}", relative_path(&lib)))?;
    let mut found = entries.flatten().map(|entry| entry.path().join("site-packages"));
    found
        .find(|path| path.is_dir())
        .ok_or_else(|| format!("`{}` has no packages", relative_path(&lib)))
}

fn parse(line: &str) -> TaskResult<Value> {
    serde_json::from_str(line).map_err(|error| format!("invalid figures `{line}`: {error}"))
}

fn quality_rows(lines: &str) -> TaskResult<Vec<Vec<String>>> {
    let head = [
        "benchmark, query",
        "tools",
        "queries",
        "needed tools",
        "BM25, first 5",
        "Innkeeper, first 5",
        "BM25, first 10",
        "Innkeeper, first 10",
        "all needed: BM25, first 5",
        "all needed: Innkeeper, first 5",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for line in lines.lines() {
        let row = parse(line)?;
        let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
        let mut cells = vec![format!("{}, {}", text("benchmark"), text("kind"))];
        cells.extend(["tools", "tasks", "needed"].map(|key| row[key].to_string()));
        cells.extend((0..4).map(|at| share(&row["found"][at], &row["needed"])));
        cells.extend((0..2).map(|at| share(&row["complete"][at], &row["tasks"])));
        rows.push(cells);
    }
    Ok(rows)
}

fn token_head() -> Vec<String> {
    ["benchmark", "all tools", "first request", "last request, mean", "last request, largest"]
        .map(str::to_owned)
        .to_vec()
}

/// Returns the tokens of the requests, with their shares of the request with all tools.
fn token_row(benchmark: &str, figures: &Value) -> Vec<String> {
    let cells = ["first", "mean", "largest"]
        .map(|key| format!("{} ({})", figures[key], share(&figures[key], &figures["listing"])));
    [benchmark.to_owned(), figures["listing"].to_string()].into_iter().chain(cells).collect()
}

fn share(part: &Value, whole: &Value) -> String {
    match (part.as_f64(), whole.as_f64()) {
        (Some(part), Some(whole)) if whole > 0.0 => format!("{:.1} %", 100.0 * part / whole),
        _ => "–".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn figures_become_shares_of_the_needed_tools_and_of_the_listing() {
        let line = r#"{"benchmark":"B","kind":"task","tools":9,"tasks":4,"needed":8,"found":[2,4,6,8],"complete":[1,2,3,4]}"#;
        let rows = quality_rows(line).unwrap();
        assert_eq!(rows[0].len(), rows[1].len());
        assert_eq!(rows[1][0], "B, task");
        let shares = ["25.0 %", "50.0 %", "75.0 %", "100.0 %", "25.0 %", "50.0 %"];
        assert_eq!(rows[1][4..], shares);
        assert!(quality_rows("none").is_err());
        let figures = json!({"listing": 200, "first": 5, "mean": 10, "largest": 20});
        let row = token_row("B", &figures);
        assert_eq!(row, ["B", "200", "5 (2.5 %)", "10 (5.0 %)", "20 (10.0 %)"]);
        assert_eq!(row.len(), token_head().len());
    }
}
