//! `demo`: the main job with nothing configured, over real servers and with a scripted chain.

mod live;

use std::error::Error;
use std::path::Path;
use std::time::{Duration, Instant};

use innkeeper_host::shutdown::{ServerStopped, ShutdownReport};
use innkeeper_host::{Config, Host};
use serde_json::{Value, json};

use super::Context;
use crate::args::DemoArgs;
use crate::configuration::{limit, refuse};
use crate::demo::{Cast, Demo, Done, Runner};
use crate::exit::Failure;
use crate::hosting::with_host;
use crate::model::{Look, Way, Ways, found_models, place};
use crate::output::{Output, Table, Tone};

/// How much of an argument or a lesson is shown on a line.
const SHOWN: usize = 76;

pub(super) async fn run(context: &mut Context, args: &DemoArgs) -> Result<(), Failure> {
    let (demo, config) = prepare(context, if args.npm { Cast::Npm } else { Cast::BuiltIn })?;
    if args.model.is_some() {
        return live::run(context, config).await;
    }
    say_opening(context, &config, args.npm)?;
    let work = async |host: &Host, output: &mut Output| chain(&demo, host, output).await;
    let (calls, report) = with_host(context, config, work).await?;
    let dir = place(&context.environment);
    let ways = found_models(&Look::usual(&context.environment, dir.as_deref())).await;
    tell(&mut context.output, &calls, &report, &ways)
}

/// The sample files, which go with what is given back, and the servers over them.
pub(super) fn prepare(context: &Context, cast: Cast) -> Result<(Demo, Config), Failure> {
    let demo = Demo::prepare(cast)
        .map_err(|error| Failure::failed("the sample files cannot be written").because(error))?;
    let program = std::env::current_exe()
        .map_err(|error| Failure::failed("this program cannot find itself").because(error))?;
    let file = demo.config(&program);
    let mut config = Config::from_value(&file, "demo", Path::new("."), &context.environment)
        .map_err(|error| refuse(&error))?;
    limit(&mut config, context);
    Ok((demo, config))
}

/// One call of the chain as it went.
struct Call {
    tool: &'static str,
    learned: String,
    took: Duration,
}

fn say_opening(context: &mut Context, config: &Config, npm: bool) -> Result<(), Failure> {
    if context.output.is_json() {
        return Ok(());
    }
    let names: Vec<String> = config.servers.keys().map(|name| format!("`{name}`")).collect();
    let kind = if npm { "from npm" } else { "shipped with this program" };
    context.output.data(&format!(
        "Starting {} ({kind}, each a process of its own).\nThe chain of calls below is scripted; \
         no language model takes part yet.\n",
        names.join(" and ")
    ))?;
    Ok(())
}

/// Calls tools of the host and keeps how long each call took.
struct OverHost<'a> {
    host: &'a Host,
    took: Vec<Duration>,
}

impl Runner for OverHost<'_> {
    async fn call(
        &mut self,
        tool: &str,
        arguments: Value,
    ) -> Result<Value, Box<dyn Error + Send + Sync>> {
        #[expect(clippy::disallowed_methods, reason = "shown to a person, decides nothing")]
        let began = Instant::now();
        let result = self.host.call_tool(tool, arguments).await?;
        self.took.push(began.elapsed());
        Ok(serde_json::from_str(result.raw().get())?)
    }
}

async fn chain(demo: &Demo, host: &Host, output: &mut Output) -> Result<Vec<Call>, Failure> {
    let mut printed = Ok(());
    let mut told = Vec::new();
    let mut runner = OverHost { host, took: Vec::new() };
    let mut seen = |done: &Done| {
        if printed.is_ok() && !output.is_json() {
            printed = show(output, done);
        }
        told.push((done.tool, done.learned.clone()));
    };
    let ran = demo.run(&mut runner, &mut seen);
    ran.await.map_err(|error| Failure::failed("the demo did not reach its end").because(error))?;
    printed?;
    let calls = told.into_iter().zip(runner.took);
    Ok(calls.map(|((tool, learned), took)| Call { tool, learned, took }).collect())
}

fn show(output: &mut Output, done: &Done) -> std::io::Result<()> {
    let number = output.paint(Tone::Strong, &format!("{}.", done.number));
    let tool = output.paint(Tone::Good, done.tool);
    output.data(&format!("{number} {tool}  {}", done.purpose))?;
    output.data(&format!("     → {}", short(&done.arguments.to_string())))?;
    output.data(&format!("     ← {}", short(&done.learned)))
}

fn short(text: &str) -> String {
    let text = crate::output::inline(text);
    if text.chars().count() <= SHOWN {
        return text.into_owned();
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

fn tell(
    output: &mut Output,
    calls: &[Call],
    report: &ShutdownReport,
    ways: &Ways,
) -> Result<(), Failure> {
    if output.is_json() {
        output.value(&summary(calls, report, ways))?;
    } else {
        let mut table = Table::new(["call", "tool", "ms"]);
        for (index, call) in calls.iter().enumerate() {
            let number = (index + 1).to_string();
            table.row([&number, call.tool, &format!("{:.2}", millis(call.took))]);
        }
        output.data("")?;
        output.table(&table)?;
        let mut table = Table::new(["server", "stopped", "exit", "ms", "left over"]);
        for server in &report.servers {
            let left = if server.leftovers { "yes" } else { "nothing" };
            let (exit, took) = (exit_of(server), format!("{:.1}", millis(server.took)));
            table.row([&*server.server, server.stage.as_str(), &exit, &took, left]);
        }
        output.data("")?;
        output.table(&table)?;
        let took = millis(report.took);
        output.data(&format!("\n{} calls, all servers gone after {took:.0} ms.", calls.len()))?;
        say_ways(output, ways)?;
    }
    if report.is_clean() { Ok(()) } else { Err(Failure::failed("a server did not end by itself")) }
}

/// That no model took part, and how one can: what is here first.
fn say_ways(output: &mut Output, ways: &Ways) -> std::io::Result<()> {
    output.say("No language model took part: every call above stood in a script.")?;
    if ways.found.is_empty() {
        output.say("No live model was found here. Ways to one:")?;
    } else {
        output.say("With a live model, which this machine has:")?;
        for way in &ways.found {
            output.say(&format!("  `{}`  ({way})", way.command()))?;
        }
        if !ways.possible.is_empty() {
            output.say("Other ways to one:")?;
        }
    }
    ways.possible.iter().try_for_each(|line| output.say(&format!("  {line}")))
}

/// How the process of a server ended, in words; a remote one has none.
fn exit_of(server: &ServerStopped) -> String {
    server.exit.map(|exit| exit.to_string()).unwrap_or_default()
}

fn summary(calls: &[Call], report: &ShutdownReport, ways: &Ways) -> Value {
    let calls = calls.iter().map(
        |call| json!({ "tool": call.tool, "learned": call.learned, "tookMs": millis(call.took) }),
    );
    let calls: Vec<_> = calls.collect();
    let found: Vec<_> = ways.found.iter().map(Way::command).collect();
    json!({
        "scripted": true,
        "model": "none (script)",
        "liveModels": { "found": found, "possible": ways.possible },
        "calls": calls,
        "shutdown": stopped(report),
    })
}

/// How each server ended.
fn stopped(report: &ShutdownReport) -> Vec<Value> {
    let stopped = report.servers.iter().map(|server| {
        json!({
            "server": server.server,
            "stage": server.stage,
            "exit": exit_of(server),
            "tookMs": millis(server.took),
            "leftovers": server.leftovers,
        })
    });
    stopped.collect()
}

fn millis(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1000.0
}
