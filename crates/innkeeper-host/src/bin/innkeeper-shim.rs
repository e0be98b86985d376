//! The supervisor of one server's process tree; started by the host, not by hand.

use std::io::Write;
use std::process::ExitCode;

fn main() -> ExitCode {
    innkeeper_host::shim::run_if_requested(std::env::args_os()).unwrap_or_else(|| {
        let told = writeln!(std::io::stderr(), "innkeeper-shim is started by an MCP host");
        ExitCode::from(if told.is_ok() { 2 } else { 1 })
    })
}
