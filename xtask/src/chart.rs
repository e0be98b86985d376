//! `chart`: renders the chart with several values, and checks the result and the container file.

use crate::TaskResult;
use crate::program::{Program, repository_root};
use crate::test::install_chart_tools;

/// Builds the program, and checks the chart and the container file with the program.
///
/// # Errors
///
/// The program does not build, or a check failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`chart` takes no `{argument}`"));
    }
    Program::cargo("build --locked --package innkeeper-cli").run()?;
    check()
}

/// Checks the chart and the container file with the program that is built.
///
/// # Errors
///
/// The tools cannot be installed, or a check failed; the checks print the problems.
pub(crate) fn check() -> TaskResult {
    Program::new(install_chart_tools()?)
        .path_arg(&repository_root().join("xtask/chart/check.py"))
        .path_arg(&repository_root().join("target/debug/innkeeper"))
        .run()
}
