//! `demo`: runs a scripted chain of tool calls without a configuration.

mod local_model;
#[cfg(unix)]
mod server_loss;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use innkeeper_host::shutdown::{ServerStopReport, ShutdownReport};
use innkeeper_host::{Config, Host};
use serde_json::{Value, json};

use crate::cli::DemoArgs;
use crate::configuration::{LoadedConfig, apply_timeout, config_error, load_config, select_source};
use crate::context::CommandContext;
use crate::demo::{CompletedStep, Demo, DemoServers, ToolCaller};
use crate::exit::CliError;
use crate::hosting::with_host;
use crate::model::{
    DiscoveryOptions, ModelSource, ModelSources, default_models_dir, discover_models,
};
use crate::output::{Output, Style, Table, shorten};

/// Maximum number of characters of an argument or a finding on one line.
const MAX_SHOWN_CHARS: usize = 72;

pub(super) async fn run(context: &mut CommandContext, args: &DemoArgs) -> Result<(), CliError> {
    let (demo, loaded) =
        prepare_demo(context, if args.npm { DemoServers::Npm } else { DemoServers::BuiltIn })?;
    if args.model.is_some() {
        return local_model::run(context, loaded).await;
    }
    print_opening(context, &loaded.config, args.npm)?;
    let ((calls, loss), report) = with_host(context, loaded, async |host, output| {
        let calls = run_chain(&demo, host, output).await?;
        let loss = if args.npm { None } else { lose_server(host, output, calls.len() + 1).await? };
        Ok((calls, loss))
    })
    .await?;
    let dir = default_models_dir(&context.environment);
    let sources = discover_models(&DiscoveryOptions::with_default_ports(
        &context.environment,
        dir.as_deref(),
    ))
    .await;
    print_report(&mut context.output, &calls, loss.as_ref(), &report, &sources)
}

/// Kills a server during a call and prints what became of both; returns the outcome as JSON.
#[cfg(unix)]
async fn lose_server(
    host: &Host,
    output: &mut Output,
    number: usize,
) -> Result<Option<Value>, CliError> {
    let loss = server_loss::ServerLoss::cause(host).await?;
    if !output.is_json() {
        loss.print(output, number)?;
    }
    Ok(Some(loss.to_json()))
}

/// On systems without signals, the demo has no such step.
#[cfg(not(unix))]
#[expect(clippy::unused_async, reason = "the same signature on all systems")]
async fn lose_server(_: &Host, _: &mut Output, _: usize) -> Result<Option<Value>, CliError> {
    Ok(None)
}

/// Returns the servers for a model: those of the configuration, or the demo's, whose files exist
/// until the `Demo` is dropped.
pub(super) fn load_servers(
    context: &mut CommandContext,
    uses_demo: bool,
    command: &str,
) -> Result<(LoadedConfig, Option<Demo>), CliError> {
    if uses_demo {
        let (demo, loaded) = prepare_demo(context, DemoServers::BuiltIn)?;
        return Ok((loaded, Some(demo)));
    }
    select_source(context).map_err(|failure| {
        failure.with_hint(format!(
            "run `innkeeper {command} --demo …` to use the demo servers without a configuration"
        ))
    })?;
    Ok((load_config(context)?, None))
}

/// Writes the sample files and builds the configuration; the files exist until the `Demo` is
/// dropped.
pub(super) fn prepare_demo(
    context: &CommandContext,
    cast: DemoServers,
) -> Result<(Demo, LoadedConfig), CliError> {
    let demo = Demo::prepare(cast)
        .map_err(|error| CliError::failure("cannot write the sample files").with_source(error))?;
    let program = std::env::current_exe().map_err(|error| {
        CliError::failure("cannot determine the executable path").with_source(error)
    })?;
    let file = demo.config(&program);
    let mut config = Config::from_value(&file, "demo", Path::new("."), &context.environment)
        .map_err(|error| config_error(&error))?;
    apply_timeout(&mut config, context);
    Ok((demo, LoadedConfig::without_files(config)))
}

/// A completed call of the chain.
struct CompletedCall {
    tool: &'static str,
    finding: String,
    elapsed: Duration,
}

fn print_opening(context: &mut CommandContext, config: &Config, npm: bool) -> Result<(), CliError> {
    if context.output.is_json() {
        return Ok(());
    }
    let names: Vec<String> = config.servers.keys().map(|name| format!("`{name}`")).collect();
    let kind = if npm { "from npm" } else { "built in" };
    context.output.print_data(&format!(
        "Starting {} ({kind}, one process each).\nThe tool calls below are scripted; \
         no language model is used yet.\n",
        names.join(" and ")
    ))?;
    Ok(())
}

/// Calls tools through the host and measures the duration of each call.
struct TimedHostCaller<'a> {
    host: &'a Host,
    elapsed: Vec<Duration>,
}

impl ToolCaller for TimedHostCaller<'_> {
    async fn call_tool(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        #[expect(clippy::disallowed_methods, reason = "shown to the user only")]
        let started = Instant::now();
        let result = self.host.call_tool(tool, arguments).await?;
        self.elapsed.push(started.elapsed());
        Ok(serde_json::from_str(result.raw().get())?)
    }
}

