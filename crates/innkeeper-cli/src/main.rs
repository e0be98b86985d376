//! The `innkeeper` command: hosts MCP servers from a terminal.

mod args;
mod exit;
mod output;
mod signals;

mod log;
mod timestamp;

mod arguments;
mod builtin;
mod cause;
mod commands;
mod demo;
mod import;

use std::process::ExitCode;

use clap::Parser as _;

use args::{Line, Verb};
use exit::{Code, Failure};
use output::Output;

fn main() -> ExitCode {
    let line = match Line::try_parse() {
        Ok(line) => line,
        Err(refusal) => return exit::refused(&refusal, std::env::args_os()),
    };
    let plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut output = Output::standard(line.global.json, plain);
    log::install(line.global.log_level, line.global.log_format, output.colours_talk());
    match run(&line, &mut output) {
        Ok(()) => Code::Done.into(),
        Err(failure) => failure.report(&mut output),
    }
}

fn run(line: &Line, output: &mut Output) -> Result<(), Failure> {
    match &line.verb {
        Verb::Import(args) => commands::import(args, &places()?, output),
        Verb::Completions(args) => commands::completions(args, output),
        Verb::Server(args) => builtin::run(args.kind, &args.place),
    }
}

fn places() -> Result<import::Places, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|error| Failure::failed("the working directory is not there").because(error))?;
    let home = std::env::home_dir().unwrap_or_else(|| cwd.clone());
    Ok(import::Places { home, cwd })
}
