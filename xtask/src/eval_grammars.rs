//! `eval-grammars`: checks that grammar-constrained calls of a small model match their schemas.

use crate::program::Program;
use crate::{TaskResult, test};

/// Runs the long tests of the small model one at a time, so that the model has the whole CPU.
///
/// # Errors
///
/// A call did not match its tool's schema, or the server rejected a grammar.
pub(crate) fn run(arguments: &[&str]) -> TaskResult {
    if let Some(argument) = arguments.first() {
        return Err(format!("`eval-grammars` takes no `{argument}`"));
    }
    test::install_test_servers(&[])?;
    let tests = "test --locked --package innkeeper-toolcall --test it the_model";
    Program::cargo(tests).args("-- --ignored --nocapture --test-threads 1").run()
}
