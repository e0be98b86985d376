//! `record`: records a run of an agent that is another program.

use innkeeper_agent::golden::save_golden;
use serde_json::json;

use super::golden::recordable::check_recordable;
use crate::agent_run::{
    AgentProcess, RecordRunError, RecordedAgent, RecordedRun, RunServers, Upstreams,
};
use crate::cli::RecordRunArgs;
use crate::context::{CommandContext, listen_for_signals};
use crate::exit::{CliError, CliExitCode};
use crate::output::Style;
use crate::signals::RunOutcome;

/// Runs the agent between recording servers, and writes the recording. Fails like the agent.
pub(crate) async fn record(
    context: &mut CommandContext,
    args: &RecordRunArgs,
) -> Result<(), CliError> {
    let CommandContext { environment, output, signals, .. } = context;
    check_recordable(&args.file, "record", environment)?;
    let upstreams = Upstreams::new(environment, &args.upstream)
        .map_err(|error| CliError::usage("invalid base URL").with_source(error))?;
    let signals = listen_for_signals(signals, output)?;
    let run = RecordedRun::new(environment, &args.agent);
    let started = StartedAgent::start(run.serve(upstreams, environment).await, &args.agent)?;
    let StartedAgent { servers, mut agent } = started;
    let is_json = output.is_json();
    let running = agent.run(|bytes| if is_json { Ok(()) } else { output.print_bytes(bytes) });
    let ended = signals.run_until_signal(running).await;
    let RunOutcome::Completed(ended) = ended else {
        // The caller reports the signal. An interrupted run is not recorded.
        agent.stop().await;
        servers.stop().await;
        return Ok(());
    };
    if ended.is_err() {
        agent.stop().await;
    }
    servers.stop().await;
    let end = ended.map_err(run_error)?;
    let not_recorded = || format!("the run was not recorded in `{}`", args.file.display());
    let recorded = RecordedAgent { file: &args.file, command: &args.agent, end: &end };
    let golden = run.finish(&recorded).map_err(|error| {
        let hint = match &error {
            RecordRunError::Nothing => Some(
                "the agent must read its base URL from `OPENAI_BASE_URL`, `ANTHROPIC_BASE_URL`, \
                 `GOOGLE_GEMINI_BASE_URL` or `OLLAMA_HOST`, and start `innkeeper serve --stdio` as its \
                 MCP server",
            ),
            RecordRunError::Redact(_) => Some("the file was not written, so that no secret is in it"),
            RecordRunError::Problem(_) | RecordRunError::TooLarge(_) => None,
        };
        let failure = CliError::failure(not_recorded()).with_source(error);
        hint.into_iter().fold(failure, CliError::with_hint)
    })?;
    let requests = golden.provider_responses.len();
    let calls = golden.tool_calls.len();
    let has_model = requests > 0;
    let has_servers = !golden.served.is_empty();
    if let Some(failure) = end.failure().filter(|_| args.file.exists()) {
        // The old recording is worth more than the trace of a crash.
        let file = args.file.display();
        return Err(CliError::failure(failure)
            .with_detail(format!("`{file}` stays as it was"))
            .with_hint("remove the file to record the failure"));
    }
    save_golden(&args.file, golden)
        .map_err(|error| CliError::failure(not_recorded()).with_source(error))?;
    let file = args.file.display().to_string();
    if is_json {
        let exit_code = end.exit_code;
        let output_text = &end.stdout;
        output.print_json(&json!({
            "file": file,
            "requests": requests,
            "calls": calls,
            "exit_code": exit_code,
            "output": output_text,
        }))?;
    } else {
        let text = format!("{requests} requests and {calls} calls in {file}");
        output.labelled_status(Style::Good, "recorded", &text)?;
    }
    if !has_model {
        let text = "the model is not in it: the agent asked no model over the base URLs";
        output.labelled_status(Style::Note, "warning", text)?;
    }
    if !has_servers {
        let text = "no MCP server is in it: the agent started no `innkeeper serve --stdio`, or with \
                    a `PATH` of its own";
        output.labelled_status(Style::Note, "warning", text)?;
    }
    match end.failure() {
        None => Ok(()),
        Some(_) if is_json => Err(CliError::without_message(CliExitCode::Failed)),
        Some(failure) => Err(CliError::failure(failure)),
    }
}

/// Returns the error of an agent whose end is unknown.
pub(super) fn run_error(error: std::io::Error) -> CliError {
    CliError::failure("the agent was stopped").with_source(error)
}

/// An agent with the servers that it runs between.
pub(super) struct StartedAgent {
    pub(super) servers: RunServers,
    pub(super) agent: AgentProcess,
}

impl StartedAgent {
    pub(super) fn start(
        servers: std::io::Result<RunServers>,
        command: &[std::ffi::OsString],
    ) -> Result<Self, CliError> {
        let servers = servers
            .map_err(|error| CliError::failure("cannot serve the agent").with_source(error))?;
        let agent = AgentProcess::start(command, &servers.variables)
            .map_err(|error| start_error(command, error))?;
        Ok(Self { servers, agent })
    }
}

/// Returns the error of an agent that does not start.
fn start_error(command: &[std::ffi::OsString], error: std::io::Error) -> CliError {
    let program =
        command.first().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
    CliError::usage(format!("cannot start `{program}`"))
        .with_source(error)
        .with_hint("name the agent's program after `--`, with its arguments")
}
