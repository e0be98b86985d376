//! `eval-local-model`: gives a small real model thirty tasks over each API.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_once, install_venv_for};
use crate::{TaskResult, figures, output, test};

const PAGE_PATH: &str = "docs/reports/local-model.md";

/// A proxy with the Ollama API, plus the dependencies that its package does not declare.
const OLLAMA_REQUIREMENTS: &str = include_str!("../eval_local_model/ollama.txt");
/// The Python version of the proxy.
const PYTHON: &str = "python3.13";

/// Runs the tasks; `--write` updates the page.
///
/// # Errors
///
/// A constrained call did not match its schema, or the server did not respond.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let write = match arguments {
        [] => false,
        ["--write"] => true,
        other => return Err(format!("`eval-local-model` takes no `{}`", other.join(" "))),
    };
    Program::cargo("build --locked --package innkeeper-testkit --bins").run()?;
    test::install_test_servers(&[])?;
    if let Err(problem) = install_ollama_proxy() {
        output::print_error(&format!("the Ollama API is unavailable: {problem}"));
    }
    let file = repository_root().join("target/models.jsonl");
    if file.exists() {
        fs::remove_file(&file).map_err(|error| format!("`{}`: {error}", relative_path(&file)))?;
    }
    Program::cargo("test --locked --package innkeeper-agent --test it live::")
        .args("-- --include-ignored --nocapture --test-threads 1")
        .env("INNKEEPER_FIGURES", &file.to_string_lossy())
        .run()?;
    let lines = fs::read_to_string(&file).unwrap_or_default();
    let table = figures::markdown_table(&table_rows(&lines)?);
    output::print_line(format_args!("\n{table}"));
    if !write {
        return Ok(());
    }
    if lines.is_empty() {
        return Err("no figures to write: no model ran".to_owned());
    }
    let commit = Program::new("git").args("rev-parse --short HEAD").output()?;
    let figures =
        format!("{}; commit `{}`.\n\n{table}", figures::describe_machine(), commit.trim());
    figures::write_to_page(PAGE_PATH, "models", &figures)
}

/// Installs the proxy.
fn install_ollama_proxy() -> TaskResult {
    let home = repository_root().join("target/test-servers/ollambda");
    Program::new(PYTHON).args("--version").output().map_err(|_| format!("`{PYTHON}` not found"))?;
    install_once(&home, OLLAMA_REQUIREMENTS, |dir: &Path| {
        install_venv_for(PYTHON, dir, OLLAMA_REQUIREMENTS, "")
    })
}

fn table_rows(lines: &str) -> TaskResult<Vec<Vec<String>>> {
    let head = [
        "API",
        "mode",
        "n",
        "valid",
        "at once",
        "correct",
        "answered",
        "with the fact",
        "s each",
        "how the calls were made",
    ];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    for line in lines.lines() {
        let row: Value = serde_json::from_str(line)
            .map_err(|error| format!("invalid line of figures `{line}`: {error}"))?;
        rows.push(row_cells(&row, head.len()));
    }
    Ok(rows)
}

fn row_cells(row: &Value, count: usize) -> Vec<String> {
    let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
    if row.get("skipped").is_some() {
        let mut cells = vec![text("wire"), format!("SKIPPED: {}", text("skipped"))];
        cells.resize(count, String::new());
        return cells;
    }
    let mut cells = vec![text("wire"), text("way")];
    for key in ["asked", "valid", "at once", "correct", "answered", "told"] {
        cells.push(row[key].to_string());
    }
    cells.push(format!("{:.1}", row["seconds"].as_f64().unwrap_or_default()));
    cells.push(text("made"));
    cells
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_api_has_its_reason_in_the_table() {
        let lines = "{\"wire\":\"A\",\"way\":\"native\",\"asked\":30,\"valid\":2,\"at once\":2,\"correct\":1,\
                     \"answered\":1,\"told\":0,\"made\":\"native 2\",\"seconds\":1.25}\n\
                     {\"wire\":\"B\",\"skipped\":\"no B here\"}\n";
        let rows = table_rows(lines).unwrap();
        assert_eq!(rows[1][..6], ["A", "native", "30", "2", "2", "1"]);
        assert_eq!(rows[1][8..], ["1.2", "native 2"]);
        assert_eq!(rows[2][1], "SKIPPED: no B here");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        assert!(table_rows("none").is_err());
    }
}
