//! The fixture server: an MCP server over stdio with a switch for every fault.

mod call;
mod call_log;
mod catalog;
mod content;
mod handshake;
mod input;
mod journal_writer;
mod lists;
mod malformed;
mod message;
mod pending_requests;
mod process;
mod server;
mod start;
mod stdout;
mod subscriptions;
mod switch_table;
mod switches;
mod task;
mod timer;
mod tool;
mod verbatim;

use std::io::Write;
use std::process::ExitCode;

use switches::Switches;

pub use call_log::read_call_log;

/// Exit code for an invalid command line.
const USAGE_EXIT_CODE: u8 = 2;

/// Runs the fixture server with these arguments (without the program's name) until it exits.
///
/// The exit code is 0 at the end of the input, 2 for an unknown switch, or the code that a switch
/// sets.
#[must_use]
pub fn run(args: Vec<String>) -> ExitCode {
    if let Some(code) = process::run_role(&args) {
        return code;
    }
    if args.iter().any(|arg| arg == "--help") {
        return print_and_exit(&mut std::io::stdout(), &switch_table::help(), 0);
    }
    match Switches::parse(args) {
        Ok(switches) => start::run(switches),
        Err(problem) => print_and_exit(
            &mut std::io::stderr(),
            &format!("innkeeper-fixture-server: {problem}\n"),
            USAGE_EXIT_CODE,
        ),
    }
}

pub(crate) fn is_switch(name: &str) -> bool {
    switch_table::SWITCHES.iter().any(|switch| switch.name == name)
}

fn print_and_exit(out: &mut impl Write, text: &str, code: u8) -> ExitCode {
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
