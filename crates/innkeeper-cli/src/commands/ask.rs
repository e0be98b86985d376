//! `ask`: runs a prompt with a model that can call all tools.

mod replay;

use std::io::{self, IsTerminal as _, Stdin};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use innkeeper_agent::agent::{Agent, AgentEvent, AgentSettings, RunResult, ToolCallRecord};
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::ghost::{
    AgentParts, DEFAULT_NAMESPACE, GhostResult, NamespacedAgent, UNAVAILABLE_AFTER_TIMEOUTS,
};
use innkeeper_agent::provider::Usage;
use innkeeper_agent::run::{PlanStep, RunLimits, RunOutcome};
use innkeeper_agent::run_json::{RunContext, RunJson};
use innkeeper_agent::safety::ApprovalPolicy;
use innkeeper_agent::tools::{ResourceTools, ToolRunner as _};
use innkeeper_agent::transport::Endpoint;
use innkeeper_host::Host;
use serde_json::json;
use tokio::sync::SetOnce;

use super::demo::load_servers;
use super::golden::choice::GoldenChoice;
use super::run_recording::{RecordTarget, RunFacts, RunRecording, append_private};
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
use crate::output::{Output, Style, shorten};
use crate::terminal_prompter::server_request_handler;

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
    let choice = GoldenChoice::of_ask(args, &context.environment);
    if let Some(choice) = choice
        && let Some(unused) = choice.replay()
    {
        return replay::run(context, args, choice.file, unused).await;
    }
    let target = RecordTarget::new(choice, args.trace.as_deref(), &context.environment)?;
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
        let timeouts = &mut server.unavailable_after_timeouts;
        *timeouts = (*timeouts).max(UNAVAILABLE_AFTER_TIMEOUTS);
    }
    let terminal = terminal_for(args.approve)?;
    let mut server_requests =
        server_request_handler(args.approve, args.sampling, terminal.as_ref());
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
    let operation = async |host: &Host, output: &mut Output| {
        print_failed_servers(host, output)?;
        let mut report =
            GhostResult::before_run(args.system.as_deref().unwrap_or_default(), provider.name());
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
        let namespace_name = args.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE);
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
        let mut result = run_agent(&agent, &prompt, args.approve, &stop, output).await?;
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
        if let Some(file) = &args.retries {
            append_corrections(file, provider.model(), &report, endpoint.as_ref())?;
        }
        printed
    };
    let result = with_available_servers(context, loaded, options, operation).await;
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
        system: args.and_then(|args| args.system.as_deref()).unwrap_or_default(),
        conversation: &Conversation::new(),
        tools_discovered: 0,
        servers_connected: 0,
    };
    output.print_json(&RunJson::new(&report, &context))
}

fn agent_settings(args: &AskArgs) -> AgentSettings {
    AgentSettings {
        system: args.system.clone().unwrap_or_default(),
        tool_calling: args.tool_calling.into(),
        limits: RunLimits { max_iterations: args.max_iterations, ..RunLimits::default() },
        planning: args.plan,
        backtracking: !args.no_backtracking,
        conversation_memory: !args.no_memory,
        temperature: args.temperature,
        approval_policy: match args.approve {
            ApprovalArg::All => ApprovalPolicy::AllowAll,
            ApprovalArg::Ask => ApprovalPolicy::Ask,
            ApprovalArg::Never => ApprovalPolicy::DenyAll,
        },
        ..AgentSettings::default()
    }
}

/// Returns a step of a plan as one line.
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

/// Prints the events of a run.
struct EventPrinter<'o> {
    output: &'o mut Output,
    approve: ApprovalArg,
    /// Whether the text of the model is printed as the model writes the text.
    streams_text: bool,
    /// The sum of the reported usage.
    usage: Usage,
    /// Shown while neither text nor a call is printed.
    activity: Option<ActivityLine>,
    /// Whether the last text has no newline at its end.
    has_open_line: bool,
}

impl<'o> EventPrinter<'o> {
    fn new(output: &'o mut Output, approve: ApprovalArg) -> Self {
        let activity = Some(waiting_line(output, approve));
        let streams_text = output.is_terminal() && !output.is_json();
        let usage = Usage::default();
        Self { output, approve, streams_text, usage, activity, has_open_line: false }
    }

    /// Prints a line about the run itself.
    fn print_note(&mut self, label: &str, text: &str) -> io::Result<()> {
        self.end_line()?;
        self.output.labelled_status(Style::Note, label, text)?;
        self.activity = Some(waiting_line(self.output, self.approve));
        Ok(())
    }

