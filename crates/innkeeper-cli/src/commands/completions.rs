//! `completions`: prints the completion script for a shell.

use clap::CommandFactory as _;
use serde_json::json;

use crate::cli::{Cli, CompletionsArgs};
use crate::exit::CliError;
use crate::output::Output;

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<(), CliError> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "innkeeper", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.is_json() {
        output.print_json(&json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        output.print_data(&script)?;
    }
    Ok(())
}
