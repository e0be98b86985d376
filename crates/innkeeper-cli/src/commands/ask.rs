//! `ask`: a language model does one thing with the tools of all servers.

mod approval;
mod model;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, Event, Report, Settings, Step};
use innkeeper_agent::provider::LlmProvider;
use innkeeper_agent::result::Outcome;
use innkeeper_agent::safety::Policy;
use innkeeper_agent::tools::ToolRunner as _;
use innkeeper_agent::transport::Endpoint;
use innkeeper_agent::turn::{Limits, ToolCalling};
use innkeeper_host::{Config, Host};
use serde_json::json;

use super::Context;
use super::demo::prepare;
use crate::args::{Approve, AskArgs, Calling};
use crate::configuration::{files, load};
use crate::demo::{Cast, Demo};
use crate::exit::{Code, Failure};
use crate::hosting::with_host;
use crate::output::{Output, Tone, inline};
use model::Model;

/// How much of arguments or of an answer is shown on a line.
const SHOWN: usize = 100;

pub(super) async fn run(context: &mut Context, args: &AskArgs) -> Result<(), Failure> {
    let (found, (config, _demo)) =
        match (model::find(args, &context.environment), servers(context, args)) {
            (Ok(found), Ok(servers)) => (found, servers),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
            (Err(model), Err(servers)) => return Err(model.and(servers)),
        };
    let approver = approval::of(args.approve)?;
    let Model { provider, endpoint } = found.ready().await?;
    let work = async |host: &Host, output: &mut Output| {
        let mut agent = Agent::new(provider.clone(), Arc::new(host.clone()), settings(args));
        if let Some(approver) = approver {
            agent = agent.with_approver(approver);
        }
        let report = answer(&mut agent, args, output).await?;
        let told = tell(&report, &*provider, host.offered().len(), output);
        if let Some(file) = &args.retries {
            let kept = keep(file, provider.model(), &report, endpoint.as_ref());
            kept.map_err(|error| {
                let text = format!("`{}` cannot be written", file.display());
                Failure::failed(text).because(error)
            })?;
        }
        told
    };
    with_host(context, config, work).await.map(drop)
}

/// The servers whose tools the model gets; the demo's files are there as long as its `Demo` is.
fn servers(context: &mut Context, args: &AskArgs) -> Result<(Config, Option<Demo>), Failure> {
    if args.demo {
        let (demo, config) = prepare(context, Cast::BuiltIn)?;
        return Ok((config, Some(demo)));
    }
    files(&context.global.config).map_err(|failure| {
        failure.hint("`innkeeper ask --demo …` needs none: it has the servers of the demo")
    })?;
    Ok((load(context)?, None))
}

fn settings(args: &AskArgs) -> Settings {
    Settings {
        system: args.system.clone().unwrap_or_default(),
        calling: match args.tool_calling {
            Calling::Auto => ToolCalling::Auto,
            Calling::Native => ToolCalling::Native,
            Calling::Prompt => ToolCalling::Prompt,
        },
        limits: Limits { max_iterations: args.max_iterations, ..Limits::default() },
        approve: match args.approve {
            Approve::All => Policy::All,
            Approve::Ask => Policy::Ask,
            Approve::Never => Policy::Never,
        },
        ..Settings::default()
    }
}

/// Lets the model answer; on a terminal its text is shown while it is written.
async fn answer(agent: &mut Agent, args: &AskArgs, output: &mut Output) -> Result<Report, Failure> {
    let mut printed = Ok(());
    let report = if output.is_terminal() && !output.is_json() {
        let mut sink = |event: Event<'_>| {
            if printed.is_ok() {
                printed = show(&event, output);
            }
        };
        let report = agent.run_streaming(&args.prompt, &mut sink).await;
        printed?;
        output.data("")?;
        report
    } else {
        let report = agent.run(&args.prompt).await;
        for step in &report.steps {
            said(step, output)?;
        }
        report
    };
    Ok(report)
}

fn show(event: &Event<'_>, output: &mut Output) -> std::io::Result<()> {
    match event {
        Event::Text(text) => output.piece(text),
        Event::Ran(step) => said(step, output),
        Event::Again { after } => {
            output.label(Tone::Note, "again", &format!("in {:.1} s", after.as_secs_f64()))
        }
        Event::Reasoning(_) | Event::CallStart { .. } | Event::Running { .. } => Ok(()),
    }
}

/// One call, on stderr.
fn said(step: &Step, output: &mut Output) -> std::io::Result<()> {
    let (tone, sign) = if step.success { (Tone::Good, "called") } else { (Tone::Error, "failed") };
    let text = format!("`{}` {}", step.tool, short(&step.arguments.to_string()));
    output.label(tone, sign, &text)?;
    output.say(&format!("        {}", short(&step.told)))
}

fn short(text: &str) -> String {
    let text = inline(text);
    if text.chars().count() <= SHOWN {
        return text.into_owned();
    }
    text.chars().take(SHOWN - 1).chain(['…']).collect()
}

/// Prints the answer, and ends as it ended.
fn tell(
    report: &Report,
    provider: &dyn LlmProvider,
    tools: usize,
    output: &mut Output,
) -> Result<(), Failure> {
    let outcome = Outcome::new(report, provider, tools);
    if output.is_json() {
        output.value(&outcome)?;
        return if outcome.success { Ok(()) } else { Err(Failure::silent(Code::Failed)) };
    }
    if let Some(text) = outcome.final_result.filter(|_| !output.is_terminal()) {
        output.foreign(text)?;
    }
    match outcome.error {
        None => Ok(()),
        Some(error) => Err(Failure::failed(error)),
    }
}

/// Appends what there is to learn, a line for each lesson and none with the key in it; a new file is
/// its owner's alone.
fn keep(
    file: &Path,
    model: &str,
    report: &Report,
    endpoint: Option<&Endpoint>,
) -> std::io::Result<()> {
    if report.lessons.is_empty() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    let without_key = |text: &str| match endpoint {
        Some(endpoint) => endpoint.redacted(text.to_owned()),
        None => text.to_owned(),
    };
    let mut lines = String::new();
    for lesson in &report.lessons {
        let attempts: Vec<_> = lesson
            .attempts
            .iter()
            .map(|(text, problem)| {
                json!({"text": without_key(text), "problem": without_key(problem)})
            })
            .collect();
        let line = json!({
            "model": model,
            "asked": without_key(&lesson.asked),
            "attempts": attempts,
            "corrected": without_key(&lesson.corrected),
        });
        lines.push_str(&format!("{line}\n"));
    }
    file.write_all(lines.as_bytes())
}
