//! `replay`: runs an agent again with its recorded model and servers.

use serde_json::json;

use super::golden::files;
use super::golden::judge::judge;
use super::golden::recordable::is_continuous_integration;
use super::record::{StartedAgent, run_error};
use crate::agent_run::{AgentEnd, ReplayedRun};
use crate::cli::ReplayRunArgs;
use crate::context::{CommandContext, listen_for_signals};
use crate::exit::{CliError, CliExitCode};
use crate::output::Style;
use crate::signals::RunOutcome;

/// How an agent ended.
enum AgentOutcome {
    ByItself(std::io::Result<AgentEnd>),
    Missed,
}

/// Runs the agent between replaying servers, and compares its output and its calls with the recorded
/// ones.
pub(crate) async fn replay(
    context: &mut CommandContext,
    args: &ReplayRunArgs,
) -> Result<(), CliError> {
    let CommandContext { environment, output, signals, .. } = context;
    let file = files::read(&args.file)?;
    let name = args.file.display().to_string();
    let rules = file.rules()?;
    let golden = file.golden;
    if golden.input.agent.is_none() {
        return Err(CliError::usage(format!(
            "`{name}` is no recording of another program's agent"
        ))
        .with_hint("replay it with `innkeeper golden replay`"));
    }
    let signals = listen_for_signals(signals, output)?;
    let run = ReplayedRun::new(golden.clone(), environment, &args.agent).map_err(|error| {
        CliError::usage(format!("invalid `input.agent` in `{name}`")).with_source(error)
    })?;
    let StartedAgent { servers, mut agent } = StartedAgent::start(run.serve().await, &args.agent)?;
    let is_json = output.is_json();
    let running = agent.run(|bytes| if is_json { Ok(()) } else { output.print_bytes(bytes) });
    let running = async {
        tokio::select! {
            biased;
            () = run.failed() => AgentOutcome::Missed,
            end = running => AgentOutcome::ByItself(end),
        }
    };
    let ended = signals.run_until_signal(running).await;
    if !matches!(ended, RunOutcome::Completed(AgentOutcome::ByItself(Ok(_)))) {
        agent.stop().await;
    }
    servers.stop().await;
    let end = match ended {
        RunOutcome::Completed(AgentOutcome::ByItself(end)) => Some(end.map_err(run_error)?),
        RunOutcome::Completed(AgentOutcome::Missed) => None,
        // The caller reports the signal.
        RunOutcome::Interrupted(_) => return Ok(()),
    };
    let is_strict = is_continuous_integration(environment);
    let unused = run.unused();
    let report = match (run.problem(), &end) {
        (Some(problem), _) => problem.to_owned(),
        (None, None) => String::new(),
        (None, Some(_)) if is_strict && !unused.is_empty() => {
            format!("nothing asked for {}", unused.join(", "))
        }
        (None, Some(end)) => judge(&golden, &run.replayed(end), rules.as_ref()).report,
    };
    let (requests, calls) = run.counts();
    let passed = report.is_empty();
    if is_json {
        let output_text = end.as_ref().map(|end| &end.stdout);
        output.print_json(&json!({
            "file": name,
            "passed": passed,
            "report": report,
            "unused": unused,
            "requests": requests,
            "calls": calls,
            "exit_code": end.as_ref().and_then(|end| end.exit_code),
            "output": output_text,
        }))?;
        return match passed {
            true => Ok(()),
            false => Err(CliError::without_message(CliExitCode::Failed)),
        };
    }
    if passed {
        if let Some(first) = unused.first() {
            output.labelled_status(
                Style::Note,
                "warning",
                &format!("nothing asked for {first}"),
            )?;
        }
        let text = format!("{requests} requests and {calls} calls of {name}");
        return Ok(output.labelled_status(Style::Good, "replayed", &text)?);
    }
    let failure = CliError::failure(format!("the agent did something else than in `{name}`"));
    let failure = report.lines().fold(failure, CliError::with_detail);
    Err(failure.with_hint("record the run again with `innkeeper record` if the change is meant"))
}
