//! Has the model summarize the history on request.

use std::sync::Arc;

use super::Agent;
use super::model_client::ModelClient;
use crate::provider::{LlmError, Usage};
use crate::run::Run;

/// The result of [`Agent::compact`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactedHistory {
    /// The number of messages that the summary replaces in requests.
    pub messages: usize,
    /// The token usage, as reported by the provider.
    pub usage: Option<Usage>,
}

/// The reason why the history is not summarized. Requests contain the same messages as before.
#[derive(Debug, thiserror::Error)]
pub enum CompactError {
    /// A run is in progress.
    #[error("a run is in progress")]
    RunInProgress,
    /// No message precedes the last exchange, or the summary contains all of them.
    #[error("no messages to summarize before the last exchange")]
    NothingToSummarize,
    /// The model gave no summary, or a summary that is too long.
    #[error("the model gave no usable summary")]
    NoSummary,
    /// The request failed.
    #[error("the request for a summary failed")]
    Request(#[from] LlmError),
}

impl Agent {
    /// Has the model summarize all messages before the last exchange. Later requests contain the
    /// summary in place of the messages; the conversation keeps the messages. A history that exceeds
    /// the budget is summarized in several requests. Dropping the future keeps the summaries that
    /// are complete.
    ///
    /// # Errors
    ///
    /// [`CompactError`] says why nothing, or not everything, is summarized.
    pub async fn compact(&self) -> Result<CompactedHistory, CompactError> {
        let snapshot = self.executor.tool_snapshot();
        let config = Arc::new(self.run_config(&snapshot));
        let mut active = self.state.begin_run(config).ok_or(CompactError::RunInProgress)?;
        let client = self.model_client(false);
        let result = summarize_all(&client, &mut active.run).await;
        active.release();
        result
    }
}

async fn summarize_all(
    client: &ModelClient<'_>,
    run: &mut Run,
) -> Result<CompactedHistory, CompactError> {
    let mut compacted = CompactedHistory { messages: 0, usage: None };
    while let Some((request, messages)) = run.compaction_request() {
        let response = client.send_request(request, run, &mut |_| {}).await?;
        if let Some(usage) = response.usage {
            compacted.usage = Some(compacted.usage.unwrap_or_default().saturating_add(usage));
        }
        if !run.on_compaction_response(&response) {
            return Err(CompactError::NoSummary);
        }
        compacted.messages += messages;
    }
    match compacted.messages {
        0 => Err(CompactError::NothingToSummarize),
        _ => Ok(compacted),
    }
}
