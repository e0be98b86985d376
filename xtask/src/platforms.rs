//! `platforms`: what ships, checked by the compiler for the systems that are not this one.

use std::path::PathBuf;

use crate::program::Program;
use crate::{Chore, say};

/// One for each system that differs.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks every crate that ships, with their tests left out.
///
/// # Errors
///
/// A target's standard library is not there, or something does not compile.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`platforms` takes no `{argument}`"));
    }
    let missing: Vec<&str> =
        TARGETS.into_iter().filter(|target| !standard_library(target).is_dir()).collect();
    if !missing.is_empty() {
        return Err(format!("`rustup target add {}` has not been run", missing.join(" ")));
    }
    for target in TARGETS {
        say::line(target);
        check(target)?;
    }
    Ok(())
}

/// A check makes no program, so that what a library compiles from C need not be compiled.
fn check(target: &str) -> Chore {
    let name = target.replace('-', "_");
    Program::cargo("check --quiet --locked --workspace --exclude xtask --exclude innkeeper-testkit")
        .line("--lib --bins --target")
        .arg(target)
        .variable(&format!("CC_{name}"), "true")
        .variable(&format!("AR_{name}"), "true")
        .run()
}

fn standard_library(target: &str) -> PathBuf {
    let asked = Program::new("rustc").line("--print target-libdir --target").arg(target).output();
    PathBuf::from(asked.unwrap_or_default().trim())
}
