//! `ask`: runs a prompt with a model that can call all tools.

mod event_printer;
mod replay;

use std::io::{self, IsTerminal as _, Stdin};
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, RunResult};
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::ghost::{
    AgentParts, DEFAULT_NAMESPACE, GhostResult, NamespacedAgent, UNAVAILABLE_AFTER_TIMEOUTS,
};
use innkeeper_agent::provider::Usage;
use innkeeper_agent::run::{PlanStep, RunOutcome};
use innkeeper_agent::run_json::{RunContext, RunJson};
use innkeeper_agent::safety::ApprovalPolicy;
use innkeeper_agent::tools::{ResourceTools, ToolRunner as _};
use tokio::sync::SetOnce;

use super::demo::load_servers;
use super::golden::choice::GoldenChoice;
use super::run_recording::{RecordTarget, RunFacts, RunRecording};
use crate::activity::ActivityLine;
use crate::approval::{TerminalApprover, terminal_for};
use crate::cli::{ApprovalArg, AskArgs};
use crate::context::CommandContext;
use crate::exit::{CliError, CliExitCode};
use crate::hosting::{
    HostOptions, print_failed_servers, ready_servers, server_failures, with_available_servers,
};
use crate::input_file;
use crate::local_model::limit_settings;
use crate::model_selection::{PreparedModel, select_model};
use crate::output::{Output, Style};
use crate::terminal_prompter::server_request_handler;
use event_printer::{EventPrinter, append_corrections, print_outcome};

/// Maximum number of bytes of a prompt from stdin; the context of a model is smaller.
const MAX_PROMPT_BYTES: u64 = 16 << 20;

/// Maximum number of characters of arguments or a result on one line.
const MAX_SHOWN_CHARS: usize = 100;

/// Minimum number of characters of arguments or a result, for a narrow terminal.
const MIN_SHOWN_CHARS: usize = 20;

/// Indentation of a result, as wide as `called: `.
const RESULT_INDENT: &str = "        ";

pub(super) async fn run(context: &mut CommandContext, args: &AskArgs) -> Result<(), CliError> {
    let result = run_prompt(context, args).await;
    if let Err(error) = &result {
        print_failure(error, Some(args), &mut context.output)?;
    }
    result
}

