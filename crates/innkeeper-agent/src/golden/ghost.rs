//! A recorded run of document 002.

use innkeeper_host::find_credentials;
use serde_json::value::RawValue;

use super::record_error::RecordError;
use super::recorder::{GoldenRecorder, RunDescription};
use super::{Category, Golden, known_secrets};
use crate::ghost::{GhostConfig, GhostResult, run_with_servers};
use crate::timing::Timing;

/// Works like [`mcp_ghost_streaming`](crate::ghost::mcp_ghost_streaming), and records the run under a
/// name. A run that cannot be recorded still has its result; see [`GoldenRecorder::finish`] for the
/// errors.
pub async fn mcp_ghost_recorded(
    config: GhostConfig,
    test_name: &str,
) -> (GhostResult, Result<Golden, RecordError>) {
    let timing = Timing::default();
    let (started_at, recorded_at) = (timing.now(), timing.system_time());
    let recorder = GoldenRecorder::new();
    let (user_prompt, namespace) = (config.user_prompt.clone(), config.namespace.clone());
    let (mut result, facts) = run_with_servers(config, Some(&mut |_| {}), Some(&recorder)).await;
    result.result.elapsed = timing.elapsed(started_at);
    let Some(facts) = facts else {
        let error = RecordError::not_finished(&result);
        return (result, Err(error));
    };
    let secrets = known_secrets(Some(&facts.endpoint), &facts.host_config);
    let written = facts.host_config.origin.servers_as_written();
    let golden = match RawValue::from_string(written) {
        Ok(server_config) => {
            let description = RunDescription {
                test_name: test_name.to_owned(),
                category: Category::from_test_name(test_name),
                recorded_at,
                server_config,
                user_prompt,
                further_prompts: Vec::new(),
                namespace,
                streaming: true,
                settings: facts.settings,
                servers: facts.servers,
            };
            recorder.finish(&description, &result, &secrets, find_credentials).await
        }
        Err(error) => Err(error.into()),
    };
    (result, golden)
}
