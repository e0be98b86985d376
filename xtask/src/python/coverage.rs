//! The lines of the Python package that its tests run, measured by coverage.py.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{frameworks, install_environment, link_package, pytest_under};
use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};
use crate::test::BUILD_ARGS;

/// The measurement, for an interpreter.
const LAUNCHER: &str = "-m coverage run --rcfile=xtask/python/coverage.ini";

/// Builds the native module, runs the tests of the package, with those of the frameworks for which the
/// package has modules, and returns the report of coverage.py.
///
/// # Errors
///
/// A build or a test failed, or coverage.py wrote no report.
pub(crate) fn measure() -> TaskResult<Value> {
    Program::cargo(BUILD_ARGS).run()?;
    let python = install_environment()?;
    let output = repository_root().join("target/python/coverage");
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&output));
    if output.exists() {
        fs::remove_dir_all(&output).map_err(problem)?;
    }
    fs::create_dir_all(&output).map_err(problem)?;
    let packages = link_package()?;
    let tests = pytest_under(&python, LAUNCHER, Some(&packages)).arg("python/tests");
    for tests in [tests].into_iter().chain(frameworks::integration_tests(LAUNCHER, &packages)?) {
        with_data(tests, &output).run()?;
    }
    let report = output.join("report.json");
    let coverage = |line| with_data(Program::new(&python).args("-m coverage").args(line), &output);
    coverage("combine --quiet").run()?;
    coverage("json --quiet -o").path_arg(&report).run()?;
    let text = fs::read_to_string(&report).map_err(problem)?;
    serde_json::from_str(&text).map_err(|error| format!("`{}`: {error}", relative_path(&report)))
}

/// Adds the settings of coverage.py, and the place of what it measured.
fn with_data(program: Program, directory: &Path) -> Program {
    program
        .env("COVERAGE_RCFILE", "xtask/python/coverage.ini")
        .env("COVERAGE_FILE", &directory.join("data").to_string_lossy())
}
