//! What the recording of a chat needs beyond its recorder: the messages, and the result so far.

use std::collections::BTreeMap;
use std::sync::Arc;

use innkeeper_agent::agent::{Agent, AgentSettings, RunResult};
use innkeeper_agent::content::Content;
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::ghost::GhostResult;
use innkeeper_agent::golden::GoldenRecorder;
use innkeeper_agent::provider::LlmProvider;
use innkeeper_agent::safety::Approver;
use innkeeper_agent::tools::ToolRunner;
use innkeeper_host::Host;

use crate::hosting::{ready_servers, server_failures};
use crate::secret_mask::SecretMask;

pub(crate) struct ChatRecording {
    recorder: GoldenRecorder,
    secret_mask: SecretMask,
    prompts: Vec<String>,
    report: GhostResult,
    servers: BTreeMap<String, Option<String>>,
    settings: AgentSettings,
    /// Why the recording would not replay.
    problem: Option<&'static str>,
}

/// A chat that has ended.
pub(crate) struct RecordedChat {
    pub(crate) first_prompt: String,
    pub(crate) further_prompts: Vec<String>,
    pub(crate) report: GhostResult,
    /// The servers at the first message: why a server is not available, or `None`.
    pub(crate) servers: BTreeMap<String, Option<String>>,
    pub(crate) settings: AgentSettings,
}

impl ChatRecording {
    /// Creates the recording of a chat with this model and these settings of its agent.
    pub(crate) fn new(
        recorder: GoldenRecorder,
        provider: &dyn LlmProvider,
        settings: AgentSettings,
        secret_mask: SecretMask,
    ) -> Self {
        let mut report = GhostResult::before_run(&settings.system, provider.name());
        report.set_model(provider);
        Self {
            recorder,
            secret_mask,
            prompts: Vec::new(),
            report,
            servers: BTreeMap::new(),
            settings,
            problem: None,
        }
    }

    pub(crate) fn agent(
        &self,
        provider: Arc<dyn LlmProvider>,
        tools: Arc<dyn ToolRunner>,
        approver: Arc<dyn Approver>,
    ) -> Agent {
        let tools = self.recorder.record_tools(tools);
        let approver = self.recorder.record_approver(approver);
        self.recorder.agent(provider, tools, self.settings.clone()).with_approver(approver)
    }

    pub(crate) fn start_message(&mut self, message: &Content, host: &Host) {
        let text = message.to_text().into_owned();
        if *message != Content::from(&*text) {
            self.problem = Some("a message is not plain text");
        }
        if self.prompts.is_empty() {
            self.report.tools_discovered = host.list_tools().len();
            self.report.servers_connected = ready_servers(host);
            self.servers = server_failures(host, &self.secret_mask);
            for (name, reason) in &self.servers {
                if let Some(reason) = reason {
                    self.report.add_server_error(name, reason);
                }
            }
        } else {
            self.recorder.start_further_run(&self.report);
        }
        self.prompts.push(text);
    }

    pub(crate) fn end_message(&mut self, result: RunResult, conversation: Conversation) {
        match self.prompts.len() {
            0 | 1 => self.report.finish(result, conversation),
            _ => self.report.add_run(result, conversation),
        }
    }

    /// Notes that a run was interrupted.
    pub(crate) fn on_interruption(&mut self) {
        self.problem = Some("a response was interrupted");
    }

    /// Returns what was recorded.
    ///
    /// # Errors
    ///
    /// The text says why the recording would not replay.
    pub(crate) fn into_recorded_chat(self) -> Result<RecordedChat, &'static str> {
        if let Some(problem) = self.problem {
            return Err(problem);
        }
        let mut prompts = self.prompts.into_iter();
        Ok(RecordedChat {
            first_prompt: prompts.next().ok_or("no message was sent")?,
            further_prompts: prompts.collect(),
            report: self.report,
            servers: self.servers,
            settings: self.settings,
        })
    }
}
