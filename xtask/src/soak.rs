//! `soak`: what takes too long for every change, by a program of its own: starts and stops, ends of
//! hostile trees, calls with faults.
//!
//! It is the only chore that links the product, so it is behind a feature of this package.

use std::path::PathBuf;

use crate::Chore;
use crate::program::{Program, root};

/// A part with how much of it a full run has, and how much CI.
struct Part {
    name: &'static str,
    full: usize,
    short: usize,
}

const PARTS: [Part; 3] = [
    Part { name: "--cycles", full: 1000, short: 40 },
    Part { name: "--kills", full: 10_000, short: 160 },
    Part { name: "--calls", full: 1_000_000, short: 5000 },
];

/// Builds what it needs and runs the parts that are named, or all.
///
/// # Errors
///
/// A process was left, an outcome was wrong, or something grew.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let named = |name: &str| PARTS.iter().find(|part| part.name == name);
    let chosen: Vec<(&str, usize)> = match arguments {
        [] => PARTS.iter().map(|part| (part.name, part.full)).collect(),
        [name, rest @ ..] => {
            let part = named(name).ok_or_else(|| format!("`soak` takes no `{name}`"))?;
            let count = match rest {
                [] => part.full,
                [count] => count.parse().map_err(|_| format!("`{count}` is no number"))?,
                [_, other, ..] => return Err(format!("`soak` takes no `{other}`")),
            };
            vec![(part.name, count)]
        }
    };
    Program::cargo("build --locked --workspace --bins --features xtask/soak").run()?;
    chosen.into_iter().try_for_each(|(name, count)| part(name, count))
}

/// A small number of each, with what is built already.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn short() -> Chore {
    PARTS.iter().try_for_each(|it| part(it.name, it.short))
}

fn part(name: &str, count: usize) -> Chore {
    Program::new(program()).line(&format!("{name} {count}")).run()
}

fn program() -> PathBuf {
    root().join("target/debug/soak")
}
