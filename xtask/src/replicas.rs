//! `replicas`: calls to three replicas while replicas and their Redis fail, judged from their history.

use crate::TaskResult;
use crate::figures;
use crate::program::{Program, repository_root};

/// The ignored test, and the package with it.
const TEST_ARGS: &str = "test --locked --package innkeeper-cli --test it -- --ignored --exact \
     --nocapture replicas::faults::ten_thousand_calls_with_every_fault";

/// Default number of calls over all faults.
const DEFAULT_CALLS: u64 = 10_000;

const PAGE_PATH: &str = "docs/reports/replicas.md";

/// Builds the programs, and runs the test with a number of calls and a seed.
///
/// # Errors
///
/// A program does not build, or a call broke a rule of the history.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (mut calls, mut seed, mut is_written) = (DEFAULT_CALLS, 1, false);
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let mut number = || {
            rest.next()
                .unwrap_or(&"")
                .parse::<u64>()
                .map_err(|_| format!("`replicas` does not accept `{argument}`"))
        };
        match *argument {
            "--calls" => calls = number()?,
            "--seed" => seed = number()?,
            "--write" => is_written = true,
            other => return Err(format!("`replicas` does not accept `{other}`")),
        }
    }
    Program::cargo("build --locked --bins")
        .args("-p innkeeper-testkit -p innkeeper-process -p innkeeper-cli")
        .run()?;
    let report = repository_root().join("target/replicas.md");
    let report_path = report.display().to_string();
    Program::cargo(TEST_ARGS)
        .env("REPLICAS_CALLS", &calls.to_string())
        .env("REPLICAS_SEED", &seed.to_string())
        .env("REPLICAS_REPORT", &report_path)
        .run()?;
    let table = std::fs::read_to_string(&report).map_err(|error| format!("the report: {error}"))?;
    let figures = format!("{}; seed {seed}.\n\n{table}", figures::describe_machine());
    if is_written {
        return figures::write_to_page(PAGE_PATH, "replicas", &figures);
    }
    Ok(())
}
