//! `eval-guard`: runs a public prompt-injection benchmark through the gateway.

mod report;

use std::fs;
use std::path::{Path, PathBuf};

use report::{EvalReport, attack_rows, describe_corpora};

use crate::program::{Program, relative_path, repository_root};
use crate::test::{
    BUILD_ARGS, install_benchmarks, install_once, install_venv, install_venv_with_options,
};
use crate::{TaskResult, output};

const REQUIREMENTS: &str = include_str!("../eval_guard/requirements.txt");
const ADAPTER_SCRIPT: &str = include_str!("../eval_guard/front.py");
const TEXTS_SCRIPT: &str = include_str!("../eval_guard/texts.py");
/// The tests only read the packages; their dependencies are not installed.
const INJECTION_REQUIREMENTS: &str = include_str!("../eval_guard/texts.txt");

/// The two configurations of the gateway: the default, and a guard that blocks. Each is a function of
/// the adapter.
const MODES: [&str; 2] = ["default", "refuse"];

/// Maximum false positives of a blocking guard, in percent of the harmless items; the default guard
/// must have none.
const MAX_FALSE_POSITIVE_PERCENT: u64 = 1;

/// Evaluates the gateway on the attacks in both modes, then on the texts of other corpora, each in one
/// session.
///
/// With `--benign` the benchmark also runs its harmless items one by one, which takes most of the
/// time: each item starts two processes.
///
/// # Errors
///
/// The benchmark cannot be installed or run, or too many harmless items were blocked or flagged.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let benign = match arguments {
        [] => false,
        ["--benign"] => true,
        other => return Err(format!("unknown argument `{}`; known: `--benign`", other.join(" "))),
    };
    Program::cargo(BUILD_ARGS).run()?;
    let home = repository_root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
    let python = home.join("eval-guard");
    install_once(&python, REQUIREMENTS, |dir| install_venv(dir, REQUIREMENTS))?;
    let results = repository_root().join("target/eval-guard");
    fs::create_dir_all(&results)
        .map_err(|error| format!("`{}`: {error}", relative_path(&results)))?;
    for (name, text) in [("front.py", ADAPTER_SCRIPT), ("texts.py", TEXTS_SCRIPT)] {
        let path = results.join(name);
        fs::write(&path, text).map_err(|error| format!("`{}`: {error}", relative_path(&path)))?;
    }
    let mut reports = Vec::new();
    for mode in MODES {
        run_benchmark(&python, &results, mode, "dev")?;
        reports.push(EvalReport::read(&results.join(format!("{mode}.json")))?);
    }
    output::print_line(output::format_table(&attack_rows(&reports)?).trim_end());
    for (mode, report) in MODES.iter().zip(&reports) {
        let (stopped, kinds) = report.stopped_and_measured_kinds()?;
        output::print_line(format_args!("{mode}: {stopped} of {kinds} attack kinds stopped"));
        report.check_false_positives("cases", 0)?;
    }
    scan_corpora(&home, &python, &results)?;
    for mode in MODES.into_iter().filter(|_| benign) {
        run_benchmark(&python, &results, mode, "benign")?;
        let report = EvalReport::read(&results.join("benign").join(format!("{mode}.json")))?;
        let (flagged, items) = report.flagged_harmless_items()?;
        output::print_line(format_args!(
            "harmless, {mode}: {flagged} of {items} blocked or flagged"
        ));
        report.check_false_positives(
            "items",
            if mode == "default" { 0 } else { MAX_FALSE_POSITIVE_PERCENT },
        )?;
    }
    Ok(())
}

/// Scans the texts of other corpora with the gateway.
fn scan_corpora(home: &Path, python: &Path, results: &Path) -> TaskResult {
    let injections = home.join("injections");
    install_once(&injections, INJECTION_REQUIREMENTS, |dir| {
        install_venv_with_options(dir, INJECTION_REQUIREMENTS, "--no-deps")
    })?;
    install_benchmarks(home)?;
    let within = |dir: &Path, package: &str| -> TaskResult<PathBuf> {
        let library = dir.join("lib");
        let mut pythons = fs::read_dir(&library).into_iter().flatten().flatten();
        let module_dir = pythons.find_map(|python| {
            Some(python.path().join("site-packages").join(package)).filter(|path| path.exists())
        });
        module_dir.ok_or_else(|| {
            format!("package `{package}` not found in `{}`", relative_path(&library))
        })
    };
    let output = Program::new(python.join("bin/python"))
        .path_arg(&results.join("texts.py"))
        .path_arg(&repository_root().join("target/debug/innkeeper"))
        .path_arg(&within(&home.join("bfcl"), "bfcl_eval/data")?)
        .path_arg(&within(&injections, "agentdojo")?)
        .output()?;
    describe_corpora(&output)?.into_iter().for_each(output::print_line);
    Ok(())
}

/// Runs the benchmark on one corpus and writes the results.
fn run_benchmark(python: &Path, results: &Path, mode: &str, corpus: &str) -> TaskResult {
    let line = format!("run front:{mode} --quiet --corpus {corpus} --out-dir .");
    Program::new(python.join("bin/mcp-defense-bench"))
        .args(&line)
        .current_dir(results)
        .run_with_log(&results.join("bench.log"))
}
