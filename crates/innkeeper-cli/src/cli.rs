//! The command line: global options and commands as clap types.

mod agent_run;
mod commands;
mod golden;
mod option_order;

pub(crate) use agent_run::{RecordRunArgs, ReplayRunArgs};
pub(crate) use commands::{
    AddArgs, ApprovalArg, AskArgs, BuiltinServerKind, CallArgs, ChatArgs, CompletionsArgs,
    DemoArgs, ExportRetriesArgs, ExtractArgs, HostCommand, ImportArgs, LockArgs, LogStatsArgs,
    LoginArgs, ModelArgs, ModelCommand, ModelFetchArgs, ModelListArgs, ModelSelectionArgs,
    ModelServeArgs, NamesArg, PromptArgs, ReadArgs, ResultForm, RunFileArgs, ServeArgs, ServerArgs,
    ServerNameArgs, ThemeArg, ToolsArgs, WhyArgs,
};
pub(crate) use golden::{
    AcceptArgs, DiffArgs, FromTraceArgs, GoldenArgs, GoldenCommand, InspectArgs, ListArgs, MarkArg,
    ReplayArgs, ReviewArgs, StaleArgs, StatsArgs,
};

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use innkeeper_host::config::Secret;

use crate::log::{LogFormat, LogLevel};

/// Host for MCP servers: starts servers, calls their tools and stops all their processes
#[derive(Debug, Parser)]
#[command(name = "innkeeper", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(flatten)]
    pub(crate) global: GlobalOptions,
    #[command(subcommand)]
    pub(crate) command: Command,
}

impl Cli {
    /// Parses the arguments; the first argument is the program name.
    pub(crate) fn from_args(args: impl IntoIterator<Item = OsString>) -> Result<Self, clap::Error> {
        let args: Vec<OsString> = args.into_iter().collect();
        if args.get(1).is_some_and(|command| command == BUILTIN_SERVER_COMMAND) {
            let BuiltinServerLine { global, server } =
                BuiltinServerLine::try_parse_from(&args[1..])?;
            return Ok(Self { global, command: Command::Server(server) });
        }
        let args = option_order::replace_stdio_of_serve(args);
        Self::try_parse_from(option_order::move_server_options_after_command(args))
    }
}

/// Options accepted before and after the command.
#[derive(Args, Clone, Debug)]
pub(crate) struct GlobalOptions {
    /// Configuration file; repeat the option for several files
    ///
    /// Default: the first of `mcp.json`, `.vscode/mcp.json` and `.mcp.json` in this directory, in
    /// its parent directories up to the root of the repository, or `innkeeper/mcp.json` in the
    /// configuration directory of the user.
    #[arg(long = "config", value_name = "FILE", global = true)]
    pub(crate) config: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) server: SingleServerOptions,
    /// Trust the servers of the configuration file that innkeeper found, and store the decision
    ///
    /// Without this option, innkeeper asks on the terminal once for each new or changed server.
    /// Files given with `--config`, `--stdio`, `--url` and the file of the user are trusted.
    #[arg(long, global = true)]
    pub(crate) trust: bool,
    /// Fail if a server fails that the configuration requires
    ///
    /// Without this option, `tools`, `ask`, `read` and `lock --check` use the servers that start.
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Start own servers, even if an `innkeeper serve` of the same configuration runs
    ///
    /// Without this option, `call`, `read` and `prompt` use the servers of the running `serve`, and
    /// `serve` lets them.
    #[arg(long, global = true)]
    pub(crate) no_attach: bool,
    /// Print exactly one JSON value on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(flatten)]
    pub(crate) log: LogOptions,
    /// Timeout of one request to a server; default: `timeout` of the server
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds, global = true)]
    pub(crate) timeout: Option<Duration>,
}

