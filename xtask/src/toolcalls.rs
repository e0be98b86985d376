//! `toolcalls`: runs a public test suite for tool-call parsers.

use crate::program::{Program, repository_root};
use crate::test::BUILD_ARGS;
use crate::{TaskResult, test};

/// Replays every fixture; each fixture must pass each check with every chunk size.
///
/// # Errors
///
/// The suite cannot be installed, or a fixture failed.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`toolcalls` takes no `{argument}`"));
    }
    Program::cargo(BUILD_ARGS).run()?;
    test::install_servers()?;
    let python = repository_root().join("target/test-servers/venv/bin/python");
    let replay = repository_root().join("target/debug/examples/replay");
    Program::new(python)
        .path_arg(&repository_root().join("xtask/toolcalls/judge.py"))
        .path_arg(&replay)
        .run()
}
