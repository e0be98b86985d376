//! The program `innkeeper-llm`: a scripted model for clients in other languages.
//!
//! The program reads a script, prints its origin on one line and serves until the end of its input.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    innkeeper_testkit::llm::run(std::env::args().skip(1).collect())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
