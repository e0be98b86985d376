//! The fixture server: an MCP server over stdio whose every misbehaviour is a switch.

mod ask;
mod call;
mod catalog;
mod content;
mod handshake;
mod input;
mod journal;
mod listen;
mod lists;
mod malformed;
mod message;
mod process;
mod server;
mod start;
mod switch;
mod table;
mod tally;
mod task;
mod timer;
mod tool;
mod wire;

use std::io::Write;
use std::process::ExitCode;

use switch::Switches;

pub use tally::tallied;

/// Exit code for a command line that cannot be understood.
const USAGE: u8 = 2;

/// Runs the fixture server with these arguments (without the program's name) until it ends.
///
/// Ends with 0 on end of input, 2 on an unknown switch, otherwise as the switches ask.
#[must_use]
pub fn run(args: Vec<String>) -> ExitCode {
    if let Some(code) = process::run_role(&args) {
        return code;
    }
    if args.iter().any(|arg| arg == "--help") {
        return say(&mut std::io::stdout(), &table::help(), 0);
    }
    match Switches::parse(args) {
        Ok(switches) => start::run(switches),
        Err(problem) => say(&mut std::io::stderr(), &format!("innkeeper-fx: {problem}\n"), USAGE),
    }
}

/// Whether the fixture server has a switch of this name.
pub(crate) fn is_switch(name: &str) -> bool {
    table::TABLE.iter().any(|switch| switch.name == name)
}

fn say(out: &mut impl Write, text: &str, code: u8) -> ExitCode {
    match out.write_all(text.as_bytes()) {
        Ok(()) => ExitCode::from(code),
        Err(_) => ExitCode::FAILURE,
    }
}
