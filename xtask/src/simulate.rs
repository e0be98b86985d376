//! `simulate`: many seeds of the host's simulation, one process a core.

use std::path::PathBuf;
use std::thread;

use crate::program::{Program, root};
use crate::{Chore, say};

/// Seeds unless told otherwise.
const SEEDS: u64 = 100_000;

/// Seeds a process takes in one go, so that no core is idle at the end and a failure is told soon.
const SHARE: u64 = 500;

/// The test that runs what it is told to.
const TEST: &str = "simulation::the_seeds_that_were_asked_for_break_no_wall";

/// Runs `--seeds N` from `--first SEED` on.
///
/// # Errors
///
/// A seed broke a wall; the error says how to see it again.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let (mut first, mut seeds) = (0, SEEDS);
    let mut rest = arguments.iter();
    while let Some(option) = rest.next() {
        let value = match *option {
            "--first" => &mut first,
            "--seeds" => &mut seeds,
            other => return Err(format!("`simulate` takes no `{other}`")),
        };
        let number = rest.next().unwrap_or(&"");
        *value = number.parse().map_err(|_| format!("`{number}` is no number for `{option}`"))?;
    }
    let program = build()?;
    let cores = thread::available_parallelism().map_or(1, |cores| cores.get() as u64);
    thread::scope(|scope| {
        let lanes = (0..cores).map(|lane| {
            let program = &program;
            scope.spawn(move || every(program, first, seeds, lane, cores))
        });
        let lanes: Vec<_> = lanes.collect();
        let ended = lanes.into_iter().map(|lane| {
            lane.join().unwrap_or_else(|_| Err("a lane of the simulation panicked".to_owned()))
        });
        ended.collect::<Chore>()
    })?;
    say::line(format_args!("{seeds} seeds from {first} on broke no wall"));
    Ok(())
}

/// Every share of one lane.
fn every(program: &PathBuf, first: u64, seeds: u64, lane: u64, lanes: u64) -> Chore {
    let shares = seeds.div_ceil(SHARE);
    for share in (lane..shares).step_by(usize::try_from(lanes).unwrap_or(1)) {
        let (from, to) = (share * SHARE, ((share + 1) * SHARE).min(seeds));
        let ran = Program::new(program)
            .line(&format!("--exact {TEST} --ignored --nocapture"))
            .variable("INNKEEPER_SIMULATE_FIRST", &(first + from).to_string())
            .variable("INNKEEPER_SIMULATE_SEEDS", &(to - from).to_string());
        if seeds == 1 {
            return ran.variable("INNKEEPER_SIMULATE_SHOW", "1").run();
        }
        let said = ran.output()?;
        if !said.contains("1 passed") {
            return Err(format!("`{TEST}` did not run: {said}"));
        }
    }
    Ok(())
}

/// Builds the tests of the host and finds their program. So many seeds pay for an optimised one,
/// with its assertions and checks of overflow left in.
fn build() -> Chore<PathBuf> {
    let told = Program::cargo("test --locked --quiet -p innkeeper-host --lib --no-run")
        .line("--message-format json --target-dir target/simulate")
        .variable("CARGO_PROFILE_TEST_OPT_LEVEL", "2")
        .variable("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .output()?;
    let program = told.lines().rev().find_map(|line| {
        let (_, rest) = line.split_once("\"executable\":\"")?;
        Some(root().join(rest.split_once('"')?.0))
    });
    program.ok_or_else(|| "cargo does not say where the tests of the host are".to_owned())
}
