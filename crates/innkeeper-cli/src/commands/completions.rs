//! `completions`: the completion script for a shell.

use clap::CommandFactory as _;
use serde_json::json;

use crate::args::{CompletionsArgs, Line};
use crate::exit::Failure;
use crate::output::Output;

/// Prints the script.
pub(crate) fn completions(args: &CompletionsArgs, output: &mut Output) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Line::command(), "innkeeper", &mut script);
    let script = String::from_utf8_lossy(&script);
    if output.is_json() {
        output.value(&json!({ "shell": args.shell.to_string(), "script": script }))?;
    } else {
        output.data(&script)?;
    }
    Ok(())
}
