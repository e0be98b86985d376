//! `toolcalls`: a public suite for parsers of tool calls judges our interceptor.

use crate::program::{Program, root};
use crate::test::BUILD;
use crate::{Chore, test};

/// Replays every fixture; each has to pass each check, however its text is cut.
///
/// # Errors
///
/// The suite cannot be put in place, or a fixture failed.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`toolcalls` takes no `{argument}`"));
    }
    Program::cargo(BUILD).run()?;
    test::provide()?;
    let python = root().join("target/test-servers/venv/bin/python");
    let replay = root().join("target/debug/examples/replay");
    Program::new(python).path(&root().join("xtask/toolcalls/judge.py")).path(&replay).run()
}
