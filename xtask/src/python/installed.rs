//! The wheel and the source distribution: both are installed as a user would, then tested.

use std::fs;
use std::path::{Path, PathBuf};

use super::{REQUIREMENTS, pytest};
use crate::program::{Program, relative_path, repository_root};
use crate::test::{install_once, install_venv, install_venv_for};
use crate::{TaskResult, output};

/// The builders of wheels and of source distributions.
const BUILD_REQUIREMENTS: &str = include_str!("../../python/build-requirements.txt");

/// The programs that the tests start, apart from the command, which is installed.
const TEST_PROGRAMS_ARGS: &str = "build --locked --package innkeeper-testkit --bins";

/// Prints the version of the module, which must be the one of the command.
const MODULE_VERSION: &str =
    "import innkeeper; innkeeper.MCPHost({'servers': {}}); print(innkeeper.__version__)";

/// Builds the wheel, and tests it in a fresh environment of each Python.
pub(super) fn test_wheel(options: &[&str]) -> TaskResult {
    Program::cargo(TEST_PROGRAMS_ARGS).run()?;
    let builder = install_builder()?;
    let wheels = empty_directory("target/python/wheels")?;
    Program::new(builder.join("bin/pip"))
        .args(
            "wheel --quiet --no-deps --no-build-isolation --disable-pip-version-check --wheel-dir",
        )
        .path_arg(&wheels)
        .arg(".")
        .env("PATH", &format!("{}:{}", builder.join("bin").display(), path_variable()))
        .run()?;
    let wheel = built_file(&wheels)?;
    for python in pythons() {
        output::print_line(format_args!("the wheel under `{python}`"));
        let environment = empty_directory("target/python/wheel-env")?;
        Program::new(&python).args("-m venv").path_arg(&environment).run()?;
        Program::new(environment.join("bin/pip"))
            .args("install --quiet --no-deps --no-index --disable-pip-version-check")
            .path_arg(&wheel)
            .run()?;
        test_installed(&python, &environment, options)?;
    }
    Ok(())
}

/// Builds the source distribution, which pip then builds and installs under each Python as it does for
/// a user: with a builder that it downloads. It is unpacked once, so that the Pythons share most of what
/// cargo compiles.
pub(super) fn test_source_distribution(options: &[&str]) -> TaskResult {
    Program::cargo(TEST_PROGRAMS_ARGS).run()?;
    let builder = install_builder()?;
    let archives = empty_directory("target/python/sdist")?;
    Program::new(builder.join("bin/python"))
        .args("-m build --sdist --outdir")
        .path_arg(&archives)
        .arg(".")
        .run()?;
    let unpacked = empty_directory("target/python/sdist-unpacked")?;
    let archive = built_file(&archives)?;
    Program::new("tar").args("-xzf").path_arg(&archive).arg("-C").path_arg(&unpacked).run()?;
    let source = built_file(&unpacked)?;
    for python in pythons() {
        output::print_line(format_args!("the source distribution under `{python}`"));
        let environment = empty_directory("target/python/sdist-env")?;
        Program::new(&python).args("-m venv").path_arg(&environment).run()?;
        Program::new(environment.join("bin/pip"))
            .args("install --quiet --no-cache-dir --disable-pip-version-check")
            .path_arg(&source)
            .run()?;
        test_installed(&python, &environment, options)?;
    }
    Ok(())
}

/// Tests the package of an environment that has nothing else, and then runs the tests of the package
/// there.
fn test_installed(python: &str, environment: &Path, options: &[&str]) -> TaskResult {
    let interpreter = environment.join("bin/python");
    let command = environment.join("bin/innkeeper");
    let module = Program::new(&interpreter).arg("-c").arg(MODULE_VERSION).output()?;
    let program = Program::new(&command).arg("--version").output()?;
    if program.trim() != format!("innkeeper {}", module.trim()) {
        return Err(format!("`{}` comes with the module {}", program.trim(), module.trim()));
    }
    Program::new(&command).arg("demo").output()?;
    install_venv_for(python, environment, REQUIREMENTS, "")?;
    let pytest = pytest(&interpreter, None).env("INNKEEPER", &command.to_string_lossy());
    options.iter().fold(pytest, Program::arg).arg("python/tests").run()
}

fn install_builder() -> TaskResult<PathBuf> {
    let builder = repository_root().join("target/python/build-env");
    install_once(&builder, BUILD_REQUIREMENTS, |dir| install_venv(dir, BUILD_REQUIREMENTS))?;
    Ok(builder)
}

fn empty_directory(path: &str) -> TaskResult<PathBuf> {
    let directory = repository_root().join(path);
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(&directory));
    if directory.exists() {
        fs::remove_dir_all(&directory).map_err(problem)?;
    }
    fs::create_dir_all(&directory).map_err(problem)?;
    Ok(directory)
}

/// The only file of the directory.
fn built_file(directory: &Path) -> TaskResult<PathBuf> {
    let mut paths = fs::read_dir(directory)
        .map_err(|error| format!("`{}`: {error}", relative_path(directory)))?
        .filter_map(|entry| Some(entry.ok()?.path()));
    paths.next().ok_or_else(|| format!("the build left `{}` empty", relative_path(directory)))
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
