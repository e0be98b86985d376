//! `soak`: runs long tests in a separate program.
//!
//! Starts and stops, process trees, lost supervisors, calls with faults. `soak` is the only task that links the
//! product, so a feature of this package enables it.

use std::path::PathBuf;

use crate::TaskResult;
use crate::program::{Program, repository_root};

/// A part of the test with its size in a full run and in CI.
struct SoakPart {
    name: &'static str,
    full_count: usize,
    short_count: usize,
}

const SOAK_PARTS: [SoakPart; 4] = [
    SoakPart { name: "--cycles", full_count: 1000, short_count: 40 },
    SoakPart { name: "--kills", full_count: 10_000, short_count: 160 },
    SoakPart { name: "--lost", full_count: 1000, short_count: 100 },
    SoakPart { name: "--calls", full_count: 1_000_000, short_count: 5000 },
];

/// Builds the programs and runs the named parts, or all.
///
/// # Errors
///
/// A process was left behind, an outcome was wrong, or a resource grew.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    let find_part = |name: &str| SOAK_PARTS.iter().find(|part| part.name == name);
    let chosen: Vec<(&str, usize)> = match arguments {
        [] => SOAK_PARTS.iter().map(|part| (part.name, part.full_count)).collect(),
        [name, rest @ ..] => {
            let part = find_part(name).ok_or_else(|| format!("`soak` takes no `{name}`"))?;
            let count = match rest {
                [] => part.full_count,
                [count] => count.parse().map_err(|_| format!("invalid count `{count}`"))?,
                [_, other, ..] => return Err(format!("`soak` takes no `{other}`")),
            };
            vec![(part.name, count)]
        }
    };
    Program::cargo("build --locked --workspace --bins --features xtask/soak").run()?;
    chosen.into_iter().try_for_each(|(name, count)| run_part(name, count))
}

/// Runs a short form of each part with the existing build.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn run_short() -> TaskResult {
    SOAK_PARTS.iter().try_for_each(|part| run_part(part.name, part.short_count))
}

fn run_part(name: &str, count: usize) -> TaskResult {
    Program::new(soak_program()).args(&format!("{name} {count}")).run()
}

fn soak_program() -> PathBuf {
    repository_root().join("target/debug/soak")
}
