//! `generations`: a small model writes a hundred calls by our grammars, and each has to fit.

use crate::program::Program;
use crate::{Chore, test};

/// Runs the tests that take minutes, one at a time: the model has the machine for itself.
///
/// # Errors
///
/// A call did not fit its tool's schema, or the server did not take a grammar.
pub(crate) fn run(arguments: &[&str]) -> Chore {
    if let Some(argument) = arguments.first() {
        return Err(format!("`generations` takes no `{argument}`"));
    }
    test::servers(&[])?;
    let tests = "test --locked --package innkeeper-toolcall --test it the_model";
    Program::cargo(tests).line("-- --ignored --nocapture --test-threads 1").run()
}
