//! `bench-repair`: measures the repair of malformed calls, with two published parsers.

mod tables;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_npm, install_once};
use crate::{TaskResult, figures, output, test};

/// Default number of questions: a few minutes without optimization.
const DEFAULT_ENTRIES: u64 = 100;
/// The default seed, which selects the questions and the position of each mistake.
const DEFAULT_SEED: u64 = 1;
/// The page with the tables.
const PAGE_PATH: &str = "docs/reports/call-recovery.md";

const PACKAGE_JSON: &str = include_str!("../../bench/parser/node/package.json");
const PACKAGE_LOCK: &str = include_str!("../../bench/parser/node/package-lock.json");

/// Writes the malformed responses, runs each parser on them, checks the results and writes the
/// page.
///
/// # Errors
///
/// A program does not build, install or run. A wrong result of a parser is a figure, not an error.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (entries, seed) = parse_args(arguments)?;
    test::install_servers()?;
    let home = repository_root().join("target/bench-repair");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
    install_once(&home.join("npm"), &format!("{PACKAGE_JSON}{PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PACKAGE_JSON, PACKAGE_LOCK)
    })?;
    let build = "build --locked --manifest-path bench/parser/Cargo.toml --bin bench-repair";
    Program::cargo(build).arg("--target-dir").path_arg(&home.join("build")).run()?;
    let test_command = |name: &str| {
        let line = "test --locked --package innkeeper-agent --test it";
        Program::cargo(line)
            .arg(name)
            .args("-- --ignored")
            .env("INNKEEPER_BENCH_REPAIR", &home.display().to_string())
            .env("INNKEEPER_BENCH_REPAIR_ENTRIES", &entries.to_string())
            .env("INNKEEPER_BENCH_REPAIR_SEED", &seed.to_string())
            .run()
    };
    test_command("step_one_writes_the_answers_down")?;
    save_output(
        &home,
        "tool-parser",
        Program::new(home.join("build/debug/bench-repair")).path_arg(&home),
    )?;
    let node =
        Program::new("node").path_arg(&repository_root().join("bench/parser/node/repair.mjs"));
    save_output(&home, "ai-sdk-tool-parser", node.path_arg(&home).current_dir(&home.join("npm")))?;
    test_command("step_two_judges_what_was_made_of_them")?;
    let result = fs::read_to_string(home.join("result.json")).map_err(|error| error.to_string())?;
    let result: Vec<Value> = serde_json::from_str(&result).map_err(|error| error.to_string())?;
    let commit = Program::new("git").args("rev-parse --short HEAD").output()?;
    let summary = format!(
        "{entries} questions, seed {seed}, commit {}; {}.",
        commit.trim(),
        figures::describe_machine()
    );
    let figures = format!("{summary}\n\n{}", tables::all_tables(&result));
    output::print_line(&figures);
    figures::write_to_page(PAGE_PATH, "repair", &figures)
}

fn save_output(home: &Path, name: &str, program: Program) -> TaskResult {
    let lines = program.output()?;
    fs::write(home.join(name), lines).map_err(|error| format!("`{name}`: {error}"))
}

fn parse_args(arguments: &[&str]) -> TaskResult<(u64, u64)> {
    let (mut entries, mut seed) = (DEFAULT_ENTRIES, DEFAULT_SEED);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let number = rest.next().and_then(|value| value.parse().ok());
        let number = number.ok_or_else(|| format!("`{argument}` needs a number"));
        match *argument {
            "--entries" => entries = number?,
            "--seed" => seed = number?,
            _ => return Err(format!("`bench-repair` takes no `{argument}`")),
        }
    }
    if entries == 0 {
        Err("`--entries` must be at least 1".to_owned())
    } else {
        Ok((entries, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_seed_are_numbers_and_have_defaults() {
        assert_eq!(parse_args(&[]), Ok((DEFAULT_ENTRIES, DEFAULT_SEED)));
        assert_eq!(parse_args(&["--seed", "7", "--entries", "9"]), Ok((9, 7)));
        for wrong in [&["--entries", "0"][..], &["--seed"], &["--seed", "x"], &["--more", "1"]] {
            assert!(parse_args(wrong).is_err(), "{wrong:?}");
        }
    }
}
