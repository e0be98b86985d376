//! `platforms`: type-checks the shipped crates for other operating systems.

use std::path::PathBuf;

use crate::program::Program;
use crate::{TaskResult, output};

/// One target per other operating system.
const TARGETS: [&str; 2] = ["x86_64-pc-windows-gnu", "aarch64-apple-darwin"];

/// Checks every shipped crate without tests.
///
/// # Errors
///
/// The standard library of a target is not installed, or a crate does not compile.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`platforms` takes no `{argument}`"));
    }
    let missing: Vec<&str> =
        TARGETS.into_iter().filter(|target| !standard_library_path(target).is_dir()).collect();
    if !missing.is_empty() {
        return Err(format!("target not installed; run `rustup target add {}`", missing.join(" ")));
    }
    for target in TARGETS {
        output::print_line(target);
        check_target(target)?;
    }
    Ok(())
}

/// Checks one target. A check builds no program, so that no C code of a library must compile.
fn check_target(target: &str) -> TaskResult {
    let name = target.replace('-', "_");
    Program::cargo("check --quiet --locked --workspace --exclude xtask --exclude innkeeper-testkit")
        .args("--lib --bins --target")
        .arg(target)
        .env(&format!("CC_{name}"), "true")
        .env(&format!("AR_{name}"), "true")
        .run()
}

fn standard_library_path(target: &str) -> PathBuf {
    let output = Program::new("rustc").args("--print target-libdir --target").arg(target).output();
    PathBuf::from(output.unwrap_or_default().trim())
}
