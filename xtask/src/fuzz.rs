//! `fuzz`: each target for so long on the stable toolchain, and what it did meanwhile.

use std::fs;
use std::path::Path;

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

/// What CI runs: the kept inputs through every target, then each target shortly if it can be.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn short(seconds: u64) -> Chore {
    if targets()?.is_empty() {
        return Err("`fuzz/fuzz_targets` has no target".to_owned());
    }
    Program::cargo("test --quiet --locked --manifest-path fuzz/Cargo.toml --lib")
        .arg("--target-dir")
        .path(&root().join("target/fuzz"))
        .run()?;
    match Tool::FUZZ.present() {
        Some(_) => run(&["--seconds", &seconds.to_string()]),
        None => {
            say::line(
                "cargo-fuzz is not here: the kept inputs were replayed, nothing was searched",
            );
            Ok(())
        }
    }
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
    let log = root().join(format!("target/fuzz-{target}.log"));
    say::line(format_args!("{target}: {seconds} s, log in {}", relative(&log)));
    let outcome = prepare(&[&found, &kept], &log).and_then(|()| {
        tool.line("run --sanitizer none --target-dir")
            .path(&root().join("target/fuzz"))
            .arg(target)
            .path(&found)
            .path(&kept)
            .arg("--")
            .line(&format!("-max_total_time={seconds} -print_final_stats=1 -rss_limit_mb={MEMORY}"))
            .run_into(&log)
    });
    let text = fs::read_to_string(&log).unwrap_or_default();
    let figure =
        |key: &str| text.lines().rev().find_map(|line| line.strip_prefix(key)?.trim().parse().ok());
    Ran {
        executions: figure("stat::number_of_executed_units:"),
        peak: figure("stat::peak_rss_mb:"),
        outcome,
    }
}

fn prepare(folders: &[&Path], log: &Path) -> Chore {
    for folder in folders {
        fs::create_dir_all(folder).map_err(|error| format!("`{}`: {error}", relative(folder)))?;
    }
    fs::write(log, "").map_err(|error| format!("`{}`: {error}", relative(log)))
}
