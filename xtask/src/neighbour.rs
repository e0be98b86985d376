//! `neighbour`: how long calls to a healthy server take while the one beside it misbehaves, for each
//! fault of `docs/faults.md` that can be played. Prints a table and judges nobody by the clock.

use crate::Chore;
use crate::program::{Program, root};

/// Rounds unless told otherwise; each figure is that of the round in the middle.
const ROUNDS: usize = 5;
/// Calls of a round before a fault, and as many during it.
const CALLS: usize = 400;
/// Threads of the host's runtime, as an application on a small machine has them.
const THREADS: usize = 2;

/// Builds what it needs, optimised like the simulation, and plays the faults with these numbers, or
/// all.
///
/// # Errors
///
/// It does not build, a server does not start as its fault has it, or a call to the neighbour fails.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let (mut rounds, mut calls, mut threads) = (ROUNDS, CALLS, THREADS);
    let mut faults = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        let wrong = |_| format!("`neighbour` takes no `{argument}` here");
        let mut number = || rest.next().unwrap_or(&"").parse().map_err(wrong);
        match *argument {
            "--rounds" => rounds = number()?,
            "--calls" => calls = number()?,
            "--threads" => threads = number()?,
            fault => faults.push(fault.parse::<u32>().map_err(wrong)?.to_string()),
        }
    }
    if [rounds, calls, threads].contains(&0) {
        return Err("`--rounds`, `--calls` and `--threads` need one at least".to_owned());
    }
    Program::cargo("build --locked --quiet --bins --features xtask/soak")
        .line("-p xtask -p innkeeper-testkit -p innkeeper-host --target-dir target/simulate")
        .variable("CARGO_PROFILE_DEV_OPT_LEVEL", "2")
        .run()?;
    Program::new(root().join("target/simulate/debug/soak"))
        .line(&format!("--neighbour {rounds} {calls} {threads} {}", faults.join(" ")))
        .run()
}
