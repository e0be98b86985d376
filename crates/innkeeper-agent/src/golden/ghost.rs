//! Recorded and replayed runs of document 002.

use std::path::Path;

use innkeeper_host::find_credentials;
use serde_json::value::RawValue;

use super::record_error::RecordError;
use super::recorder::{DescribedPrompts, DescribedServers, GoldenRecorder, RunDescription};
use super::replay::{Replay, ReplayError, replay};
use super::replay_input::{ReplayInput, ReplayInputError};
use super::test_support::{LoadError, SaveError, load_golden, save_golden};
use super::{Category, Golden, GoldenAction, GoldenMode, known_secrets};
use crate::ghost::{GhostConfig, GhostResult, mcp_ghost_streaming, run_with_servers};
use crate::timing::Timing;

/// Works like [`mcp_ghost_streaming`](crate::ghost::mcp_ghost_streaming), and records the run under a
/// name. A run that cannot be recorded still has its result; see [`GoldenRecorder::finish`] for the
/// errors.
pub async fn mcp_ghost_recorded(
    config: GhostConfig,
    test_name: &str,
) -> (GhostResult, Result<Golden, RecordError>) {
    let timing = Timing::default();
    let started_at = timing.now();
    let recorded_at = timing.system_time();
    let recorder = GoldenRecorder::new();
    let user_prompt = config.user_prompt.clone();
    let namespace = config.namespace.clone();
    let (mut result, facts) = run_with_servers(config, Some(&mut |_| {}), Some(&recorder)).await;
    result.result.elapsed = timing.elapsed(started_at);
    let Some(facts) = facts else {
        let error = RecordError::not_finished(&result);
        return (result, Err(error));
    };
    if facts.endpoint.is_none() {
        return (result, Err(RecordError::NoHttp));
    }
    let secrets = known_secrets(facts.endpoint.as_ref(), &facts.host_config);
    let written = facts.host_config.origin.servers_as_written();
    let golden = match RawValue::from_string(written) {
        Ok(config) => {
            let description = RunDescription {
                test_name: test_name.to_owned(),
                category: Category::from_test_name(test_name),
                recorded_at,
                servers: DescribedServers { config, states: facts.servers },
                prompts: DescribedPrompts { first: user_prompt, further: Vec::new() },
                namespace,
                streaming: true,
                settings: facts.settings,
            };
            recorder.finish(&description, &result, &secrets, find_credentials).await
        }
        Err(error) => Err(error.into()),
    };
    (result, golden)
}

/// Why a run with a golden has no result.
#[derive(Debug, thiserror::Error)]
pub enum GoldenRunError {
    /// The golden cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The golden is that of another run.
    #[error("the golden does not fit the run")]
    Input(#[from] ReplayInputError),
    /// The golden does not replay.
    #[error("the golden does not replay")]
    Replay(#[from] ReplayError),
    /// The run cannot be recorded.
    #[error("the run was not recorded")]
    Record(#[from] RecordError),
    /// The golden cannot be written.
    #[error(transparent)]
    Save(#[from] SaveError),
}

/// Works like [`mcp_ghost_streaming`](crate::ghost::mcp_ghost_streaming), and does with a golden what the
/// mode says. The golden has the name of its file.
///
/// A replay starts no server, opens no connection and needs no key. It gets the prompts, the model, the
/// namespace and the settings of `config`, so that a change of them is a request that was not
/// recorded. The provider must be the recorded one. The library does not know where it runs: under
/// continuous integration, pass [`GoldenMode::Strict`].
///
/// # Errors
///
/// The golden is unreadable, does not replay or cannot be written. A run that failed is a result, as for
/// `mcp_ghost_streaming`.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_agent::ghost::GhostConfig;
/// use innkeeper_agent::golden::{GoldenMode, mcp_ghost_with_golden};
///
/// # async fn example(config: GhostConfig) -> Result<(), Box<dyn std::error::Error>> {
/// let file = "tests/goldens/tables.json";
/// let report = mcp_ghost_with_golden(config, file, GoldenMode::Auto).await?;
/// assert!(report.result.is_success());
/// # Ok(()) }
/// ```
pub async fn mcp_ghost_with_golden(
    config: GhostConfig,
    file: impl AsRef<Path>,
    mode: GoldenMode,
) -> Result<GhostResult, GoldenRunError> {
    let file = file.as_ref();
    // What cannot be looked at exists: reading it says why it can't be read.
    match mode.action(file.try_exists().unwrap_or(true)) {
        GoldenAction::Run => Ok(mcp_ghost_streaming(config, |_| {}).await),
        GoldenAction::Record => {
            let test_name = file.file_stem().unwrap_or_default().to_string_lossy();
            let (result, golden) = mcp_ghost_recorded(config, &test_name).await;
            save_golden(file, golden?)?;
            Ok(result)
        }
        GoldenAction::Replay(unused) => {
            let replayed = mcp_ghost_replayed(&config, load_golden(file)?).await?;
            Ok(replayed.require(unused)?.result)
        }
    }
}

/// Replays a golden in place of the run of `config`, as [`GoldenMode::Replay`] does.
///
/// # Errors
///
/// The golden is that of another run, or does not replay.
pub async fn mcp_ghost_replayed(
    config: &GhostConfig,
    golden: Golden,
) -> Result<Replay, GoldenRunError> {
    let selector = config.chosen_model();
    let input = ReplayInput {
        provider: Some(&selector.provider),
        model: selector.model.as_deref(),
        user_prompt: &config.user_prompt,
        namespace: &config.namespace,
        settings: &config.agent_settings(),
    };
    Ok(replay(&input.apply(golden)?).await?)
}