async fn run_chain(
    demo: &Demo,
    host: &Host,
    output: &mut Output,
) -> Result<Vec<CompletedCall>, CliError> {
    let mut print_result = Ok(());
    let mut findings = Vec::new();
    let mut runner = TimedHostCaller { host, elapsed: Vec::new() };
    let mut on_step = |done: &CompletedStep| {
        if print_result.is_ok() && !output.is_json() {
            print_result = print_step(output, done);
        }
        findings.push((done.tool, done.finding.clone()));
    };
    let running = demo.run(&mut runner, &mut on_step);
    running.await.map_err(|error| CliError::failure("the demo failed").with_source(error))?;
    print_result?;
    let calls = findings.into_iter().zip(runner.elapsed);
    Ok(calls.map(|((tool, finding), elapsed)| CompletedCall { tool, finding, elapsed }).collect())
}

fn print_step(output: &mut Output, done: &CompletedStep) -> std::io::Result<()> {
    let number = output.paint(Style::Strong, &format!("{}.", done.number));
    let tool = output.paint(Style::Good, done.tool);
    output.print_data(&format!("{number} {tool}  {}", done.purpose))?;
    output
        .print_data(&format!("     → {}", shorten(&done.arguments.to_string(), MAX_SHOWN_CHARS)))?;
    output.print_data(&format!("     ← {}", shorten(&done.finding, MAX_SHOWN_CHARS)))
}

fn print_report(
    output: &mut Output,
    calls: &[CompletedCall],
    loss: Option<&Value>,
    report: &ShutdownReport,
    sources: &ModelSources,
) -> Result<(), CliError> {
    if output.is_json() {
        output.print_json(&report_json(calls, loss, report, sources))?;
    } else {
        let mut table = Table::new(["call", "tool", "ms"]);
        for (index, call) in calls.iter().enumerate() {
            let number = (index + 1).to_string();
            table.add_row([&number, call.tool, &format!("{:.2}", millis(call.elapsed))]);
        }
        output.print_data("")?;
        output.print_table(&table)?;
        let mut table = Table::new(["server", "stopped", "exit", "ms", "left over"]);
        for server in &report.servers {
            let remaining = if server.leftovers { "yes" } else { "nothing" };
            let exit_column = exit_text(server);
            let took = format!("{:.1}", millis(server.took));
            table.add_row([&*server.server, server.stage.as_str(), &exit_column, &took, remaining]);
        }
        output.print_data("")?;
        output.print_table(&table)?;
        let took = millis(report.took);
        output.print_data(&format!(
            "\n{} calls; all servers stopped after {took:.0} ms; {}.",
            calls.len(),
            if report.is_clean() { "no process is left" } else { "a process is left" }
        ))?;
        print_model_sources(output, sources)?;
    }
    if report.is_clean() {
        Ok(())
    } else {
        Err(CliError::failure("a server did not exit by itself"))
    }
}

/// Prints how to use a language model: available models first, then suggestions.
fn print_model_sources(output: &mut Output, sources: &ModelSources) -> std::io::Result<()> {
    output.status("No language model was used: every call above is scripted.")?;
    if sources.available.is_empty() {
        output.status("No model found on this machine. To use a model:")?;
    } else {
        output.status("To use a model of this machine:")?;
        for source in &sources.available {
            output.status(&format!("  `{}`  ({source})", source.command()))?;
        }
        if !sources.suggestions.is_empty() {
            output.status("To use another model:")?;
        }
    }
    sources.suggestions.iter().try_for_each(|line| output.status(&format!("  {line}")))
}

/// Returns the exit status of a server process; empty for a remote server.
fn exit_text(server: &ServerStopReport) -> String {
    server.exit.map(|exit_status| exit_status.to_string()).unwrap_or_default()
}

fn report_json(
    calls: &[CompletedCall],
    loss: Option<&Value>,
    report: &ShutdownReport,
    sources: &ModelSources,
) -> Value {
    let calls = calls.iter().map(
        |call| json!({ "tool": call.tool, "learned": call.finding, "tookMs": millis(call.elapsed) }),
    );
    let calls: Vec<_> = calls.collect();
    let commands: Vec<_> = sources.available.iter().map(ModelSource::command).collect();
    json!({
        "scripted": true,
        "model": "none (script)",
        "liveModels": { "found": commands, "possible": sources.suggestions },
        "calls": calls,
        "serverLoss": loss,
        "shutdown": shutdown_json(report),
    })
}

/// Returns how each server stopped, as JSON.
fn shutdown_json(report: &ShutdownReport) -> Vec<Value> {
    let stopped = report.servers.iter().map(|server| {
        json!({
            "server": server.server,
            "stage": server.stage,
            "exit": exit_text(server),
            "tookMs": millis(server.took),
            "leftovers": server.leftovers,
        })
    });
    stopped.collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
