//! `recovery`: a benchmark's calls with what models do wrong, for ours and two published parsers.

mod tables;

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::program::{Program, relative, root};
use crate::test::{npm, once};
use crate::{Chore, page, say, test};

/// Questions unless told otherwise: what takes some minutes in a build without optimisation.
const ENTRIES: u64 = 100;
/// Decides which questions, and where in each answer something is wrong.
const SEED: u64 = 1;
/// Where the tables are written for people.
const PAGE: &str = "docs/recovery.md";

const PACKAGE: &str = include_str!("../../bench/interceptor/node/package.json");
const LOCK: &str = include_str!("../../bench/interceptor/node/package-lock.json");

/// Writes the answers down, has each parser read them, judges what they made of them, and writes the
/// page.
///
/// # Errors
///
/// Something does not build, install or run. What a parser gets wrong is a figure, not an error.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let (entries, seed) = parse(arguments)?;
    test::provide()?;
    let home = root().join("target/recovery");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative(&home)))?;
    once(&home.join("npm"), &format!("{PACKAGE}{LOCK}"), |folder| npm(folder, PACKAGE, LOCK))?;
    let build = "build --locked --manifest-path bench/interceptor/Cargo.toml --bin recovery";
    Program::cargo(build).arg("--target-dir").path(&home.join("build")).run()?;
    let step = |name: &str| {
        let line = "test --locked --package innkeeper-agent --test it";
        Program::cargo(line)
            .arg(name)
            .line("-- --ignored")
            .variable("INNKEEPER_RECOVERY", &home.display().to_string())
            .variable("INNKEEPER_RECOVERY_ENTRIES", &entries.to_string())
            .variable("INNKEEPER_RECOVERY_SEED", &seed.to_string())
            .run()
    };
    step("step_one_writes_the_answers_down")?;
    save(&home, "tool-parser", Program::new(home.join("build/debug/recovery")).path(&home))?;
    let node = Program::new("node").path(&root().join("bench/interceptor/node/recovery.mjs"));
    save(&home, "ai-sdk-tool-parser", node.path(&home).within(&home.join("npm")))?;
    step("step_two_judges_what_was_made_of_them")?;
    let result = fs::read_to_string(home.join("result.json")).map_err(|error| error.to_string())?;
    let result: Vec<Value> = serde_json::from_str(&result).map_err(|error| error.to_string())?;
    let commit = Program::new("git").line("rev-parse --short HEAD").output()?;
    let about =
        format!("{entries} questions, seed {seed}, commit {}; {}.", commit.trim(), page::machine());
    let figures = format!("{about}\n\n{}", tables::all(&result));
    say::line(&figures);
    page::write(PAGE, "recovery", &figures)
}

fn save(home: &Path, name: &str, program: Program) -> Chore {
    let lines = program.output()?;
    fs::write(home.join(name), lines).map_err(|error| format!("`{name}`: {error}"))
}

fn parse(arguments: &[&str]) -> Chore<(u64, u64)> {
    let (mut entries, mut seed) = (ENTRIES, SEED);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let number = rest.next().and_then(|value| value.parse().ok());
        let number = number.ok_or_else(|| format!("`{argument}` needs a number"));
        match *argument {
            "--entries" => entries = number?,
            "--seed" => seed = number?,
            _ => return Err(format!("`recovery` takes no `{argument}`")),
        }
    }
    if entries == 0 {
        Err("`--entries` needs one at least".to_owned())
    } else {
        Ok((entries, seed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_and_seed_are_numbers_and_have_defaults() {
        assert_eq!(parse(&[]), Ok((ENTRIES, SEED)));
        assert_eq!(parse(&["--seed", "7", "--entries", "9"]), Ok((9, 7)));
        for wrong in [&["--entries", "0"][..], &["--seed"], &["--seed", "x"], &["--more", "1"]] {
            assert!(parse(wrong).is_err(), "{wrong:?}");
        }
    }
}
