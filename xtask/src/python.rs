//! `python`: the tests of the Python package, and its wheel.

use std::collections::BTreeMap;
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
/// of `INNKEEPER_PYTHONS`, paths with a colon between them, or into `python3`. `--frameworks` tests the
/// named agent frameworks, or all of them, with their real packages.
///
/// # Errors
///
/// A build or a test failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    match arguments {
        ["--wheel", options @ ..] => test_wheel(options),
        ["--toolcalls"] => judge_toolcalls(),
        ["--frameworks", names @ ..] => test_frameworks(names),
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
    let pytest = pytest(&environment.join("bin/python"), Some(&link_package()?));
    options.iter().fold(pytest, Program::arg).arg("python/tests").run()
}

/// pytest with the programs that the tests start; `packages` has the package if it isn't installed.
fn pytest(python: &Path, packages: Option<&Path>) -> Program {
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

/// Tests agent frameworks, each in an environment of its own: no two of them need agree about versions.
fn test_frameworks(names: &[&str]) -> TaskResult {
    Program::cargo(BUILD_ARGS).run()?;
    let packages = link_package()?;
    // Other packages of our tests have versions that a framework may not take.
    let pytest_lines: Vec<&str> =
        REQUIREMENTS.lines().filter(|line| line.starts_with("pytest")).collect();
    let mut failed = Vec::new();
    for (name, list) in frameworks()? {
        if !names.is_empty() && !names.contains(&name.as_str()) {
            continue;
        }
        let environment = repository_root().join("target/python/frameworks").join(&name);
        let requirements = format!("{}\n{list}", pytest_lines.join("\n"));
        install_once(&environment, &requirements, |dir| install_venv(dir, &requirements))?;
        output::print_line(format_args!("{name}"));
        let tests = format!("python/tests/frameworks/test_{}.py", name.replace('-', "_"));
        let result = pytest(&environment.join("bin/python"), Some(&packages))
            .env("INNKEEPER_FRAMEWORK_TESTS", &tests)
            .arg(&tests)
            .arg("python/tests/frameworks/test_killed_interpreter.py")
            .run();
        failed.extend(result.err().map(|_| name));
    }
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!("failed: {}", names.join(", "))),
    }
}

/// The names of the frameworks, each with its list of packages.
fn frameworks() -> TaskResult<BTreeMap<String, String>> {
    let lists = repository_root().join("xtask/python/frameworks");
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&lists));
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(&lists).map_err(problem)? {
        let path = entry.map_err(problem)?.path();
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        found.insert(name, fs::read_to_string(&path).map_err(problem)?);
    }
    Ok(found)
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
        let pytest = pytest(&environment.join("bin/python"), None);
        options.iter().fold(pytest, Program::arg).arg("python/tests").run()?;
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
