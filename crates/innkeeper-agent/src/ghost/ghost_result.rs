//! The result of a one-shot run.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

use crate::agent::RunResult;
use crate::conversation::Conversation;
use crate::provider::LlmProvider;
use crate::run::{ErrorRecord, RunOutcome};
use crate::run_json::{RunContext, RunJson, failure_message};

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
    /// Creates the result of a run before its start.
    pub fn before_run(system_prompt: &str, provider: &str) -> Self {
        Self {
            result: RunResult::not_sent(String::new(), Duration::ZERO),
            conversation: Conversation::new(),
            system_prompt: system_prompt.to_owned(),
            provider: provider.to_owned(),
            model: String::new(),
            tools_discovered: 0,
            servers_connected: 0,
        }
    }

    /// Sets the model.
    pub fn set_model(&mut self, provider: &dyn LlmProvider) {
        self.provider = provider.name().to_owned();
        self.model = provider.model().to_owned();
    }

    /// Returns what the JSON form of the result says beyond the run.
    pub fn context(&self) -> RunContext<'_> {
        RunContext {
            provider: &self.provider,
            model: &self.model,
            system: &self.system_prompt,
            conversation: &self.conversation,
            tools_discovered: self.tools_discovered,
            servers_connected: self.servers_connected,
        }
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
    pub fn add_server_error(&mut self, server: &str, reason: &str) {
        self.result.errors.push(ErrorRecord {
            iteration: 0,
            tool: None,
            call_id: None,
            error: format!("server `{server}` is not available: {reason}"),
            recovery_action: None,
        });
    }

    /// Sets the result of the run and its conversation. The errors of servers stay before those of
    /// the run.
    pub fn finish(&mut self, mut result: RunResult, conversation: Conversation) {
        result.errors.splice(..0, std::mem::take(&mut self.result.errors));
        self.result = result;
        self.conversation = conversation;
    }

    /// Adds the result of a further run of the same agent, as for the next message of a chat. The
    /// outcome and the text are then those of the further run, and the failure of an earlier run is
    /// one of the errors. Iterations count on from the earlier runs.
    pub fn add_run(&mut self, further: RunResult, conversation: Conversation) {
        let all = &mut self.result;
        let earlier_iterations = all.stats.iterations;
        if let Some(error) = failure_message(&all.outcome) {
            all.errors.push(ErrorRecord {
                iteration: earlier_iterations,
                tool: None,
                call_id: None,
                error,
                recovery_action: None,
            });
        }
        for mut record in further.tool_calls {
            Arc::make_mut(&mut record).iteration += earlier_iterations;
            all.tool_calls.push(record);
        }
        for error in further.errors {
            let iteration = error.iteration + earlier_iterations;
            all.errors.push(ErrorRecord { iteration, ..error });
        }
        all.stats.add_run(further.stats);
        all.correction_examples.extend(further.correction_examples);
        all.elapsed += further.elapsed;
        all.outcome = further.outcome;
        all.text = further.text;
        all.tool_call_mode = further.tool_call_mode;
        self.conversation = conversation;
    }
}

/// Writes the result with all fields of a one-shot run; see [`RunJson`].
impl Serialize for GhostResult {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        RunJson::new(&self.result, &self.context()).serialize(serializer)
    }
}