    fn print(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::Text(text) if text.is_empty() || !self.streams_text => Ok(()),
            AgentEvent::Text(text) => {
                self.activity = None;
                self.has_open_line = !text.ends_with('\n');
                self.output.print_chunk(text)
            }
            AgentEvent::ToolCallStarted { tool, .. } => {
                self.end_line()?;
                if matches!(self.approve, ApprovalArg::All | ApprovalArg::Never) {
                    self.activity =
                        Some(ActivityLine::show(self.output, &format!("calling {tool}")));
                }
                Ok(())
            }
            AgentEvent::ToolCallProgress { tool, progress, .. } => {
                if let Some(activity) = &self.activity {
                    activity.show_progress(&format!("calling {tool}"), progress);
                }
                Ok(())
            }
            AgentEvent::ToolCallFinished(call) => {
                self.end_line()?;
                print_call(call, self.output)?;
                self.activity = Some(waiting_line(self.output, self.approve));
                Ok(())
            }
            AgentEvent::Planned(steps) => {
                self.end_line()?;
                for step in steps {
                    self.output.labelled_status(Style::Note, "plan", &plan_line(step))?;
                }
                self.activity = Some(waiting_line(self.output, self.approve));
                Ok(())
            }
            AgentEvent::Warned(warning) => self.print_note("warning", &warning.text),
            AgentEvent::ToolsOmitted(tools) => self.print_note("warning", &tools.to_string()),
            AgentEvent::ResponseFinished { usage } => {
                self.usage = self.usage.saturating_add(usage.unwrap_or_default());
                Ok(())
            }
            AgentEvent::HistorySummaryStarted { messages } => {
                self.print_note("history", &format!("the model summarizes {messages} old messages"))
            }
            AgentEvent::HistoryShortened { messages, is_summarized } => {
                let summary = if *is_summarized { "with" } else { "without" };
                let text = format!("requests omit {messages} old messages, {summary} a summary");
                self.print_note("history", &text)
            }
            AgentEvent::Retrying { delay } => {
                self.print_note("retry", &format!("in {:.1} s", delay.as_secs_f64()))
            }
            AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::Finished(_) => Ok(()),
        }
    }

    /// Prints the reported usage, and removes the activity line.
    fn finish(mut self) -> io::Result<()> {
        self.end_line()?;
        if self.usage == Usage::default() {
            return Ok(());
        }
        self.output.labelled_status(Style::Note, "usage", &usage_text(self.usage))
    }

    /// Ends the line of the text, and removes the activity line.
    fn end_line(&mut self) -> io::Result<()> {
        self.activity = None;
        if std::mem::take(&mut self.has_open_line) {
            self.output.print_data("")?;
        }
        Ok(())
    }
}

/// Prints one call to stderr, with one line each for the call and for its result.
fn print_call(call: &ToolCallRecord, output: &mut Output) -> io::Result<()> {
    let (tone, sign) =
        if call.success { (Style::Good, "called") } else { (Style::Error, "failed") };
    let columns = output.err_columns().unwrap_or(usize::MAX);
    let room = |used: usize| columns.saturating_sub(used).clamp(MIN_SHOWN_CHARS, MAX_SHOWN_CHARS);
    let name = format!("`{}` ", call.tool);
    let room_for_arguments = room(RESULT_INDENT.len() + name.chars().count());
    let arguments = shorten(&call.arguments.to_string(), room_for_arguments);
    output.labelled_status(tone, sign, &format!("{name}{arguments}"))?;
    let result = shorten(&call.result_text, room(RESULT_INDENT.len()));
    output.status(&format!("{RESULT_INDENT}{result}"))
}

/// Prints the result; returns an error if the run failed.
fn print_outcome(outcome: &RunJson<'_>, output: &mut Output) -> Result<(), CliError> {
    if output.is_json() {
        output.print_json(outcome)?;
        return if outcome.success {
            Ok(())
        } else {
            Err(CliError::without_message(CliExitCode::Failed))
        };
    }
    if let Some(text) = outcome.final_result.filter(|_| !output.is_terminal()) {
        output.print_untrusted(text)?;
    }
    match &outcome.error {
        None => Ok(()),
        Some(error) => Err(CliError::failure(error.clone())),
    }
}

/// Appends the corrected calls, one line each. Skips lines that contain the API key. A new file is
/// readable by its owner only.
fn append_corrections(
    file: &Path,
    model: &str,
    report: &RunResult,
    endpoint: Option<&Endpoint>,
) -> Result<(), CliError> {
    if report.correction_examples.is_empty() {
        return Ok(());
    }
    let lines = correction_lines(model, report, endpoint);
    append_private(file, &lines).map_err(|error| {
        CliError::failure(format!("cannot write `{}`", file.display())).with_source(error)
    })
}

/// Returns the corrected calls without the API key.
fn correction_lines(model: &str, report: &RunResult, endpoint: Option<&Endpoint>) -> String {
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
    lines
}
