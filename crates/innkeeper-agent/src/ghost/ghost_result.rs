//! The result of a one-shot run.

use std::error::Error;
use std::time::Duration;

use serde::{Serialize, Serializer};

use super::GhostConfig;
use crate::agent::RunResult;
use crate::conversation::Conversation;
use crate::provider::LlmProvider;
use crate::run::{ErrorRecord, RunOutcome};
use crate::run_json::{RunContext, RunJson};

/// The result of [`mcp_ghost`](super::mcp_ghost).
#[derive(Debug)]
pub struct GhostResult {
    /// The result of the run; [`RunOutcome::NotSent`] if the run did not begin.
    pub result: RunResult,
    /// The conversation.
    pub conversation: Conversation,
    /// The system prompt.
    pub system_prompt: String,
    /// The name of the provider, as far as known.
    pub provider: String,
    /// The name of the model; empty if the run did not begin.
    pub model: String,
    /// The number of available tools.
    pub tools_discovered: usize,
    /// The number of servers that became ready.
    pub servers_connected: usize,
}

impl GhostResult {
    pub(super) fn new(config: &GhostConfig) -> Self {
        Self {
            result: RunResult::not_sent(String::new(), Duration::ZERO),
            conversation: Conversation::new(),
            system_prompt: config.system_prompt.clone(),
            provider: config.provider.clone(),
            model: String::new(),
            tools_discovered: 0,
            servers_connected: 0,
        }
    }

    pub(super) fn set_model(&mut self, provider: &dyn LlmProvider) {
        self.provider = provider.name().to_owned();
        self.model = provider.model().to_owned();
    }

    /// Ends the run before its first request.
    pub(super) fn fail(mut self, error: &(dyn Error + 'static)) -> Self {
        let mut reason = error.to_string();
        let mut source = error.source();
        while let Some(cause) = source {
            reason.push_str(&format!(": {cause}"));
            source = cause.source();
        }
        self.result.outcome = RunOutcome::NotSent { reason };
        self
    }

    /// Records a server without tools for the run.
    pub(super) fn add_server_error(&mut self, server: &str, reason: &str) {
        self.result.errors.push(ErrorRecord {
            iteration: 0,
            tool: None,
            call_id: None,
            error: format!("server `{server}` is not available: {reason}"),
            recovery_action: None,
        });
    }

    pub(super) fn finish(&mut self, mut result: RunResult, conversation: Conversation) {
        result.errors.splice(..0, std::mem::take(&mut self.result.errors));
        self.result = result;
        self.conversation = conversation;
    }
}

/// Writes the result with all fields of a one-shot run; see [`RunJson`].
impl Serialize for GhostResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let context = RunContext {
            provider: &self.provider,
            model: &self.model,
            system: &self.system_prompt,
            conversation: &self.conversation,
            tools_discovered: self.tools_discovered,
            servers_connected: self.servers_connected,
        };
        RunJson::new(&self.result, &context).serialize(serializer)
    }
}
