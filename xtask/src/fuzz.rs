//! `fuzz`: runs the fuzz targets on the stable toolchain.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Program, relative_path, repository_root};
use crate::test::CargoTool;
use crate::{TaskResult, output};

/// Default duration per target in seconds.
const DEFAULT_SECONDS: u64 = 600;
/// Memory limit of a target in megabytes: beyond it, something grows without a bound.
const MEMORY_LIMIT_MB: u64 = 1024;

/// Runs the named targets, or all.
///
/// # Errors
///
/// A target crashed or exceeded its memory limit.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (seconds, names) = match arguments {
        ["--seconds", number, rest @ ..] => {
            (number.parse().map_err(|_| format!("invalid number of seconds `{number}`"))?, rest)
        }
        rest => (DEFAULT_SECONDS, rest),
    };
    let all = target_names()?;
    if let Some(stranger) = names.iter().find(|name| !all.iter().any(|target| target == *name)) {
        return Err(format!("unknown target `{stranger}`; known: {}", all.join(", ")));
    }
    let chosen = all.iter().filter(|target| names.is_empty() || names.contains(&target.as_str()));
    let tool = || CargoTool::FUZZ.install();
    let mut rows = vec![["target", "executions", "peak MB", "outcome"].map(str::to_owned).to_vec()];
    let mut failed_targets = Vec::new();
    for target in chosen {
        let result = run_target(tool()?, target, seconds);
        rows.push(result.row(target));
        if let Err(problem) = result.result {
            failed_targets.push(problem);
        }
    }
    output::print_line(output::format_table(&rows));
    if failed_targets.is_empty() { Ok(()) } else { Err(failed_targets.join("\n")) }
}

/// Checks that the targets resolve to the lock file, and fuzzes briefly if cargo-fuzz is installed.
///
/// CI runs this short form; the tests of the workspace replay the stored inputs.
///
/// # Errors
///
/// As [`run`], or the lock file is outdated.
pub(crate) fn run_short(seconds: u64) -> TaskResult {
    let locked = "metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml";
    Program::cargo(locked).output()?;
    if CargoTool::FUZZ.find_installed().is_some() {
        return run(&["--seconds", &seconds.to_string()]);
    }
    output::print_line("cargo-fuzz is not installed: fuzzing skipped");
    Ok(())
}

fn target_names() -> TaskResult<Vec<String>> {
    let dir = repository_root().join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&dir).map_err(|error| format!("`{}`: {error}", relative_path(&dir)))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

struct FuzzRun {
    executions: Option<u64>,
    peak_mb: Option<u64>,
    result: TaskResult,
}

impl FuzzRun {
    fn row(&self, target: &str) -> Vec<String> {
        let number =
            |figure: Option<u64>| figure.map_or("?".to_owned(), |figure| figure.to_string());
        let status = if self.result.is_ok() { "clean" } else { "FAILED" };
        vec![target.to_owned(), number(self.executions), number(self.peak_mb), status.to_owned()]
    }
}

/// Runs one target. New inputs go to `target/`, so that the stored corpus stays small.
fn run_target(tool: Program, target: &str, seconds: u64) -> FuzzRun {
    let work_corpus = repository_root().join("target/fuzz-corpus").join(target);
    let stored_corpus = repository_root().join("fuzz/corpus").join(target);
    output::print_line(format_args!("{target}: {seconds} s"));
    let prepared = create_dir(&work_corpus)
        .and_then(|()| create_dir(&stored_corpus))
        .and_then(|()| create_log(target));
    let result = prepared.and_then(|log| {
        tool.args("run --sanitizer none --target-dir")
            .path_arg(&repository_root().join("target/fuzz"))
            .arg(target)
            .path_arg(&work_corpus)
            .path_arg(&stored_corpus)
            .arg("--")
            .args(&format!(
                "-max_total_time={seconds} -print_final_stats=1 -rss_limit_mb={MEMORY_LIMIT_MB}"
            ))
            .run_with_log(&log)
    });
    let text = fs::read_to_string(log_path(target)).unwrap_or_default();
    let figure =
        |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    FuzzRun {
        executions: figure("stat::number_of_executed_units:"),
        peak_mb: figure("stat::peak_rss_mb:"),
        result,
    }
}

fn create_dir(dir: &Path) -> TaskResult {
    fs::create_dir_all(dir).map_err(|error| format!("`{}`: {error}", relative_path(dir)))
}

/// Creates an empty log file for the target.
fn create_log(target: &str) -> TaskResult<PathBuf> {
    let log = log_path(target);
    fs::write(&log, "").map_err(|error| format!("`{}`: {error}", relative_path(&log)))?;
    Ok(log)
}

fn log_path(target: &str) -> PathBuf {
    repository_root().join(format!("target/fuzz-{target}.log"))
}
