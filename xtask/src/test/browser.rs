//! The tests of the console in a browser.

use std::path::Path;

use super::debian_packages::DebianProgram;
use super::servers::{install_npm, install_once};
use super::{CargoTool, NEXTEST_ARGS};
use crate::program::repository_root;
use crate::{TaskResult, output};

const PACKAGE_JSON: &str = include_str!("../../browser/package.json");
const PACKAGE_LOCK: &str = include_str!("../../browser/package-lock.json");

/// The tests have the attribute `ignore`, so that a run without the browser does not count them as
/// passed.
const TESTS: &str = "test(/^console_browser::/)";

/// Installs Debian's Chromium into `target/tools`, and the packages that drive it into
/// `target/test-servers`.
///
/// If the installation of Chromium fails, for example on another system, the task prints one line, and
/// [`run_tests`] is skipped.
///
/// # Errors
///
/// The packages cannot be installed.
pub(super) fn install() -> TaskResult {
    if let Err(problem) = DebianProgram::CHROMIUM.install() {
        output::print_error(&format!("no browser: {problem}"));
    }
    install_packages(&repository_root().join("target/test-servers/browser"))
}

fn install_packages(dir: &Path) -> TaskResult {
    install_once(dir, &format!("{PACKAGE_JSON}{PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PACKAGE_JSON, PACKAGE_LOCK)
    })
}

/// Returns why this machine cannot run the tests; `None` if it can.
pub(super) fn problem() -> Option<String> {
    DebianProgram::CHROMIUM.problem()
}

/// Runs the tests.
///
/// # Errors
///
/// A test failed, or no test was found.
pub(super) fn run_tests() -> TaskResult {
    let nextest = CargoTool::NEXTEST.install()?.args(NEXTEST_ARGS);
    nextest.args("--run-ignored only --no-tests fail -E").arg(TESTS).run()
}
