//! The fixture MCP server as a program; everything it does is in `innkeeper_testkit::fx`.

use std::process::ExitCode;

#[cfg(unix)]
fn main() -> ExitCode {
    innkeeper_testkit::fx::run(std::env::args().skip(1).collect())
}

#[cfg(not(unix))]
fn main() -> ExitCode {
    ExitCode::FAILURE
}
