//! The program of the fixture server; `innkeeper_testkit` contains the code.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    innkeeper_testkit::fixture_server::run(std::env::args().skip(1).collect())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
