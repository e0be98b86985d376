//! The `innkeeper` command: hosts MCP servers from a terminal.

mod args;
mod exit;
mod output;
mod signals;

mod configuration;
mod hosting;
mod pins;
mod progress;
mod trust;

mod log;
mod timestamp;

mod arguments;
mod browser;
mod builtin;
mod cause;
mod commands;
mod demo;
mod import;
mod model;
mod named;

use std::process::ExitCode;

use innkeeper_host::{Environment, shim};

use args::{Line, Verb};
use commands::Context;
use exit::{Code, Failure};
use output::Output;

fn main() -> ExitCode {
    if let Some(code) = shim::run_if_requested(std::env::args_os()) {
        return code;
    }
    if let Some(code) = model::run_if_requested(std::env::args_os()) {
        return code;
    }
    let line = match Line::read(std::env::args_os()) {
        Ok(line) => line,
        Err(refusal) => return exit::refused(&refusal, std::env::args_os()),
    };
    let environment = Environment::of_process();
    let plain = environment.get("NO_COLOR").is_some_and(|value| !value.is_empty());
    let mut output = Output::standard(line.global.json, plain);
    let Line { global, verb } = line;
    let log = log::install(global.log_level, global.log_format, output.colours_talk());
    let _flush = log.at_end();
    output.talk_behind(&log);
    let mut context = Context {
        global,
        environment,
        output,
        lock: None,
        found: None,
        browser: None,
        signals: None,
    };
    let result = run(&mut context, verb);
    let result = context.signalled().map_or(result, |signal| Err(Failure::signalled(signal)));
    let code = match result {
        Ok(()) => Code::Done.into(),
        Err(failure) => failure.report(&mut context.output),
    };
    // One that came while the failure was told.
    context.signalled().map_or(code, |signal| Code::from(signal).into())
}

fn run(context: &mut Context, verb: Verb) -> Result<(), Failure> {
    match verb {
        Verb::Import(args) => commands::import(&args, &places()?, &mut context.output),
        Verb::Extract(args) => commands::extract(&args, &mut context.output),
        Verb::LogStats(args) => commands::log_stats(&args, &mut context.output),
        Verb::ExportRetries(args) => commands::export_retries(&args, &mut context.output),
        Verb::Completions(args) => commands::completions(&args, &mut context.output),
        Verb::Server(args) => builtin::run(args.kind, &args.place),
        Verb::Model(args) => on_runtime(commands::model(context, args.verb)),
        Verb::Host(verb) => on_runtime(commands::run(context, verb)),
    }
}

/// One thread is enough for a host at a terminal, and starts faster than many.
fn on_runtime(work: impl Future<Output = Result<(), Failure>>) -> Result<(), Failure> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::failed("the runtime cannot be started").because(error))?;
    runtime.block_on(work)
}

fn places() -> Result<import::Places, Failure> {
    let cwd = std::env::current_dir()
        .map_err(|error| Failure::failed("the working directory is not there").because(error))?;
    let home = std::env::home_dir().filter(|home| home.is_absolute());
    let home = home.unwrap_or_else(|| cwd.clone());
    Ok(import::Places { home, cwd })
}
