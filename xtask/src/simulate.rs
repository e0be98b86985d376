//! `simulate`: runs seeds of the host's simulation in one process per core.

use std::path::PathBuf;
use std::thread;

use crate::program::{Program, repository_root};
use crate::{TaskResult, output};

/// Default number of seeds.
const DEFAULT_SEEDS: u64 = 100_000;

/// Seeds per process: small enough that no core idles at the end and a failure appears soon.
const SEEDS_PER_PROCESS: u64 = 500;

/// The test that runs the given seeds.
const TEST_NAME: &str = "simulation::the_requested_seeds_break_no_invariant";

/// Runs `--seeds N` seeds, starting with `--first SEED`.
///
/// # Errors
///
/// A seed violated an invariant; the error contains the command that reproduces the failure.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let (mut first, mut seeds) = (0, DEFAULT_SEEDS);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let value = match *option {
            "--first" => &mut first,
            "--seeds" => &mut seeds,
            other => return Err(format!("`simulate` takes no `{other}`")),
        };
        let number = rest.next().unwrap_or(&"");
        *value = number.parse().map_err(|_| format!("invalid value `{number}` for `{option}`"))?;
    }
    let program = build()?;
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    thread::scope(|scope| {
        let lanes = (0..cores).map(|lane| {
            let program = &program;
            scope.spawn(move || run_lane(program, first, seeds, lane, cores))
        });
        let lanes: Vec<_> = lanes.collect();
        let ended = lanes.into_iter().map(|lane| {
            lane.join().unwrap_or_else(|_| Err("a thread of the simulation panicked".to_owned()))
        });
        ended.collect::<TaskResult>()
    })?;
    output::print_line(format_args!("{seeds} seeds from {first} violated no invariant"));
    Ok(())
}

/// Runs all batches of one thread.
fn run_lane(program: &PathBuf, first: u64, seeds: u64, lane: u64, lanes: u64) -> TaskResult {
    let shares = seeds.div_ceil(SEEDS_PER_PROCESS);
    for share in (lane..shares).step_by(usize::try_from(lanes).unwrap_or(1)) {
        let (from, to) = (share * SEEDS_PER_PROCESS, ((share + 1) * SEEDS_PER_PROCESS).min(seeds));
        let test_run = Program::new(program)
            .args(&format!("--exact {TEST_NAME} --ignored --nocapture"))
            .env("INNKEEPER_SIMULATE_FIRST", &(first + from).to_string())
            .env("INNKEEPER_SIMULATE_SEEDS", &(to - from).to_string());
        if seeds == 1 {
            return test_run.env("INNKEEPER_SIMULATE_SHOW", "1").run();
        }
        let output = test_run.output()?;
        if !output.contains("1 passed") {
            return Err(format!("`{TEST_NAME}` did not run: {output}"));
        }
    }
    Ok(())
}

/// Builds the tests of the host and returns their program.
///
/// The number of seeds justifies an optimized build; assertions and overflow checks stay on.
fn build() -> TaskResult<PathBuf> {
    let messages = Program::cargo("test --locked --quiet -p innkeeper-host --lib --no-run")
        .args("--message-format json --target-dir target/simulate")
        .env("CARGO_PROFILE_TEST_OPT_LEVEL", "2")
        .env("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .output()?;
    let program = messages.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(repository_root().join(rest.split_once('"')?.0))
    });
    program.ok_or_else(|| "cargo did not report the program with the host's tests".to_owned())
}
