//! `noisy-neighbour`: latency of calls to a healthy server during each fault of `docs/faults.md`.
//!
//! The task prints a table; no duration fails the task.

use crate::TaskResult;
use crate::program::{Program, repository_root};

/// Default number of rounds; each figure is the median of all rounds.
const DEFAULT_ROUNDS: usize = 5;
/// Default number of calls in a round before a fault, and the same number during the fault.
const DEFAULT_CALLS: usize = 400;
/// Default number of worker threads of the host's runtime, as in an application on a small machine.
const DEFAULT_THREADS: usize = 2;

/// Builds the programs with the optimization of the simulation, and runs the given faults, or all.
///
/// # Errors
///
/// A program does not build, a server does not start as its scenario requires, or a call to the
/// healthy server fails.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (mut rounds, mut calls, mut threads) = (DEFAULT_ROUNDS, DEFAULT_CALLS, DEFAULT_THREADS);
    let mut faults = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let wrong = |_| format!("`noisy-neighbour` does not accept `{argument}`");
        let mut number = || rest.next().unwrap_or(&"").parse().map_err(wrong);
        match *argument {
            "--rounds" => rounds = number()?,
            "--calls" => calls = number()?,
            "--threads" => threads = number()?,
            fault => faults.push(fault.parse::<u32>().map_err(wrong)?.to_string()),
        }
    }
    if [rounds, calls, threads].contains(&0) {
        return Err("`--rounds`, `--calls` and `--threads` must be at least 1".to_owned());
    }
    Program::cargo("build --locked --quiet --bins --features xtask/soak")
        .args("-p xtask -p innkeeper-testkit -p innkeeper-process --target-dir target/simulate")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .run()?;
    Program::new(repository_root().join("target/simulate/debug/soak"))
        .args(&format!("--noisy-neighbour {rounds} {calls} {threads} {}", faults.join(" ")))
        .run()
}
