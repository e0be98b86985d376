//! The conversation of a chat with its host, model and file; shared by all forms of display.

use std::io;
use std::path::Path;
use std::sync::Arc;

use innkeeper_agent::agent::{
    Agent, AgentEvent, AgentSettings, AgentStream, CompactError, CompactedHistory,
};
use innkeeper_agent::content::Content;
use innkeeper_agent::conversation::Conversation;
use innkeeper_agent::provider::{LlmProvider, Usage};
use innkeeper_agent::server_requests::ServerRequestHandler;
use innkeeper_agent::tools::ResourceTools;
use innkeeper_host::Host;

use super::conversation_file::ConversationFile;
use super::question::ChatApprover;
use super::recording::ChatRecording;
use super::servers::{ChatServers, ServerReloader};
use super::slash_command::SlashCommand;
use crate::exit::CliError;
use crate::local_model::{LocalModel, limit_settings};
use crate::model_selection::PreparedModel;

/// Maximum number of removed exchanges that can be brought back: each one has a list of all messages
/// before it.
const MAX_UNDONE: usize = 100;

/// The tokens and the cost of a conversation since the start of the program, as the providers report
/// them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TokenTotals {
    pub(crate) usage: Usage,
    /// Whether a response did not report its tokens.
    pub(crate) has_gaps: bool,
    /// Whether a response did not report its cost.
    pub(crate) has_cost_gaps: bool,
    /// The tokens of the last request with its response; `None` without a report.
    pub(crate) last: Option<u64>,
    /// The tokens that a request with its response may have, if known.
    pub(crate) context: Option<u32>,
}

impl TokenTotals {
    /// Returns the share of the context that the last request took, in percent.
    pub(crate) fn context_percent(&self) -> Option<u64> {
        let context = u64::from(self.context.filter(|context| *context > 0)?);
        Some(self.last?.saturating_mul(100).saturating_add(context / 2) / context)
    }
}

struct ChatModel {
    /// The settings for a model with a large context.
    settings: AgentSettings,
    provider_name: String,
    /// The local model that this program serves.
    local: Option<LocalModel>,
}

/// A conversation with its servers, model and file.
pub(crate) struct ChatSession {
    servers: ChatServers,
    agent: Agent,
    approver: Arc<ChatApprover>,
    model: ChatModel,
    file: Option<ConversationFile>,
    /// Answers the requests of servers with the model.
    server_requests: Option<ServerRequestHandler>,
    tokens: TokenTotals,
    /// The conversations before each removal of an exchange since the last message.
    undone: Vec<Conversation>,
    recording: Option<ChatRecording>,
}

impl ChatSession {
    pub(crate) fn new(
        host: Host,
        model: PreparedModel,
        approver: Arc<ChatApprover>,
        settings: AgentSettings,
        recording: Option<ChatRecording>,
    ) -> Self {
        let PreparedModel { provider, local, .. } = model;
        let provider_name = provider.name().to_owned();
        let model_settings = settings_for(&settings, local.is_some());
        let servers = ChatServers::new(host.clone());
        let tools = ResourceTools::after_first_link(host);
        let tools = Arc::new(tools.with_hidden_servers(servers.hidden.clone()));
        let agent = match &recording {
            Some(recording) => recording.agent(provider, tools, approver.clone()),
            None => Agent::new(provider, tools, model_settings).with_approver(approver.clone()),
        };
        Self {
            servers,
            agent,
            approver,
            model: ChatModel { settings, provider_name, local },
            file: None,
            server_requests: None,
            tokens: TokenTotals::default(),
            undone: Vec::new(),
            recording,
        }
    }

    /// Answers the requests of servers with the model of the conversation.
    #[must_use]
    pub(crate) fn with_server_requests(
        mut self,
        handler: Option<ServerRequestHandler>,
        provider: Arc<dyn LlmProvider>,
    ) -> Self {
        if let Some(handler) = &handler {
            handler.set_model(Some(provider));
        }
        self.server_requests = handler;
        self
    }

    /// Reads the configuration with this reloader.
    #[must_use]
    pub(crate) fn with_reloader(mut self, reloader: ServerReloader) -> Self {
        self.servers.set_reloader(reloader);
        self
    }

    /// Stores the conversation in a file from now on; `conversation` is the content of the file.
    pub(crate) fn with_file(
        mut self,
        file: ConversationFile,
        conversation: Conversation,
    ) -> io::Result<Self> {
        if !conversation.messages().is_empty() {
            self.agent = self.agent.with_conversation(conversation);
        }
        self.file = Some(file);
        self.sync_file()?;
        Ok(self)
    }

