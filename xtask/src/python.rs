//! `python`: the tests of the Python package.

pub(crate) mod coverage;
mod frameworks;
mod installed;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, install_once, install_venv};

const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// The oldest Python of the package.
const OLDEST_PYTHON: (u32, u32) = (3, 10);

/// Builds the native module, and runs the tests of the package with the options of pytest in
/// `arguments`. `--wheel` first builds the wheel, and tests the package that it installs into each Python
/// of `INNKEEPER_PYTHONS`, paths with a colon between them, or into `python3`. `--sdist` does the same
/// with the source distribution, which pip builds under each Python. `--frameworks` tests the named agent
/// frameworks, or all of them, with their real packages.
///
/// # Errors
///
/// A build or a test failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    match arguments {
        ["--wheel", options @ ..] => installed::test_wheel(options),
        ["--sdist", options @ ..] => installed::test_source_distribution(options),
        ["--toolcalls"] => judge_toolcalls(),
        ["--frameworks", names @ ..] => frameworks::run(names),
        options => {
            Program::cargo(BUILD_ARGS).run()?;
            run_tests(options)
        }
    }
}

/// Returns why this machine cannot run the tests; `None` if it can.
pub(crate) fn problem() -> Option<String> {
    let question = "import sys; print(*sys.version_info[:2])";
    let version = Program::new("python3").arg("-c").arg(question).output().ok()?;
    let mut numbers = version.split_whitespace().filter_map(|number| number.parse().ok());
    let found = (numbers.next()?, numbers.next()?);
    (found < OLDEST_PYTHON)
        .then(|| format!("`python3` is {}.{}, and the package needs 3.10", found.0, found.1))
}

/// Runs the tests of the package with the module that has been built.
///
/// # Errors
///
/// The environment cannot be installed, or a test failed.
pub(crate) fn run_tests(options: &[&str]) -> TaskResult {
    let pytest = pytest(&install_environment()?, Some(&link_package()?));
    options.iter().fold(pytest, Program::arg).arg("python/tests").run()
}

/// Installs the packages that the tests need, and returns the interpreter that has them.
fn install_environment() -> TaskResult<PathBuf> {
    let environment = repository_root().join("target/python/env");
    install_once(&environment, REQUIREMENTS, |dir| install_venv(dir, REQUIREMENTS))?;
    Ok(environment.join("bin/python"))
}

/// pytest with the programs that the tests start; `packages` has the package if it isn't installed.
fn pytest(python: &Path, packages: Option<&Path>) -> Program {
    pytest_under(python, "", packages)
}

/// As [`pytest`], with arguments of the interpreter in front.
fn pytest_under(python: &Path, launcher: &str, packages: Option<&Path>) -> Program {
    let programs = repository_root().join("target/debug");
    let examples = repository_root().join("target/python/hypothesis");
    let mut pytest = Program::new(python)
        .args(launcher)
        .args("-m pytest -q -p no:cacheprovider")
        .env("HYPOTHESIS_STORAGE_DIRECTORY", &examples.to_string_lossy())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    for (variable, program) in [
        ("INNKEEPER", "innkeeper"),
        ("INNKEEPER_FIXTURE_SERVER", "innkeeper-fixture-server"),
        ("INNKEEPER_LLM", "innkeeper-llm"),
    ] {
        pytest = pytest.env(variable, &programs.join(program).to_string_lossy());
    }
    match packages {
        Some(packages) => pytest.env("PYTHONPATH", &packages.to_string_lossy()),
        None => pytest,
    }
}

/// Makes a package of links to the Python files and the built module, and returns the directory in
/// which it is.
fn link_package() -> TaskResult<PathBuf> {
    let packages = repository_root().join("target/python/packages");
    let package = packages.join("innkeeper");
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&package));
    if package.exists() {
        fs::remove_dir_all(&package).map_err(problem)?;
    }
    fs::create_dir_all(&package).map_err(problem)?;
    let sources = repository_root().join("python/innkeeper");
    for entry in fs::read_dir(sources).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        symlink(entry.path(), package.join(entry.file_name())).map_err(problem)?;
    }
    let module = repository_root().join("target/debug/libinnkeeper_python.so");
    symlink(module, package.join("_core.abi3.so")).map_err(problem)?;
    Ok(packages)
}

/// Runs the public suite for tool-call parsers through `innkeeper.intercept`.
fn judge_toolcalls() -> TaskResult {
    Program::cargo(BUILD_ARGS).run()?;
    crate::test::install_servers()?;
    let packages = link_package()?;
    let python = repository_root().join("target/test-servers/venv/bin/python");
    Program::new(&python)
        .path_arg(&repository_root().join("xtask/toolcalls/judge.py"))
        .path_arg(&python)
        .path_arg(&repository_root().join("xtask/python/replay.py"))
        .env("PYTHONPATH", &packages.to_string_lossy())
        .run()
}
