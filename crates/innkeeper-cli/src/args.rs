//! The command line: what can be typed, and its meaning as types.

mod order;
mod verbs;

pub(crate) use verbs::{
    Approve, AskArgs, CallArgs, Calling, CompletionsArgs, DemoArgs, ExportRetriesArgs, ExtractArgs,
    HostVerb, ImportArgs, LockArgs, LogStatsArgs, LoginArgs, ModelArgs, ModelFetchArgs,
    ModelListArgs, ModelServeArgs, ModelVerb, PromptArgs, ReadArgs, ServerArgs, ServerKind,
    WhyArgs,
};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};

use crate::log::{Level, LogFormat};

/// Hosts MCP servers: starts them, calls what they offer, leaves no process behind.
#[derive(Debug, Parser)]
#[command(name = "innkeeper", version, max_term_width = 100)]
pub(crate) struct Line {
    #[command(flatten)]
    pub(crate) global: Global,
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

impl Line {
    /// Reads the words of the command line, the program's name first.
    pub(crate) fn read(words: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        Self::try_parse_from(order::config_after_verb(words))
    }
}

/// Options that may stand anywhere on the line.
#[derive(Args, Clone, Debug)]
pub(crate) struct Global {
    /// Configuration file; may be given more than once
    ///
    /// Without it: `mcp.json`, else `.vscode/mcp.json`, else `.mcp.json` of this folder.
    #[arg(long = "config", value_name = "FILE", global = true)]
    pub(crate) config: Vec<PathBuf>,
    /// Start what a configuration found in this folder names, and remember that it may
    ///
    /// Without it you are asked, once for each new or changed server. A file named by `--config`
    /// needs no decision.
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Print exactly one JSON value on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Least severity that is logged on stderr
    #[arg(
        long,
        value_name = "LEVEL",
        value_enum,
        ignore_case = true,
        default_value = "warning",
        global = true
    )]
    pub(crate) log_level: Level,
    /// Form of the log lines on stderr
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        ignore_case = true,
        default_value = "text",
        global = true
    )]
    pub(crate) log_format: LogFormat,
    /// Longest time one request to a server may take
    #[arg(long, value_name = "SECONDS", value_parser = seconds, global = true)]
    pub(crate) timeout: Option<Duration>,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Verb {
    #[command(flatten)]
    Host(HostVerb),
    /// Print an mcp.json made from another host's files
    Import(ImportArgs),
    /// Find the tool calls in a model's text on stdin, one JSON event a line
    Extract(ExtractArgs),
    /// Count what the log of a chat says of each tool
    LogStats(LogStatsArgs),
    /// Print what models wrote wrong and then right as pairs to learn from
    ExportRetries(ExportRetriesArgs),
    /// Put a small local model in place, list what there is, or serve it
    Model(ModelArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// Serve one of the servers inside this program over stdio
    #[command(name = "__server", hide = true)]
    Server(ServerArgs),
}

/// Reads a positive number of seconds.
fn seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(span) if !span.is_zero() => Ok(span),
        _ => Err("expected a number of seconds greater than zero".to_owned()),
    }
}

#[cfg(test)]
mod tests;
