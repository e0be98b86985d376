//! `McpChatIntegration` and its configuration, by [`innkeeper_agent::Chat`].

use std::error::Error;
use std::sync::Arc;

use futures_util::Stream;
use innkeeper_agent::chat::{Recording, Results, Rounds, RoundsError, Turn};
use innkeeper_agent::{Chat, ChatError, Settings};
use tokio::sync::Mutex;

use super::StreamingMode;
use super::client::McpClient;
use super::received::{ExecutedTools, ProcessedToken, ProcessedTokens};

/// How tools come into a chat; [`Settings`] has more.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatIntegrationConfig {
    /// What is done with calls. Default: `SmartBuffering` with 200 characters.
    pub streaming_mode: StreamingMode,
    /// Whether system prompts get the tools. Default: yes.
    pub enhance_system_prompts: bool,
    /// How many answers of a turn may have their calls run. Default: 3; 0 runs none.
    pub max_tool_rounds: usize,
    /// What is written down. Default: nothing.
    pub instrumentation: InstrumentationConfig,
}

impl Default for ChatIntegrationConfig {
    fn default() -> Self {
        let Settings { mode, enhance_system_prompts, max_tool_rounds, .. } = Settings::default();
        let instrumentation = InstrumentationConfig::default();
        Self { streaming_mode: mode, enhance_system_prompts, max_tool_rounds, instrumentation }
    }
}

/// What is written down; see [`Recording`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentationConfig {
    /// The file that one JSON object a line is appended to. Default: none.
    pub log_path: Option<String>,
    /// Whether every piece of text is told with what it was taken for. Default: no.
    pub log_token_classifications: bool,
    /// Whether durations are told, as `duration_ms`. Default: yes.
    pub log_performance_metrics: bool,
}

impl Default for InstrumentationConfig {
    fn default() -> Self {
        Self { log_path: None, log_token_classifications: false, log_performance_metrics: true }
    }
}

impl From<ChatIntegrationConfig> for Settings {
    fn from(config: ChatIntegrationConfig) -> Self {
        let recording = Recording {
            log_path: config.instrumentation.log_path.map(Into::into),
            token_classifications: config.instrumentation.log_token_classifications,
            performance_metrics: config.instrumentation.log_performance_metrics,
        };
        Self {
            mode: config.streaming_mode,
            enhance_system_prompts: config.enhance_system_prompts,
            max_tool_rounds: config.max_tool_rounds,
            recording,
            ..Self::default()
        }
    }
}

/// A [`Chat`] over one server, with one [`Turn`]: for one conversation.
#[derive(Clone, Debug)]
pub struct McpChatIntegration {
    chat: Chat,
    turn: Turn,
}

impl McpChatIntegration {
    /// Tools of this client for a chat. The lock is taken for a moment and never while a tool runs.
    ///
    /// # Errors
    ///
    /// A log that cannot be opened.
    pub async fn new(
        client: Arc<Mutex<McpClient>>,
        config: ChatIntegrationConfig,
    ) -> Result<Self, ChatError> {
        let server = client.lock().await.server().clone();
        let chat = Chat::new(Arc::new(server), config.into())?;
        Ok(Self { turn: chat.turn(), chat })
    }

    /// See [`Chat::enhance_system_prompt`].
    pub fn enhance_system_prompt(&self, system: &str) -> String {
        self.chat.enhance_system_prompt(system)
    }

    /// See [`Turn::answer`].
    ///
    /// # Errors
    ///
    /// Outside of a Tokio runtime.
    pub async fn process_streaming_response<S>(
        &self,
        stream: S,
    ) -> Result<StreamingResponseHandle, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let answer = self.turn.answer(stream)?;
        Ok(StreamingResponseHandle {
            token_stream: ProcessedTokens(answer.token_stream),
            tool_stream: ExecutedTools(answer.tool_stream),
            results: answer.results,
        })
    }

    /// See [`Chat::run_rounds`].
    ///
    /// # Errors
    ///
    /// What `ask` fails with.
    pub async fn run_rounds<A, F, S, E>(
        &self,
        ask: A,
        mut show: impl FnMut(ProcessedToken),
    ) -> Result<Rounds, RoundsError<E>>
    where
        A: FnMut(Option<String>) -> F,
        F: Future<Output = Result<S, E>>,
        S: Stream<Item = String> + Send + Unpin + 'static,
        E: Error + 'static,
    {
        self.chat.run_rounds(ask, |token| show(token.into())).await
    }

    /// Forgets the rounds there have been, as for something new the user said.
    pub fn begin_anew(&self) {
        self.turn.begin_anew();
    }

    /// The chat, for what this type has no name for.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }
}

/// An [`Answer`](innkeeper_agent::chat::Answer) that is being read.
#[derive(Debug)]
pub struct StreamingResponseHandle {
    /// The text.
    pub token_stream: ProcessedTokens,
    /// The results of calls.
    pub tool_stream: ExecutedTools,
    /// What becomes of both.
    pub results: Results,
}

impl StreamingResponseHandle {
    /// See [`Results::as_message`].
    pub async fn results_as_message(&self) -> Option<String> {
        self.results.as_message().await
    }
}
