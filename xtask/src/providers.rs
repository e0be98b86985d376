//! `providers`: checks the provider APIs with the providers' own clients.
//!
//! The clients run against the scripted model; the providers' schemas validate recorded requests.

use std::fs;
use std::path::{Path, PathBuf};

use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};
use crate::test::{BUILD_ARGS, CargoTool, install_once, install_venv};

const REQUIREMENTS: &str = include_str!("../providers/requirements.txt");

/// Runs a conversation with five calls in every client, streamed and not, and validates all
/// requests.
///
/// The validated requests are those of the clients, those of this project, and those in `files`
/// (one JSON object per line). Each must match the schema of its provider.
///
/// # Errors
///
/// The clients cannot be installed, a client ended unexpectedly, or a request does not match its
/// schema.
pub(crate) fn run(files: &[&str]) -> TaskResult {
    if let Some(option) = files.iter().find(|file| file.starts_with('-')) {
        return Err(format!("unknown option `{option}`; `providers` takes files with requests"));
    }
    Program::cargo(BUILD_ARGS).run()?;
    let home = repository_root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
    let python = home.join("providers");
    install_once(&python, REQUIREMENTS, |dir| install_venv(dir, REQUIREMENTS))?;
    let validator = Program::new(python.join("bin/python"))
        .path_arg(&repository_root().join("xtask/providers/judge.py"))
        .path_arg(&repository_root().join("target/debug/innkeeper-llm"));
    let recorded = record_own_requests(&home.join("requests"))?;
    let validator = recorded.iter().fold(validator, |command, file| command.path_arg(file));
    files.iter().fold(validator, |command, file| command.path_arg(Path::new(file))).run()
}

/// Records the requests of the tests over every API in files.
fn record_own_requests(dir: &Path) -> TaskResult<Vec<PathBuf>> {
    let io_error = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(io_error)?;
    }
    fs::create_dir_all(dir).map_err(io_error)?;
    let line = "run --locked --workspace --features xtask/soak -E";
    let wires = "package(innkeeper-agent) & test(/^provider_apis::/)";
    let tests = CargoTool::NEXTEST.install()?.args(line).arg(wires);
    tests.env("INNKEEPER_KEEP_REQUESTS", &dir.display().to_string()).run()?;
    let mut files = Vec::new();
    for entry in fs::read_dir(dir).map_err(io_error)? {
        files.push(entry.map_err(io_error)?.path());
    }
    files.sort();
    if files.is_empty() {
        return Err("the tests over every API recorded no request".to_owned());
    }
    Ok(files)
}