/// A server in place of a configuration.
#[derive(Args, Clone, Debug)]
pub(crate) struct SingleServerOptions {
    /// Command line of a server to use in place of a configuration; no shell runs
    ///
    /// The command line is split into words like in a POSIX shell. The name of the server is the
    /// short name of its package or program, and a tool may be named without the server.
    #[arg(
        long,
        value_name = "COMMAND",
        global = true,
        conflicts_with_all = ["config", "url"],
        help_heading = SERVER_HEADING
    )]
    pub(crate) stdio: Option<String>,
    /// URL of a server to use in place of a configuration
    ///
    /// The name of the server is the short name of the host, and a tool may be named without the
    /// server.
    #[arg(
        long,
        value_name = "URL",
        global = true,
        conflicts_with = "config",
        help_heading = SERVER_HEADING
    )]
    pub(crate) url: Option<String>,
    /// Header of each request to the server of `--url`; `${NAME}` is replaced by the variable
    #[arg(
        long,
        value_name = "NAME: VALUE",
        global = true,
        value_parser = parse_secret,
        help_heading = SERVER_HEADING
    )]
    pub(crate) header: Vec<Secret>,
    /// Environment variable of the server of `--stdio`; without a value, the variable of this shell
    #[arg(
        long,
        value_name = "NAME=VALUE",
        global = true,
        value_parser = parse_secret,
        help_heading = SERVER_HEADING
    )]
    pub(crate) env: Vec<Secret>,
}

impl SingleServerOptions {
    /// Whether the command line names a server.
    pub(crate) fn is_given(&self) -> bool {
        self.stdio.is_some() || self.url.is_some()
    }
}

/// Where and what the program logs.
#[derive(Args, Clone, Debug)]
pub(crate) struct LogOptions {
    /// Minimum log level on stderr
    #[arg(
        long,
        value_name = "LEVEL",
        value_enum,
        ignore_case = true,
        default_value = "warning",
        global = true
    )]
    pub(crate) log_level: LogLevel,
    /// Log format on stderr
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        ignore_case = true,
        default_value = "text",
        global = true
    )]
    pub(crate) log_format: LogFormat,
    /// Append the log to a file, from `info` on
    #[arg(long, value_name = "FILE", global = true)]
    pub(crate) log_file: Option<PathBuf>,
}

/// Heading of the options that describe one server.
const SERVER_HEADING: &str = "Server without a configuration";

/// A command of the program.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    #[command(flatten)]
    Host(HostCommand),
    /// Convert the MCP configuration of another host to `mcp.json` on stdout
    Import(ImportArgs),
    /// Find tool calls in model output on stdin, and print JSON Lines
    Extract(ExtractArgs),
    /// Print the number and the duration of the calls in a chat log, per tool
    LogStats(LogStatsArgs),
    /// Export failed and corrected tool calls as training pairs
    ExportRetries(ExportRetriesArgs),
    /// List, show, replay and maintain recorded runs (goldens)
    Golden(GoldenArgs),
    /// Record a run of any agent, with its model and its MCP servers
    Record(RecordRunArgs),
    /// Run an agent again with a recorded model and recorded MCP servers
    Replay(ReplayRunArgs),
    /// Install, list or serve a small local model
    Model(ModelArgs),
    /// Print the completion script for a shell
    Completions(CompletionsArgs),
    /// A built-in server over stdio, which no help, completion or suggestion shows.
    #[command(skip)]
    Server(ServerArgs),
}

impl Command {
    /// Whether the command prints the findings about the definitions of the servers.
    pub(crate) fn prints_findings(&self) -> bool {
        matches!(self, Self::Host(HostCommand::Tools(_) | HostCommand::Why(_)))
    }
}

/// Accepts every text. A message of the parser would show the text, so a later step checks it.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a parser")]
fn parse_secret(text: &str) -> Result<Secret, String> {
    Ok(Secret::new(text))
}

/// The command that starts a built-in server.
const BUILTIN_SERVER_COMMAND: &str = "__server";

/// Serve a built-in server over stdio
#[derive(Debug, Parser)]
#[command(name = BUILTIN_SERVER_COMMAND)]
struct BuiltinServerLine {
    #[command(flatten)]
    global: GlobalOptions,
    #[command(flatten)]
    server: ServerArgs,
}

/// Parses a positive number of seconds.
fn parse_seconds(text: &str) -> Result<Duration, String> {
    let number: f64 = text.parse().map_err(|_| "expected a number of seconds".to_owned())?;
    match Duration::try_from_secs_f64(number) {
        Ok(span) if !span.is_zero() => Ok(span),
        _ => Err("expected a number of seconds greater than zero".to_owned()),
    }
}

#[cfg(test)]
mod tests;
