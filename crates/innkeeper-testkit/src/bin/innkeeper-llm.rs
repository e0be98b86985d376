//! A scripted model as a program, for clients that are no Rust: reads a script, prints its origin on
//! one line, answers until its input ends.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    innkeeper_testkit::llm::run(std::env::args().skip(1).collect())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
