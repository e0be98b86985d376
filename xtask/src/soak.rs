//! `soak`: a thousand starts and stops of hostile servers, by a program of its own.
//!
//! It is the only chore that links the product, so it is behind a feature of this package.

use std::path::PathBuf;

use crate::Chore;
use crate::program::{Program, root};

/// Cycles unless told otherwise.
const CYCLES: usize = 1000;

/// Builds what it needs and runs it.
///
/// # Errors
///
/// A process was left, or something grew.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    let count = match arguments {
        [] => CYCLES,
        ["--cycles", count] => {
            count.parse().map_err(|_| format!("`{count}` is no number of cycles"))?
        }
        [other, ..] => return Err(format!("`soak` takes no `{other}`")),
    };
    Program::cargo("build --locked --workspace --bins --features xtask/soak").run()?;
    cycles(count)
}

/// Runs it with what is built already.
///
/// # Errors
///
/// As [`run`].
pub(crate) fn cycles(count: usize) -> Chore {
    Program::new(program()).line(&format!("--cycles {count}")).run()
}

fn program() -> PathBuf {
    root().join("target/debug/soak")
}