async fn run_prompt(context: &mut CommandContext, args: &AskArgs) -> Result<(), CliError> {
    let choice = GoldenChoice::of_ask(&args.files, &context.environment);
    if let Some(choice) = choice
        && let Some(unused) = choice.replay()
    {
        return replay::run(context, args, choice.file, unused).await;
    }
    let target = RecordTarget::new(choice, args.files.trace.as_deref(), &context.environment)?;
    let mut recording = target.map(RunRecording::new);
    let recorder = recording.as_ref().map(|recording| recording.recorder.clone());
    let (selected, (mut loaded, _demo)) = match (
        select_model(&args.model, &context.environment),
        load_servers(context, args.demo, "ask"),
    ) {
        (Ok(selected), Ok(servers)) => (selected, servers),
        (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
        (Err(model), Err(servers)) => return Err(model.merge(servers)),
    };
    for server in loaded.config.servers.values_mut() {
        let timeouts = &mut server.calls.unavailable_after_timeouts;
        *timeouts = (*timeouts).max(UNAVAILABLE_AFTER_TIMEOUTS);
    }
    let terminal = terminal_for(args.agent.approve)?;
    let mut server_requests =
        server_request_handler(args.agent.approve, args.agent.sampling, terminal.as_ref());
    if let Some(recorder) = &recorder {
        server_requests = server_requests.map(|handler| recorder.record_questions(&handler));
    }
    let prompt = read_prompt(args.prompt.as_deref(), &io::stdin())?;
    let PreparedModel { provider, for_servers, endpoint, local } =
        selected.prepare(recorder.as_ref()).await?;
    if let Some(handler) = &server_requests {
        handler.set_model(Some(for_servers));
    }
    if let Some(recording) = &mut recording {
        recording.set_configuration(endpoint.as_ref(), &loaded.config);
    }
    let settings = agent_settings(args);
    let settings = if local.is_some() { limit_settings(settings) } else { settings };
    let stop = Arc::new(SetOnce::new());
    let options =
        HostOptions { server_requests, stop: Some(stop.clone()), ..HostOptions::default() };
    let result = with_available_servers(context, loaded, options, async |host, output| {
        print_failed_servers(host, output)?;
        let system = args.agent.system.as_deref().unwrap_or_default();
        let mut report = GhostResult::before_run(system, provider.name());
        report.set_model(&*provider);
        // Before the run, which may lose servers.
        report.tools_discovered = host.list_tools().len();
        report.servers_connected = ready_servers(host);
        let servers = server_failures(host, output.secret_mask());
        for (name, reason) in &servers {
            if let Some(reason) = reason {
                report.add_server_error(name, reason);
            }
        }
        let namespace_name = args.agent.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
        let parts = AgentParts {
            provider: provider.clone(),
            tools: Arc::new(ResourceTools::after_first_link(host.clone())),
            namespace: namespace_name,
            settings: settings.clone(),
            approver: terminal.map(|terminal| Arc::new(TerminalApprover(terminal)) as _),
        };
        let NamespacedAgent { agent, namespace } = match &recorder {
            Some(recorder) => recorder.namespaced_agent(parts),
            None => parts.into_agent(),
        };
        let mut result = run_agent(&agent, &prompt, args.agent.approve, &stop, output).await?;
        namespace.restore_names(&mut result);
        report.finish(result, agent.conversation());
        let printed = print_outcome(&RunJson::new(&report.result, &report.context()), output);
        if let Some(recording) = &recording {
            let run = RunFacts {
                prompt: &prompt,
                further_prompts: &[],
                namespace: namespace_name,
                settings,
                servers,
            };
            let recorded = recording.write(run, &report, output).await;
            // The failure of the run is told first.
            if printed.is_ok() {
                recorded?;
            } else if let Err(error) = recorded {
                output.labelled_status(Style::Error, "error", &error.to_line())?;
            }
        }
        let report = report.result;
        if let Some(file) = &args.files.retries {
            append_corrections(file, provider.model(), &report, endpoint.as_ref())?;
        }
        printed
    })
    .await;
    let stopped = match local {
        Some(local) => local.stop().await,
        None => Ok(()),
    };
    result.and(stopped)
}

/// With `--json`, prints the result of a run that did not begin, unless a result is printed. `args`
/// are missing if the command line is invalid.
pub(crate) fn print_failure(
    error: &CliError,
    args: Option<&AskArgs>,
    output: &mut Output,
) -> io::Result<()> {
    if !output.is_json() || output.has_written_json() || !error.has_message() {
        return Ok(());
    }
    let reason = output.secret_mask().apply(&error.to_line()).into_owned();
    let mut report = RunResult::not_sent(reason, Duration::ZERO);
    if matches!(error.exit_code(), CliExitCode::Interrupted | CliExitCode::Terminated) {
        report.outcome = RunOutcome::Interrupted;
    }
    let model = args.map(|args| &args.model);
    let context = RunContext {
        provider: model.and_then(|model| model.provider.as_deref()).unwrap_or_default(),
        model: model.and_then(|model| model.name.as_deref()).unwrap_or_default(),
        system: args.and_then(|args| args.agent.system.as_deref()).unwrap_or_default(),
        conversation: &Conversation::new(),
        tools_discovered: 0,
        servers_connected: 0,
    };
    output.print_json(&RunJson::new(&report, &context))
}

fn agent_settings(args: &AskArgs) -> AgentSettings {
    let mut settings = AgentSettings {
        system: args.agent.system.clone().unwrap_or_default(),
        approval_policy: match args.agent.approve {
            ApprovalArg::All => ApprovalPolicy::AllowAll,
            ApprovalArg::Ask => ApprovalPolicy::Ask,
            ApprovalArg::Never => ApprovalPolicy::DenyAll,
        },
        ..AgentSettings::default()
    };
    settings.limits.max_iterations = args.agent.max_iterations;
    settings.requests.conversation_memory = !args.strategy.no_memory;
    settings.requests.temperature = args.strategy.temperature;
    settings.tool_use.tool_calling = args.agent.tool_calling.into();
    settings.tool_use.planning = args.strategy.plan;
    settings.tool_use.backtracking = !args.strategy.no_backtracking;
    settings
}

fn plan_line(step: &PlanStep) -> String {
    let condition = step.condition.as_ref().map(|condition| {
        let outcome = if condition.succeeded { "succeeds" } else { "fails" };
        format!(", if step {} {outcome}", condition.step)
    });
    let PlanStep { id, tool, purpose, .. } = step;
    let purpose = if purpose.is_empty() { String::new() } else { format!(": {purpose}") };
    format!("{id}. `{tool}`{}{purpose}", condition.unwrap_or_default())
}

/// Returns the prompt of the command line, or of stdin for `-` and for a missing prompt.
fn read_prompt(typed: Option<&str>, stdin: &Stdin) -> Result<String, CliError> {
    match typed {
        Some("-") => {}
        Some(prompt) => return Ok(prompt.to_owned()),
        None if stdin.is_terminal() => {
            return Err(CliError::usage("the prompt is missing")
                .with_hint("use `innkeeper ask PROMPT`, or write the prompt to stdin"));
        }
        None => {}
    }
    let prompt = input_file::read_from(stdin.lock(), MAX_PROMPT_BYTES)
        .map_err(|error| CliError::usage("cannot read the prompt from stdin").with_source(error))?;
    if prompt.trim().is_empty() {
        return Err(CliError::usage("the prompt from stdin is empty")
            .with_hint("use `innkeeper ask PROMPT`, or write the prompt to stdin"));
    }
    Ok(prompt)
}

/// Runs the agent until `stop`, and shows what happens on stderr; streams the text to a terminal.
async fn run_agent(
    agent: &Agent,
    prompt: &str,
    approve: ApprovalArg,
    stop: &SetOnce<()>,
    output: &mut Output,
) -> Result<RunResult, CliError> {
    let mut printer = EventPrinter::new(output, approve);
    let mut printed = Ok(());
    let mut sink = |event: AgentEvent| {
        if printed.is_ok() {
            printed = printer.print(&event);
        }
    };
    let stopped = async {
        stop.wait().await;
    };
    let report = agent.run_streaming_until(prompt, stopped, &mut sink).await;
    printed?;
    printer.finish()?;
    Ok(report)
}

/// Shows that the model works. A question on the terminal would be overwritten.
fn waiting_line(output: &Output, approve: ApprovalArg) -> ActivityLine {
    match approve {
        ApprovalArg::All | ApprovalArg::Never => {
            ActivityLine::show(output, "waiting for the model")
        }
        ApprovalArg::Ask => ActivityLine::hidden(),
    }
}

/// Returns the tokens of a response as text.
fn usage_text(usage: Usage) -> String {
    format!("{} input tokens, {} output tokens", usage.prompt_tokens, usage.completion_tokens)
}
