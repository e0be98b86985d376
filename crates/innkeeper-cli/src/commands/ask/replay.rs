//! `ask --replay`: runs the agent over the bytes of a recording.

use std::io;
use std::path::Path;

use innkeeper_agent::golden::{Golden, Replay, ReplayError, replay};
use innkeeper_agent::run_json::RunJson;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Map, Value};

use super::super::CommandContext;
use super::super::golden::files;
use super::super::golden::store::is_continuous_integration;
use super::{print_outcome, read_prompt};
use crate::cli::AskArgs;
use crate::exit::CliError;
use crate::output::Style;

/// Replays a recording. What the command line says replaces what the recording was given, so that a
/// changed prompt is a request that was not recorded.
pub(super) async fn run(
    context: &mut CommandContext,
    args: &AskArgs,
    file: &Path,
) -> Result<(), CliError> {
    let mut golden = files::read(file)?.golden;
    replace_input(&mut golden, args)?;
    let replayed = replay(&golden).await.map_err(|error| replay_error(file, error))?;
    let replayed = match is_continuous_integration(&context.environment) {
        true => replayed.require_complete().map_err(|error| replay_error(file, error))?,
        false => {
            for unused in &replayed.unused {
                let text = format!("nothing asked for {unused}");
                context.output.labelled_status(Style::Note, "warning", &text)?;
            }
            replayed
        }
    };
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

fn replace_input(golden: &mut Golden, args: &AskArgs) -> Result<(), CliError> {
    let input = &mut golden.input;
    let prompt = match args.prompt.as_deref() {
        Some(typed) => Some(read_prompt(Some(typed), &io::stdin())?),
        None => None,
    };
    let texts = [
        (&prompt, &mut input.user_prompt),
        (&args.model.name, &mut input.model),
        (&args.system, &mut input.system_prompt),
        (&args.namespace, &mut input.namespace),
    ];
    for (given, recorded) in texts {
        if let Some(given) = given {
            recorded.clone_from(given);
        }
    }
    if let Some(temperature) = args.temperature {
        input.settings = with_temperature(&input.settings, temperature)?;
    }
    Ok(())
}

/// Replaces the temperature of recorded settings.
fn with_temperature(settings: &RawValue, temperature: f64) -> Result<Box<RawValue>, CliError> {
    let replaced =
        serde_json::from_str(settings.get()).and_then(|mut settings: Map<String, Value>| {
            settings.insert("temperature".to_owned(), temperature.into());
            to_raw_value(&settings)
        });
    replaced.map_err(|error| CliError::usage("invalid `input.settings`").with_source(error))
}
