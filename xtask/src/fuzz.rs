//! `fuzz`: each target for so long on the stable toolchain, and what it did meanwhile.

use std::fs;
use std::path::{Path, PathBuf};

use crate::program::{Program, relative, root};
use crate::test::Tool;
use crate::{Chore, say};

/// How long each target runs unless told otherwise.
const SECONDS: u64 = 600;
/// Megabytes a target may take: past that, something grows without a bound.
const MEMORY: u64 = 1024;

/// Runs the named targets, or all.
///
/// # Errors
///
/// A target crashed or grew past its bound.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let (seconds, names) = match arguments {
        ["--seconds", number, rest @ ..] => {
            (number.parse().map_err(|_| format!("`{number}` is no number of seconds"))?, rest)
        }
        rest => (SECONDS, rest),
    };
    let all = targets()?;
    if let Some(stranger) = names.iter().find(|name| !all.iter().any(|target| target == *name)) {
        return Err(format!("`{stranger}` is no target; there are: {}", all.join(", ")));
    }
    let chosen = all.iter().filter(|target| names.is_empty() || names.contains(&target.as_str()));
    let tool = || Tool::FUZZ.provide();
    let mut rows = vec![["target", "executions", "peak MB", "outcome"].map(str::to_owned).to_vec()];
    let mut broken = Vec::new();
    for target in chosen {
        let ran = one(tool()?, target, seconds);
        rows.push(ran.row(target));
        if let Err(problem) = ran.outcome {
            broken.push(problem);
        }
    }
    say::line(say::table(&rows));
    if broken.is_empty() { Ok(()) } else { Err(broken.join("\n")) }
}

/// What CI runs, whose tests have replayed the kept inputs: whether the targets still resolve to the
/// lock, and a short search where cargo-fuzz is.
///
/// # Errors
///
/// As [`run`], or the lock is another.
pub(crate) fn short(seconds: u64) -> Chore {
    let locked = "metadata --locked --format-version 1 --manifest-path fuzz/Cargo.toml";
    Program::cargo(locked).output()?;
    if Tool::FUZZ.present().is_some() {
        return run(&["--seconds", &seconds.to_string()]);
    }
    say::line("cargo-fuzz is not here: nothing was searched");
    Ok(())
}

fn targets() -> Chore<Vec<String>> {
    let folder = root().join("fuzz/fuzz_targets");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("`{}`: {error}", relative(&folder)))?;
    let mut names: Vec<String> = entries
        .flatten()
        .filter_map(|entry| Some(entry.file_name().to_str()?.strip_suffix(".rs")?.to_owned()))
        .collect();
    names.sort();
    Ok(names)
}

struct Ran {
    executions: Option<u64>,
    peak: Option<u64>,
    outcome: Chore,
}

impl Ran {
    fn row(&self, target: &str) -> Vec<String> {
        let number =
            |figure: Option<u64>| figure.map_or("?".to_owned(), |figure| figure.to_string());
        let word = if self.outcome.is_ok() { "clean" } else { "FAILED" };
        vec![target.to_owned(), number(self.executions), number(self.peak), word.to_owned()]
    }
}

/// New inputs go under `target/`, so that the kept corpus stays small.
fn one(tool: Program, target: &str, seconds: u64) -> Ran {
    let found = root().join("target/fuzz-corpus").join(target);
    let kept = root().join("fuzz/corpus").join(target);
    say::line(format_args!("{target}: {seconds} s"));
    let prepared = folder(&found).and_then(|()| folder(&kept)).and_then(|()| log_of(target));
    let outcome = prepared.and_then(|log| {
        tool.line("run --sanitizer none --target-dir")
            .path(&root().join("target/fuzz"))
            .arg(target)
            .path(&found)
            .path(&kept)
            .arg("--")
            .line(&format!("-max_total_time={seconds} -print_final_stats=1 -rss_limit_mb={MEMORY}"))
            .run_into(&log)
    });
    let text = fs::read_to_string(log_path(target)).unwrap_or_default();
    let figure =
        |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Ran {
        executions: figure("stat::number_of_executed_units:"),
        peak: figure("stat::peak_rss_mb:"),
        outcome,
    }
}

fn folder(folder: &Path) -> Chore {
    fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", relative(folder)))
}

/// The target's log, emptied.
fn log_of(target: &str) -> Chore<PathBuf> {
    let log = log_path(target);
    fs::write(&log, "").map_err(|error| format!("`{}`: {error}", relative(&log)))?;
    Ok(log)
}

fn log_path(target: &str) -> PathBuf {
    root().join(format!("target/fuzz-{target}.log"))
}
