//! `models`: a small real model is given thirty tasks over every wire it can be served over.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Program, relative, root};
use crate::test::{install, once};
use crate::{Chore, page, say, test};

const PAGE: &str = "docs/local-models.md";

/// A proxy that speaks Ollama's wire, and what it forgot to ask for.
const OLLAMA: &str = include_str!("../model/ollama.txt");
/// The Python that the proxy needs.
const PYTHON: &str = "python3.13";

/// Runs the tasks; `--write` puts the figures on their page.
///
/// # Errors
///
/// A call that was held to its form did not fit, or the server did not answer.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let write = match arguments {
        [] => false,
        ["--write"] => true,
        other => return Err(format!("`models` takes no `{}`", other.join(" "))),
    };
    Program::cargo("build --locked --package innkeeper-testkit --bins").run()?;
    test::servers(&[])?;
    if let Err(problem) = provide() {
        say::problem(&format!("nobody speaks Ollama's wire here: {problem}"));
    }
    let file = root().join("target/models.jsonl");
    if file.exists() {
        fs::remove_file(&file).map_err(|error| format!("`{}`: {error}", relative(&file)))?;
    }
    Program::cargo("test --locked --package innkeeper-agent --test it live::")
        .line("-- --include-ignored --nocapture --test-threads 1")
        .variable("INNKEEPER_FIGURES", &file.to_string_lossy())
        .run()?;
    // Without a model the tests have said why, and pass.
    let lines = fs::read_to_string(&file).unwrap_or_default();
    let table = page::table(&rows(&lines)?);
    say::line(format_args!("\n{table}"));
    if !write {
        return Ok(());
    }
    if lines.is_empty() {
        return Err("there are no figures to be written: no model ran".to_owned());
    }
    let commit = Program::new("git").line("rev-parse --short HEAD").output()?;
    let figures = format!("{}; commit `{}`.\n\n{table}", page::machine(), commit.trim());
    page::write(PAGE, "models", &figures)
}

/// Puts the proxy in place.
fn provide() -> Chore {
    let home = root().join("target/test-servers/ollambda");
    Program::new(PYTHON)
        .line("--version")
        .output()
        .map_err(|_| format!("there is no `{PYTHON}`"))?;
    once(&home, OLLAMA, |folder: &Path| install(PYTHON, folder, OLLAMA, ""))
}

fn rows(lines: &str) -> Chore<Vec<Vec<String>>> {
    let head = [
        "wire",
        "way",
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
            .map_err(|error| format!("`{line}` is no line of figures: {error}"))?;
        rows.push(cells(&row, head.len()));
    }
    Ok(rows)
}

fn cells(row: &Value, count: usize) -> Vec<String> {
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
    fn a_wire_that_was_skipped_has_its_reason_in_the_table() {
        let lines = "{\"wire\":\"A\",\"way\":\"native\",\"asked\":30,\"valid\":2,\"at once\":2,\"correct\":1,\
                     \"answered\":1,\"told\":0,\"made\":\"native 2\",\"seconds\":1.25}\n\
                     {\"wire\":\"B\",\"skipped\":\"no B here\"}\n";
        let rows = rows(lines).unwrap();
        assert_eq!(rows[1][..6], ["A", "native", "30", "2", "2", "1"]);
        assert_eq!(rows[1][8..], ["1.2", "native 2"]);
        assert_eq!(rows[2][1], "SKIPPED: no B here");
        assert!(rows.iter().all(|row| row.len() == rows[0].len()));
        assert!(super::rows("none").is_err());
    }
}