    pub(crate) fn host(&self) -> &Host {
        &self.servers.host
    }

    pub(crate) fn approver(&self) -> &ChatApprover {
        &self.approver
    }

    pub(crate) fn servers(&self) -> &ChatServers {
        &self.servers
    }

    /// Applies the present configuration to the servers, and returns what changed.
    pub(crate) fn reload(&self) -> impl Future<Output = Result<String, CliError>> + Send + 'static {
        self.servers.clone().reload(self.approver.clone())
    }

    pub(crate) fn agent(&self) -> &Agent {
        &self.agent
    }

    pub(crate) fn model_label(&self) -> String {
        match self.agent.model() {
            model if model == self.model.provider_name => model.to_owned(),
            model => format!("{}/{model}", self.model.provider_name),
        }
    }

    pub(crate) fn tokens(&self) -> TokenTotals {
        TokenTotals { context: self.agent.context_tokens(), ..self.tokens }
    }

    pub(crate) fn file(&self) -> Option<&ConversationFile> {
        self.file.as_ref()
    }

    /// Sends a message; the stream has the events of the run. Dropping the stream interrupts the run;
    /// [`Self::sync_file`] then stores what the interruption left.
    pub(crate) fn run(&mut self, message: Content) -> AgentStream {
        if let Some(handler) = &self.server_requests {
            handler.start_run();
        }
        self.undone.clear();
        if let Some(recording) = &mut self.recording {
            recording.start_message(&message, &self.servers.host);
        }
        self.agent.stream(message)
    }

    /// Ends an event that is stored and shown: the recording keeps the result of a run.
    pub(crate) fn finish_event(&mut self, event: AgentEvent) {
        if let AgentEvent::Finished(result) = event
            && let Some(recording) = &mut self.recording
        {
            recording.end_message(*result, self.agent.conversation());
        }
    }

    /// Refuses a command that a recording cannot repeat.
    pub(crate) fn check_command(&self, command: SlashCommand) -> Result<(), CliError> {
        match &self.recording {
            Some(_) if !command.is_recordable() => {
                let name = command.typed_name();
                Err(CliError::usage(format!("{name} is not possible while the chat is recorded")))
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Takes the recording at the end of the chat.
    pub(crate) fn take_recording(&mut self) -> Option<ChatRecording> {
        self.recording.take()
    }

    /// Stores what an event adds, and counts its tokens.
    pub(crate) fn record(&mut self, event: &AgentEvent) -> io::Result<()> {
        match event {
            AgentEvent::MessagesAdded(messages) => match &mut self.file {
                Some(file) => file.append(messages),
                None => Ok(()),
            },
            AgentEvent::ResponseFinished { usage } => {
                self.count_tokens(*usage);
                Ok(())
            }
            AgentEvent::Finished(_) => self.sync_file(),
            AgentEvent::Text(_)
            | AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallProgress { .. }
            | AgentEvent::ToolCallFinished(_)
            | AgentEvent::Warned(_)
            | AgentEvent::ToolsOmitted(_)
            | AgentEvent::Planned(_)
            | AgentEvent::HistorySummaryStarted { .. }
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::Retrying { .. } => Ok(()),
        }
    }

    /// Counts the tokens of a response; `None` if the provider did not report them.
    fn count_tokens(&mut self, usage: Option<Usage>) {
        self.tokens.last = usage.map(|usage| usage.total_tokens());
        match usage {
            Some(usage) => {
                self.tokens.usage = self.tokens.usage.saturating_add(usage);
                self.tokens.has_cost_gaps |= usage.cost.is_none();
            }
            None => (self.tokens.has_gaps, self.tokens.has_cost_gaps) = (true, true),
        }
    }

    /// Stores what the file lacks of the conversation.
    pub(crate) fn sync_file(&mut self) -> io::Result<()> {
        match &mut self.file {
            Some(file) => file.sync(&self.agent.conversation()),
            None => Ok(()),
        }
    }

    /// Counts the tokens of an interrupted run as unknown, and stores what the run left.
    pub(crate) fn on_interruption(&mut self) -> io::Result<()> {
        self.count_tokens(None);
        if let Some(recording) = &mut self.recording {
            recording.on_interruption();
        }
        self.sync_file()
    }

    /// Removes the last exchange and returns the text of the user's message.
    pub(crate) fn remove_last_exchange(&mut self) -> io::Result<Option<String>> {
        let before = self.agent.conversation();
        let Some(removed) = self.agent.remove_last_exchange() else { return Ok(None) };
        if self.undone.len() == MAX_UNDONE {
            self.undone.remove(0);
        }
        self.undone.push(before);
        if let Some(file) = &mut self.file {
            file.replace(&self.agent.conversation())?;
        }
        Ok(Some(removed.to_text().into_owned()))
    }

    /// Brings back the exchange that was removed last since the last message. Returns whether there is
    /// one.
    pub(crate) fn restore_exchange(&mut self) -> io::Result<bool> {
        let Some(conversation) = self.undone.pop() else { return Ok(false) };
        self.agent = self.agent.clone().with_conversation(conversation);
        self.sync_file().map(|()| true)
    }

    /// Continues in a copy of the conversation. Returns the id of the copy and of the file until now;
    /// `None` for an empty conversation.
    pub(crate) fn fork(&mut self, directory: &Path) -> Result<Option<(String, String)>, CliError> {
        let failure = |error| CliError::failure("cannot store the conversation").with_source(error);
        let conversation = self.agent.conversation();
        let Some(earlier) = self.file.as_ref().filter(|_| !conversation.messages().is_empty())
        else {
            return Ok(None);
        };
        let mut copy = ConversationFile::create(directory)?;
        if let Some(title) = earlier.title() {
            copy.set_title(title).map_err(failure)?;
        }
        copy.sync(&conversation).map_err(failure)?;
        let ids = (copy.id(), earlier.id());
        self.file = Some(copy);
        Ok(Some(ids))
    }

    /// Continues a stored conversation in place of this one. Its tokens count from zero.
    pub(crate) fn resume(
        &mut self,
        file: ConversationFile,
        conversation: Conversation,
    ) -> io::Result<()> {
        let ended = self.clear(Some(file));
        self.agent = self.agent.clone().with_conversation(conversation);
        ended.and(self.sync_file())
    }

    /// Starts a new conversation, in `file` if there is one. Its tokens count from zero.
    pub(crate) fn clear(&mut self, file: Option<ConversationFile>) -> io::Result<()> {
        self.agent.clear();
        self.undone.clear();
        self.servers.hidden.show_all();
        self.tokens = TokenTotals::default();
        match std::mem::replace(&mut self.file, file) {
            Some(earlier) => earlier.remove_if_empty(),
            None => Ok(()),
        }
    }

    /// Sets the title of the conversation in the list of conversations.
    pub(crate) fn set_title(&mut self, title: &str) -> io::Result<bool> {
        match &mut self.file {
            Some(file) => file.set_title(title).map(|()| true),
            None => Ok(false),
        }
    }

    /// Continues with another model. Returns the local model that the conversation no longer uses.
    pub(crate) fn set_model(&mut self, model: PreparedModel) -> Option<LocalModel> {
        let PreparedModel { provider, local, .. } = model;
        self.model.provider_name = provider.name().to_owned();
        let settings = settings_for(&self.model.settings, local.is_some());
        if let Some(handler) = &self.server_requests {
            handler.set_model(Some(provider.clone()));
        }
        self.agent = self.agent.clone().with_provider(provider, settings);
        std::mem::replace(&mut self.model.local, local)
    }

    /// Has the model summarize the history before the last exchange.
    pub(crate) fn compact(
        &self,
    ) -> impl Future<Output = Result<CompactedHistory, CompactError>> + Send + 'static {
        let agent = self.agent.clone();
        async move { agent.compact().await }
    }

    /// Counts the tokens of a summary, and stores it.
    pub(crate) fn on_compacted(&mut self, compacted: &CompactedHistory) -> io::Result<()> {
        self.undone.clear();
        self.count_tokens(compacted.usage);
        // The next request has the summary in place of the messages.
        self.tokens.last = None;
        self.sync_file()
    }

    /// Ends the session: stops the local model, and removes the file of an empty conversation.
    /// Returns the id of a stored conversation.
    pub(crate) async fn finish(mut self) -> Result<Option<String>, CliError> {
        let synced = self.sync_file();
        let id = self.file.as_ref().map(ConversationFile::id);
        let is_empty = self.agent.conversation().messages().is_empty();
        let removed = self.file.map_or(Ok(()), ConversationFile::remove_if_empty);
        let stopped = match self.model.local {
            Some(local) => local.stop().await,
            None => Ok(()),
        };
        synced.and(removed).map_err(|error| {
            CliError::failure("cannot store the conversation").with_source(error)
        })?;
        stopped?;
        Ok(id.filter(|_| !is_empty))
    }
}

/// Returns the settings for a model, which may be the local one.
pub(crate) fn settings_for(settings: &AgentSettings, is_local: bool) -> AgentSettings {
    match is_local {
        true => limit_settings(settings.clone()),
        false => settings.clone(),
    }
}
