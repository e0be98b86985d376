//! The report of an invalid command line.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::CommandFactory as _;

use crate::cli::Cli;
use crate::commands::print_ask_failure;
use crate::exit::{CliError, CliExitCode};
use crate::output::Output;

/// Reports a clap error, or prints the requested help.
///
/// With `--json` anywhere on the command line, the error is a JSON value like any other error.
pub(crate) fn report_parse_error(
    parse_error: &clap::Error,
    line: impl Iterator<Item = OsString>,
) -> ExitCode {
    let args: Vec<OsString> = line.skip(1).collect();
    let json = args.iter().any(|arg| arg == "--json");
    if !parse_error.use_stderr() {
        return match parse_error.print() {
            Ok(()) => CliExitCode::Success.into(),
            Err(error) => CliError::from(error).exit_code().into(),
        };
    }
    if json {
        let text = parse_error.to_string();
        let (message, rest) = text.split_once('\n').unwrap_or((&text, ""));
        let failure = CliError::usage(message.strip_prefix("error: ").unwrap_or(message));
        let hints = rest.lines().map(str::trim).filter(|line| !line.is_empty());
        let failure = hints.fold(failure, CliError::with_hint);
        let mut output = Output::standard(true, true);
        if is_ask(&args) {
            // If the output is closed, the exit code is the only report.
            print_ask_failure(&failure, None, &mut output).unwrap_or_default();
        }
        return failure.report(&mut output);
    }
    match parse_error.print() {
        Ok(()) | Err(_) => CliExitCode::Usage.into(),
    }
}

/// Returns whether the command of an invalid command line is `ask`, whose JSON is always a result.
fn is_ask(args: &[OsString]) -> bool {
    let command = Cli::command();
    let mut names = args
        .iter()
        .filter(|arg| arg.to_str().is_some_and(|name| command.find_subcommand(name).is_some()));
    names.next().is_some_and(|name| name == "ask")
}
