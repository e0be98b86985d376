//! `defence`: a public bench of defences, with our host in front of each of its servers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Program, relative, root};
use crate::test::{BUILD, once, venv};
use crate::{Chore, say};

const REQUIREMENTS: &str = include_str!("../defence/requirements.txt");
const ADAPTER: &str = include_str!("../defence/front.py");

/// What the bench calls what it scores.
const NAME: &str = "innkeeper";

/// Scores the host on the attacks, and with `--benign` on what is harmless, too, which takes most of
/// the time: two processes are started for each item.
///
/// # Errors
///
/// The bench cannot be put in place or run, or something harmless was blocked or flagged.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let benign = match arguments {
        [] => false,
        ["--benign"] => true,
        other => return Err(format!("`{}` is not known; there is `--benign`", other.join(" "))),
    };
    Program::cargo(BUILD).run()?;
    let home = root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative(&home)))?;
    let python = home.join("defence");
    once(&python, REQUIREMENTS, |folder| venv(folder, REQUIREMENTS))?;
    let results = root().join("target/defence");
    fs::create_dir_all(&results).map_err(|error| format!("`{}`: {error}", relative(&results)))?;
    let adapter = results.join("front.py");
    fs::write(&adapter, ADAPTER).map_err(|error| format!("`{}`: {error}", relative(&adapter)))?;
    score(&python, &results, "dev")?;
    let told = read(&results.join(format!("{NAME}.json")))?;
    say::line(say::table(&vectors(&told)).trim_end());
    say::line(told["summary"]["overall"].as_str().unwrap_or_default());
    let mut false_alarms = told["summary"]["falsePositives"].as_u64().unwrap_or_default();
    if benign {
        score(&python, &results, "benign")?;
        let told = read(&results.join("benign").join(format!("{NAME}.json")))?;
        let (items, flagged) = (&told["summary"]["items"], &told["summary"]["falsePositives"]);
        say::line(format_args!("harmless: {flagged} of {items} blocked or flagged"));
        false_alarms += flagged.as_u64().unwrap_or_default();
    }
    if false_alarms == 0 { Ok(()) } else { Err(format!("{false_alarms} false alarms")) }
}

/// Has the bench write its results for one corpus.
fn score(python: &Path, results: &Path, corpus: &str) -> Chore {
    let line = format!("run front:innkeeper --quiet --corpus {corpus} --out-dir .");
    Program::new(python.join("bin/mcp-defense-bench"))
        .line(&line)
        .within(results)
        .run_into(&results.join("bench.log"))
}

fn read(path: &Path) -> Chore<Value> {
    let problem = |error: String| format!("`{}`: {error}", relative(path));
    let text = fs::read_to_string(path).map_err(|error| problem(error.to_string()))?;
    serde_json::from_str(&text).map_err(|error| problem(error.to_string()))
}

/// A row for each attack of the bench: what it is, and what became of it.
fn vectors(told: &Value) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cases = told["cases"].as_array().into_iter().flatten();
    cases.map(|case| vec![text(&case["id"]), text(&case["level"])]).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_attack_has_a_row_with_what_became_of_it() {
        let told =
            json!({"cases": [{"id": "a/001", "level": "enforce"}, {"id": "b", "level": "none"}]});
        assert_eq!(vectors(&told), [["a/001", "enforce"], ["b", "none"]]);
    }
}
