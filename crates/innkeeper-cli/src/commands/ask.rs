//! `ask`: runs a prompt with a model that can call all tools.

mod approval;
mod model;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, RunResult, ToolCallRecord};
use innkeeper_agent::provider::LlmProvider;
use innkeeper_agent::run::{RunLimits, ToolCalling};
use innkeeper_agent::run_json::RunJson;
use innkeeper_agent::safety::ApprovalPolicy;
use innkeeper_agent::tools::ToolRunner as _;
use innkeeper_agent::transport::Endpoint;
use innkeeper_host::{Config, Host};
use serde_json::json;

use super::CommandContext;
use super::demo::prepare_demo;
use crate::cli::{ApprovalArg, AskArgs, ToolCallingArg};
use crate::configuration::{load_config, select_source};
use crate::demo::{Demo, DemoServers};
use crate::exit::{CliError, CliExitCode};
use crate::hosting::with_host;
use crate::output::{Output, Style, escape_inline};
use model::PreparedModel;

/// Maximum number of characters of arguments or a result on one line.
const MAX_SHOWN_CHARS: usize = 100;

pub(super) async fn run(context: &mut CommandContext, args: &AskArgs) -> Result<(), CliError> {
    let (selected, (config, _demo)) =
        match (model::select_model(args, &context.environment), load_servers(context, args)) {
            (Ok(selected), Ok(servers)) => (selected, servers),
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
            (Err(model), Err(servers)) => return Err(model.merge(servers)),
        };
    let approver = approval::approver_for(args.approve)?;
    let PreparedModel { provider, endpoint } = selected.prepare().await?;
    let operation = async |host: &Host, output: &mut Output| {
        let mut agent = Agent::new(provider.clone(), Arc::new(host.clone()), agent_settings(args));
        if let Some(approver) = approver {
            agent = agent.with_approver(approver);
        }
        let report = run_agent(&agent, args, output).await?;
        let printed = print_result(&report, &*provider, host.list_tools().len(), output);
        if let Some(file) = &args.retries {
            let recorded = append_corrections(file, provider.model(), &report, endpoint.as_ref());
            recorded.map_err(|error| {
                let text = format!("cannot write `{}`", file.display());
                CliError::failure(text).with_source(error)
            })?;
        }
        printed
    };
    with_host(context, config, operation).await.map(drop)
}

/// Returns the configuration for the model; the demo's files exist until the `Demo` is dropped.
fn load_servers(
    context: &mut CommandContext,
    args: &AskArgs,
) -> Result<(Config, Option<Demo>), CliError> {
    if args.demo {
        let (demo, config) = prepare_demo(context, DemoServers::BuiltIn)?;
        return Ok((config, Some(demo)));
    }
    select_source(context).map_err(|failure| {
        failure.with_hint(
            "run `innkeeper ask --demo …` to use the demo servers without a configuration",
        )
    })?;
    Ok((load_config(context)?, None))
}

fn agent_settings(args: &AskArgs) -> AgentSettings {
    AgentSettings {
        system: args.system.clone().unwrap_or_default(),
        tool_calling: match args.tool_calling {
            ToolCallingArg::Auto => ToolCalling::Auto,
            ToolCallingArg::Native => ToolCalling::Native,
            ToolCallingArg::Prompt => ToolCalling::Prompt,
        },
        limits: RunLimits { max_iterations: args.max_iterations, ..RunLimits::default() },
        approval_policy: match args.approve {
            ApprovalArg::All => ApprovalPolicy::AllowAll,
            ApprovalArg::Ask => ApprovalPolicy::Ask,
            ApprovalArg::Never => ApprovalPolicy::DenyAll,
        },
        ..AgentSettings::default()
    }
}

/// Runs the agent; streams the text to a terminal.
async fn run_agent(
    agent: &Agent,
    args: &AskArgs,
    output: &mut Output,
) -> Result<RunResult, CliError> {
    let mut print_result = Ok(());
    let report = if output.is_terminal() && !output.is_json() {
        let mut sink = |event: AgentEvent| {
            if print_result.is_ok() {
                print_result = print_event(&event, output);
            }
        };
        let report = agent.run_streaming(&args.prompt, &mut sink).await;
        print_result?;
        output.print_data("")?;
        report
    } else {
        let report = agent.run(&args.prompt).await;
        for call in &report.tool_calls {
            print_call(call, output)?;
        }
        report
    };
    Ok(report)
}

fn print_event(event: &AgentEvent, output: &mut Output) -> std::io::Result<()> {
    match event {
        AgentEvent::Text(text) => output.print_chunk(text),
        AgentEvent::ToolCallFinished(call) => print_call(call, output),
        AgentEvent::Retrying { delay } => output.labelled_status(
            Style::Note,
            "retry",
            &format!("in {:.1} s", delay.as_secs_f64()),
        ),
        AgentEvent::Reasoning(_)
        | AgentEvent::ToolCallDetected { .. }
        | AgentEvent::ToolCallStarted { .. }
        | AgentEvent::Finished(_) => Ok(()),
    }
}

/// Prints one call to stderr.
fn print_call(call: &ToolCallRecord, output: &mut Output) -> std::io::Result<()> {
    let (tone, sign) =
        if call.success { (Style::Good, "called") } else { (Style::Error, "failed") };
    let text = format!("`{}` {}", call.tool, truncate(&call.arguments.to_string()));
    output.labelled_status(tone, sign, &text)?;
    output.status(&format!("        {}", truncate(&call.result_text)))
}

fn truncate(text: &str) -> String {
    let text = escape_inline(text);
    if text.chars().count() <= MAX_SHOWN_CHARS {
        return text.into_owned();
    }
    text.chars().take(MAX_SHOWN_CHARS - 1).chain(['…']).collect()
}

/// Prints the result; returns an error if the run failed.
fn print_result(
    report: &RunResult,
    provider: &dyn LlmProvider,
    tools: usize,
    output: &mut Output,
) -> Result<(), CliError> {
    let outcome = RunJson::new(report, provider, tools);
    if output.is_json() {
        output.print_json(&outcome)?;
        return if outcome.success {
            Ok(())
        } else {
            Err(CliError::without_message(CliExitCode::Failed))
        };
    }
    if let Some(text) = outcome.final_result.filter(|_| !output.is_terminal()) {
        output.print_untrusted(text)?;
    }
    match outcome.error {
        None => Ok(()),
        Some(error) => Err(CliError::failure(error)),
    }
}

/// Appends the corrected calls, one line each. Skips lines that contain the API key. A new file is
/// readable by its owner only.
fn append_corrections(
    file: &Path,
    model: &str,
    report: &RunResult,
    endpoint: Option<&Endpoint>,
) -> std::io::Result<()> {
    if report.correction_examples.is_empty() {
        return Ok(());
    }
    let mut options = OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(file)?;
    let without_key = |text: &str| match endpoint {
        Some(endpoint) => endpoint.redact(text.to_owned()),
        None => text.to_owned(),
    };
    let mut lines = String::new();
    for lesson in &report.correction_examples {
        let attempts: Vec<_> = lesson
            .attempts
            .iter()
            .map(|(text, problem)| {
                json!({"text": without_key(text), "problem": without_key(problem)})
            })
            .collect();
        let line = json!({
            "model": model,
            "asked": without_key(&lesson.user_message),
            "attempts": attempts,
            "corrected": without_key(&lesson.corrected_text),
        });
        lines.push_str(&format!("{line}\n"));
    }
    file.write_all(lines.as_bytes())
}
