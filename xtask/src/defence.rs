//! `defence`: a public bench of defences, with our host in front of each of its servers.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::program::{Program, relative, root};
use crate::test::{BUILD, benchmarks, once, packages, venv};
use crate::{Chore, say};

const REQUIREMENTS: &str = include_str!("../defence/requirements.txt");
const ADAPTER: &str = include_str!("../defence/front.py");
const TEXTS: &str = include_str!("../defence/texts.py");
/// Read and never run, so that nothing it depends on is needed.
const INJECTIONS: &str = include_str!("../defence/texts.txt");

/// The two ways in which the host is scored: as it is, and with a guard that refuses. Each is a
/// function of the adapter.
const MODES: [&str; 2] = ["default", "refuse"];

/// False alarms of a hundred harmless items that a guard may raise when it refuses; by default none.
const BEARABLE: u64 = 1;

/// Scores the host on the attacks in both modes, then on texts of other corpora, each in one session;
/// with `--benign` the bench also runs its harmless items one by one, which takes most of the time:
/// two processes are started for each.
///
/// # Errors
///
/// The bench cannot be put in place or run, or too much that is harmless was blocked or flagged.
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
    for (name, text) in [("front.py", ADAPTER), ("texts.py", TEXTS)] {
        let path = results.join(name);
        fs::write(&path, text).map_err(|error| format!("`{}`: {error}", relative(&path)))?;
    }
    let mut told = Vec::new();
    for mode in MODES {
        score(&python, &results, mode, "dev")?;
        told.push(read(&results.join(format!("{mode}.json")))?);
    }
    say::line(say::table(&vectors(&told)).trim_end());
    for (mode, told) in MODES.iter().zip(&told) {
        let (stopped, kinds) = measured(told);
        say::line(format_args!("{mode}: {stopped} of {kinds} kinds measured"));
        false_alarms(told, "cases", 0)?;
    }
    texts(&home, &python, &results)?;
    for mode in MODES.into_iter().filter(|_| benign) {
        score(&python, &results, mode, "benign")?;
        let told = read(&results.join("benign").join(format!("{mode}.json")))?;
        let (items, flagged) = (&told["summary"]["items"], &told["summary"]["falsePositives"]);
        say::line(format_args!("harmless, {mode}: {flagged} of {items} blocked or flagged"));
        false_alarms(&told, "items", if mode == "default" { 0 } else { BEARABLE })?;
    }
    Ok(())
}

/// Has the front read the texts of other corpora.
fn texts(home: &Path, python: &Path, results: &Path) -> Chore {
    let injections = home.join("injections");
    once(&injections, INJECTIONS, |folder| packages(folder, INJECTIONS, "--no-deps"))?;
    benchmarks(home)?;
    let within = |folder: &Path, package: &str| -> Chore<PathBuf> {
        let library = folder.join("lib");
        let mut pythons = fs::read_dir(&library).into_iter().flatten().flatten();
        let found = pythons.find_map(|python| {
            Some(python.path().join("site-packages").join(package)).filter(|path| path.exists())
        });
        found.ok_or_else(|| format!("`{}`: no `{package}` in it", relative(&library)))
    };
    let told = Program::new(python.join("bin/python"))
        .path(&results.join("texts.py"))
        .path(&root().join("target/debug/innkeeper-front"))
        .path(&within(&home.join("bfcl"), "bfcl_eval/data")?)
        .path(&within(&injections, "agentdojo")?)
        .output()?;
    say::line(told.trim_end());
    Ok(())
}

/// Fails if more than so many of a hundred were false alarms.
fn false_alarms(told: &Value, of: &str, bearable: u64) -> Chore {
    let count = told["summary"]["falsePositives"].as_u64().unwrap_or_default();
    let all = told[of].as_array().map_or(0, Vec::len) as u64;
    if count * 100 <= bearable * all { Ok(()) } else { Err(format!("{count} false alarms")) }
}

/// How much of the kinds that were run was stopped, and how many they are.
fn measured(told: &Value) -> (f64, usize) {
    let kinds = told["coverage"].as_object().into_iter().flatten();
    let run = kinds.filter(|(_, kind)| kind["verified"] == true);
    let each: Vec<f64> = run.filter_map(|(_, kind)| kind["robustCoverage"].as_f64()).collect();
    (each.iter().sum(), each.len())
}

/// Has the bench write its results for one corpus.
fn score(python: &Path, results: &Path, mode: &str, corpus: &str) -> Chore {
    let line = format!("run front:{mode} --quiet --corpus {corpus} --out-dir .");
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

/// A row for each attack of the bench: what it is, and what became of it in each mode.
fn vectors(told: &[Value]) -> Vec<Vec<String>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let cases = told.first().and_then(|told| told["cases"].as_array()).into_iter().flatten();
    let row = |(at, case): (usize, &Value)| {
        let levels = told.iter().map(|told| text(&told["cases"][at]["level"]));
        std::iter::once(text(&case["id"])).chain(levels).collect()
    };
    cases.enumerate().map(row).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn told(levels: [&str; 2]) -> Value {
        let [a, b] = levels;
        json!({"cases": [{"id": "a/001", "level": a}, {"id": "b", "level": b}]})
    }

    #[test]
    fn every_attack_has_a_row_with_what_became_of_it_in_each_mode() {
        let told = [told(["none", "none"]), told(["enforce", "none"])];
        assert_eq!(vectors(&told), [["a/001", "none", "enforce"], ["b", "none", "none"]]);
    }

    #[test]
    fn kinds_that_were_not_run_do_not_count() {
        let kind = |ran: bool, part: f64| json!({"verified": ran, "robustCoverage": part});
        let told = json!({"coverage": {"a": kind(true, 0.5), "b": kind(true, 1.0), "c": kind(false, 0.0)}});
        assert_eq!(measured(&told), (1.5, 2));
    }

    #[test]
    fn as_many_false_alarms_are_borne_as_the_limit_and_no_more() {
        let told =
            |count: u64| json!({"summary": {"falsePositives": count}, "items": vec![0; 300]});
        assert_eq!(false_alarms(&told(3), "items", 1), Ok(()));
        assert!(false_alarms(&told(4), "items", 1).is_err());
        assert!(false_alarms(&told(1), "items", 0).is_err());
    }
}
