//! `python`: the tests of the Python package, and its wheel.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, install_once, install_venv, install_venv_for};
use crate::{TaskResult, output};

const REQUIREMENTS: &str = include_str!("../python/requirements.txt");

/// The builder of wheels, with the builder of pinned environments.
const BUILD_REQUIREMENTS: &str = include_str!("../python/build-requirements.txt");

/// The oldest Python of the package.
const OLDEST_PYTHON: (u32, u32) = (3, 10);

/// Builds the native module, and runs the tests of the package with the options of pytest in
/// `arguments`. `--wheel` first builds the wheel, and tests the package that it installs into each Python
/// of `INNKEEPER_PYTHONS`, paths with a colon between them, or into `python3`.
///
/// # Errors
///
/// A build or a test failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    match arguments {
        ["--wheel", options @ ..] => test_wheel(options),
        ["--toolcalls"] => judge_toolcalls(),
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
    let environment = repository_root().join("target/python/env");
    install_once(&environment, REQUIREMENTS, |dir| install_venv(dir, REQUIREMENTS))?;
    let packages = repository_root().join("target/python/packages");
    link_package(&packages.join("innkeeper"))?;
    run_pytest(&environment.join("bin/python"), Some(&packages), options)
}

fn run_pytest(python: &Path, packages: Option<&Path>, options: &[&str]) -> TaskResult {
    let programs = repository_root().join("target/debug");
    let examples = repository_root().join("target/python/hypothesis");
    let mut pytest = Program::new(python)
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
    if let Some(packages) = packages {
        pytest = pytest.env("PYTHONPATH", &packages.to_string_lossy());
    }
    options.iter().fold(pytest, Program::arg).arg("python/tests").run()
}

/// Makes a package of links to the Python files and the built module.
fn link_package(package: &Path) -> TaskResult {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(package));
    if package.exists() {
        fs::remove_dir_all(package).map_err(problem)?;
    }
    fs::create_dir_all(package).map_err(problem)?;
    let sources = repository_root().join("python/innkeeper");
    for entry in fs::read_dir(sources).map_err(problem)? {
        let entry = entry.map_err(problem)?;
        symlink(entry.path(), package.join(entry.file_name())).map_err(problem)?;
    }
    let module = repository_root().join("target/debug/libinnkeeper_python.so");
    symlink(module, package.join("_core.abi3.so")).map_err(problem)
}

/// Runs the public suite for tool-call parsers through `innkeeper.intercept`.
fn judge_toolcalls() -> TaskResult {
    Program::cargo(BUILD_ARGS).run()?;
    crate::test::install_servers()?;
    let packages = repository_root().join("target/python/packages");
    link_package(&packages.join("innkeeper"))?;
    let python = repository_root().join("target/test-servers/venv/bin/python");
    Program::new(&python)
        .path_arg(&repository_root().join("xtask/toolcalls/judge.py"))
        .path_arg(&python)
        .path_arg(&repository_root().join("xtask/python/replay.py"))
        .env("PYTHONPATH", &packages.to_string_lossy())
        .run()
}

/// Builds the wheel, and tests it in a fresh environment of each Python.
fn test_wheel(options: &[&str]) -> TaskResult {
    Program::cargo(BUILD_ARGS).run()?;
    let builder = repository_root().join("target/python/build-env");
    install_once(&builder, BUILD_REQUIREMENTS, |dir| install_venv(dir, BUILD_REQUIREMENTS))?;
    let wheels = repository_root().join("target/python/wheels");
    if wheels.exists() {
        fs::remove_dir_all(&wheels).map_err(|error| format!("`target/python/wheels`: {error}"))?;
    }
    Program::new(builder.join("bin/pip"))
        .args(
            "wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir",
        )
        .path_arg(&wheels)
        .arg(".")
        .env("PATH", &format!("{}:{}", builder.join("bin").display(), path_variable()))
        .run()?;
    let wheel = built_wheel(&wheels)?;
    for python in pythons() {
        let environment = repository_root().join("target/python/wheel-env");
        if environment.exists() {
            fs::remove_dir_all(&environment).map_err(|error| format!("`wheel-env`: {error}"))?;
        }
        install_venv_for(&python, &environment, REQUIREMENTS, "")?;
        Program::new(environment.join("bin/pip"))
            .args("install --quiet --no-deps --no-index --disable-pip-version-check")
            .path_arg(&wheel)
            .run()?;
        output::print_line(format_args!("the wheel under `{python}`"));
        run_pytest(&environment.join("bin/python"), None, options)?;
    }
    Ok(())
}

fn built_wheel(wheels: &Path) -> TaskResult<PathBuf> {
    let entries = fs::read_dir(wheels).map_err(|error| format!("no wheel: {error}"))?;
    let mut paths = entries.filter_map(|entry| Some(entry.ok()?.path()));
    paths.next().ok_or_else(|| "the build made no wheel".to_owned())
}

#[expect(clippy::disallowed_methods, reason = "a task reads the environment of its user")]
fn path_variable() -> String {
    std::env::var("PATH").unwrap_or_default()
}

#[expect(clippy::disallowed_methods, reason = "a task reads the environment of its user")]
fn pythons() -> Vec<String> {
    let paths = std::env::var("INNKEEPER_PYTHONS").unwrap_or_else(|_| "python3".to_owned());
    paths.split(':').map(str::to_owned).collect()
}
