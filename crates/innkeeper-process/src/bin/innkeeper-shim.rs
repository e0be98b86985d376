//! Supervises the process tree of one server; started by the host, not by a user.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    innkeeper_process::shim::run_if_requested(std::env::args_os()).unwrap_or_else(|| {
        let written = writeln!(std::io::stderr(), "innkeeper-shim is started by an MCP host");
        ExitCode::from(if written.is_ok() { 2 } else { 1 })
    })
}
