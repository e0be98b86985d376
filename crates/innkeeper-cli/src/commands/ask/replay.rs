//! `ask --replay`: runs the agent over the bytes of a recording.

use std::io;
use std::path::Path;

use innkeeper_agent::ghost::DEFAULT_NAMESPACE;
use innkeeper_agent::golden::{Golden, Replay, ReplayError, ReplayInput, UnusedAnswers, replay};
use innkeeper_agent::run_json::RunJson;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::super::golden::files;
use super::{agent_settings, print_outcome, read_prompt};
use crate::cli::AskArgs;
use crate::context::CommandContext;
use crate::exit::CliError;
use crate::local_model::limit_settings;
use crate::model_selection::LOCAL_PROVIDER;
use crate::output::Style;

/// Replays a recording. What the command line says replaces what the recording was given, so that a
/// changed prompt is a request that was not recorded. With `--golden`, the command line says all of it.
pub(super) async fn run(
    context: &mut CommandContext,
    args: &AskArgs,
    file: &Path,
    unused: UnusedAnswers,
) -> Result<(), CliError> {
    let mut golden = files::read(file)?.golden;
    if args.files.golden.is_some() {
        golden = with_input(golden, args, file)?;
    } else {
        replace_input(&mut golden, args)?;
    }
    let replayed = replay(&golden).await.and_then(|replayed| replayed.require(unused));
    let replayed = replayed.map_err(|error| replay_error(file, error))?;
    for unused in &replayed.unused {
        let text = format!("nothing asked for {unused}");
        context.output.labelled_status(Style::Note, "warning", &text)?;
    }
    let Replay { result, .. } = replayed;
    print_outcome(&RunJson::new(&result.result, &result.context()), &mut context.output)
}

fn replay_error(file: &Path, error: ReplayError) -> CliError {
    let hint = match &error {
        ReplayError::Missed(_) | ReplayError::Unused(_) => {
            Some("record the run again with `--record` if the change is meant")
        }
        ReplayError::ForeignAgent
        | ReplayError::Stuck
        | ReplayError::Settings(_)
        | ReplayError::BlockedTools(_)
        | ReplayError::Model(_)
        | ReplayError::Tool(_)
        | ReplayError::Probe(_)
        | ReplayError::Record(_)
        | ReplayError::Thread(_) => None,
    };
    let failure = CliError::failure(format!("`{}` does not replay", file.display()));
    hint.into_iter().fold(failure.with_source(error), CliError::with_hint)
}

/// Returns the golden with the input of the command line.
fn with_input(golden: Golden, args: &AskArgs, file: &Path) -> Result<Golden, CliError> {
    let settings = agent_settings(args);
    let is_local = golden.input.provider == LOCAL_PROVIDER;
    let input = ReplayInput {
        provider: args.model.provider.as_deref(),
        model: args.model.name.as_deref(),
        user_prompt: &read_prompt(args.prompt.as_deref(), &io::stdin())?,
        namespace: args.agent.namespace.as_deref().unwrap_or(DEFAULT_NAMESPACE),
        settings: &if is_local { limit_settings(settings) } else { settings },
    };
    input.apply(golden).map_err(|error| {
        CliError::usage(format!("`{}` does not fit the command line", file.display()))
            .with_source(error)
    })
}

fn replace_input(golden: &mut Golden, args: &AskArgs) -> Result<(), CliError> {
    let input = &mut golden.input;
    let prompt = match args.prompt.as_deref() {
        Some(typed) => Some(read_prompt(Some(typed), &io::stdin())?),
        None => None,
    };
    let texts = [
        (&prompt, &mut input.user_prompt),
        (&args.model.name, &mut input.model),
        (&args.agent.system, &mut input.system_prompt),
        (&args.agent.namespace, &mut input.namespace),
    ];
    for (given, recorded) in texts {
        if let Some(given) = given {
            recorded.clone_from(given);
        }
    }
    if let Some(temperature) = args.strategy.temperature {
        input.settings = with_temperature(&input.settings, temperature)?;
    }
    Ok(())
}

fn with_temperature(settings: &RawValue, temperature: f64) -> Result<Box<RawValue>, CliError> {
    let replaced =
        serde_json::from_str(settings.get()).and_then(|mut settings: Map<String, Value>| {
            settings.insert("temperature".to_owned(), temperature.into());
            to_raw_value(&settings)
        });
    replaced.map_err(|error| CliError::usage("invalid `input.settings`").with_source(error))
}
