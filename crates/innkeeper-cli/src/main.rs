//! The `innkeeper` command: hosts MCP servers from a terminal.

mod cli;
mod exit;
mod exit_code;
mod output;
mod signals;

mod config_editor;
mod configuration;
mod hosting;
mod own_paths;
mod pins;
mod progress;
mod progress_lines;
mod shutdown_notice;
mod start_failure;
mod state_dir;
mod trust;

mod log;
mod timestamp;

mod activity;
#[cfg(unix)]
mod agent_run;
mod approval;
mod atomic_file;
mod attach;
mod builtin;
mod chat;
mod commands;
mod content;
mod context;
mod demo;
mod error_chain;
mod import;
mod input_file;
mod local_model;
mod model;
mod model_selection;
mod redirect_listener;
mod secret_mask;
mod server_definition;
mod service_manager;
mod terminal_prompter;
mod terminal_questions;
mod text;
mod tool_arguments;
mod usage_error;

use std::fs::File;
use std::io::IsTerminal as _;
use std::process::ExitCode;

use innkeeper_host::{Environment, host_process, shim};

use cli::{Cli, Command, GlobalOptions};
use context::CommandContext;
use exit::{CliError, CliExitCode};
use log::{LineStyle, LogLevel, LogSink, TerminalStyle};
use output::Output;
use service_manager::ServiceManager;

fn main() -> ExitCode {
    if let Some(code) = shim::run_if_requested(std::env::args_os()) {
        return code;
    }
    if let Some(code) = model::run_if_requested(std::env::args_os()) {
        return code;
    }
    // Neither call fails on a supported kernel, and without them the program works.
    let _ = host_process::hide();
    let _ = host_process::adopt_orphans();
    let line = match Cli::from_args(std::env::args_os()) {
        Ok(line) => line,
        Err(parse_error) => {
            return usage_error::report_parse_error(&parse_error, std::env::args_os());
        }
    };
    let (service_manager, environment) = ServiceManager::take(Environment::from_process());
    let plain = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty())
        || environment.get("TERM") == Some("dumb");
    let mut output = Output::standard(line.global.json, plain);
    let Cli { global, command } = line;
    let log = LogSink::start(output.progress_lines().stderr());
    let _flush = log.flush_guard();
    let file_log = match open_log_file(&global) {
        Ok(file) => file.map(LogSink::start),
        Err(failure) => return failure.report(&mut output),
    };
    let _flush_file = file_log.as_ref().map(LogSink::flush_guard);
    let prints_findings = command.prints_findings();
    install_log(&global, &output, prints_findings, &log, file_log.as_ref());
    output.write_after_log(&log);
    let mut context =
        CommandContext { global, environment, output, service_manager, signals: None };
    let result = run(&mut context, command);
    let result = context.first_signal().map_or(result, |signal| Err(CliError::from_signal(signal)));
    let code = match result {
        Ok(()) => CliExitCode::Success.into(),
        Err(failure) => failure.report(&mut context.output),
    };
    // A signal that arrived while the error was reported.
    context.first_signal().map_or(code, |signal| CliExitCode::from(signal).into())
}

/// Opens the file of `--log-file` for appending.
fn open_log_file(global: &GlobalOptions) -> Result<Option<File>, CliError> {
    let Some(path) = &global.log.log_file else { return Ok(None) };
    let file = log::open_file(path).map_err(|error| {
        CliError::usage(format!("cannot open the log file `{}`", path.display())).with_source(error)
    })?;
    Ok(Some(file))
}

/// Sends the log to stderr and, from `info` on, to the file.
fn install_log(
    global: &GlobalOptions,
    output: &Output,
    prints_findings: bool,
    stderr: &LogSink,
    file: Option<&LogSink>,
) {
    let level = global.log.log_level;
    let format = global.log.log_format;
    let is_terminal = std::io::stderr().is_terminal();
    let style = TerminalStyle {
        colour: output.colours_stderr(),
        columns: output.err_columns(),
        prints_findings,
    };
    let style = LineStyle::of_stderr(level, format, is_terminal, style);
    let to_stderr = stderr.output(level, style);
    let to_file =
        file.map(|file| file.output(level.min(LogLevel::Info), LineStyle::of_file(format)));
    let outputs = [to_stderr].into_iter().chain(to_file).collect();
    log::install(outputs, output.secret_mask().clone());
}

fn run(context: &mut CommandContext, command: Command) -> Result<(), CliError> {
    match command {
        Command::Import(args) => commands::import(&args, &base_directories()?, &mut context.output),
        Command::Extract(args) => commands::extract(&args, &mut context.output),
        Command::LogStats(args) => commands::log_stats(&args, &mut context.output),
        Command::ExportRetries(args) => commands::export_retries(&args, &mut context.output),
        Command::Completions(args) => commands::completions(&args, &mut context.output),
        Command::Server(args) => builtin::run(args.kind, &args.path),
        Command::Golden(args) => block_on_runtime(commands::golden(context, args.command)),
        #[cfg(unix)]
        Command::Record(args) => block_on_runtime(commands::record(context, &args)),
        #[cfg(unix)]
        Command::Replay(args) => block_on_runtime(commands::replay(context, &args)),
        #[cfg(not(unix))]
        Command::Record(_) | Command::Replay(_) => {
            Err(CliError::usage("this system has no Unix sockets, which the command needs"))
        }
        Command::Model(args) => block_on_runtime(commands::model(context, args.command)),
        Command::Host(host_command) => block_on_runtime(commands::run(context, host_command)),
    }
}

/// Runs a future on a single-threaded runtime, which starts faster and is enough for one host.
fn block_on_runtime(future: impl Future<Output = Result<(), CliError>>) -> Result<(), CliError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| CliError::failure("cannot start the runtime").with_source(error))?;
    runtime.block_on(future)
}

fn base_directories() -> Result<import::BaseDirectories, CliError> {
    let cwd = std::env::current_dir().map_err(|error| {
        CliError::failure("the working directory does not exist").with_source(error)
    })?;
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.unwrap_or_else(|| cwd.clone());
    Ok(import::BaseDirectories { home, cwd })
}
