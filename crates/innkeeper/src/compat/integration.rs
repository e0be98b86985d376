//! `McpChatIntegration` and its configuration, based on [`innkeeper_agent::Chat`].

use std::error::Error;
use std::sync::Arc;

use futures_util::Stream;
use innkeeper_agent::chat::{ChatErrorRecord, ChatRun, ChatRunResult, LogConfig, ResponseResults};
use innkeeper_agent::{Chat, ChatError, ChatSettings};
use tokio::sync::Mutex;

use super::StreamingMode;
use super::client::McpClient;
use super::processed::{ExecutedTools, ProcessedToken, ProcessedTokens};

/// Configuration of tools in a chat. [`ChatSettings`] has more settings.
#[derive(Clone, Debug, PartialEq)]
pub struct ChatIntegrationConfig {
    /// How tool calls in the text are handled. Default: `SmartBuffering` with 200 characters.
    pub streaming_mode: StreamingMode,
    /// Whether [`McpChatIntegration::enhance_system_prompt`] adds the tools. Default: `true`.
    pub enhance_system_prompts: bool,
    /// Maximum number of responses per run whose calls are executed. Default: 3; 0 executes no
    /// calls.
    pub max_tool_rounds: usize,
    /// What the chat logs. Default: nothing.
    pub instrumentation: InstrumentationConfig,
}

impl Default for ChatIntegrationConfig {
    fn default() -> Self {
        let ChatSettings { mode, enhance_system_prompts, max_tool_iterations, .. } =
            ChatSettings::default();
        Self {
            streaming_mode: mode,
            enhance_system_prompts,
            max_tool_rounds: max_tool_iterations,
            instrumentation: InstrumentationConfig::default(),
        }
    }
}

/// Configuration of the chat's log; see [`LogConfig`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InstrumentationConfig {
    /// Path of the log file; the chat appends one JSON object per line. Default: none, no log.
    pub log_path: Option<String>,
    /// Whether the log contains each text segment and its classification. Default: `false`.
    pub log_token_classifications: bool,
    /// Whether log entries contain durations, as `duration_ms`. Default: `true`.
    pub log_performance_metrics: bool,
}

impl Default for InstrumentationConfig {
    fn default() -> Self {
        Self { log_path: None, log_token_classifications: false, log_performance_metrics: true }
    }
}

impl From<ChatIntegrationConfig> for ChatSettings {
    fn from(config: ChatIntegrationConfig) -> Self {
        let log_config = LogConfig {
            log_path: config.instrumentation.log_path.map(Into::into),
            token_classifications: config.instrumentation.log_token_classifications,
            performance_metrics: config.instrumentation.log_performance_metrics,
        };
        Self {
            mode: config.streaming_mode,
            enhance_system_prompts: config.enhance_system_prompts,
            max_tool_iterations: config.max_tool_rounds,
            log_config,
            ..Self::default()
        }
    }
}

/// A [`Chat`] over one server and one [`ChatRun`], for one conversation.
#[derive(Clone, Debug)]
pub struct McpChatIntegration {
    chat: Chat,
    run: ChatRun,
}

impl McpChatIntegration {
    /// Creates a chat with the tools of `client`. The lock is held only during this call, never
    /// while a tool runs.
    ///
    /// # Errors
    ///
    /// Returns an error if the log file cannot be opened.
    pub async fn new(
        client: Arc<Mutex<McpClient>>,
        config: ChatIntegrationConfig,
    ) -> Result<Self, ChatError> {
        let server = client.lock().await.server().clone();
        let chat = Chat::new(Arc::new(server), config.into())?;
        Ok(Self { run: chat.start_run(), chat })
    }

    /// Adds the tools to a system prompt; see [`Chat::enhance_system_prompt`].
    pub fn enhance_system_prompt(&self, system: &str) -> String {
        self.chat.enhance_system_prompt(system)
    }

    /// Reads one response of the model and runs its calls; see [`ChatRun::read_response`].
    ///
    /// # Errors
    ///
    /// Returns an error outside of a Tokio runtime.
    pub async fn process_streaming_response<S>(
        &self,
        stream: S,
    ) -> Result<StreamingResponseHandle, ChatError>
    where
        S: Stream<Item = String> + Send + Unpin + 'static,
    {
        let response = self.run.read_response(stream)?;
        Ok(StreamingResponseHandle {
            token_stream: ProcessedTokens(response.segment_stream),
            tool_stream: ExecutedTools(response.execution_stream),
            results: response.results,
        })
    }

    /// Sends requests until the model makes no more calls; see [`Chat::run`].
    ///
    /// # Errors
    ///
    /// Returns the error of `request_model`.
    pub async fn run_rounds<A, F, S, E>(
        &self,
        request_model: A,
        mut show: impl FnMut(ProcessedToken),
    ) -> Result<ChatRunResult, ChatErrorRecord<E>>
    where
        A: FnMut(Option<String>) -> F,
        F: Future<Output = Result<S, E>>,
        S: Stream<Item = String> + Send + Unpin + 'static,
        E: Error + 'static,
    {
        self.chat.run(request_model, |token| show(token.into())).await
    }

    /// Resets the count of tool rounds. Call this method when the user sends a new message.
    pub fn reset(&self) {
        self.run.reset();
    }

    /// Returns the underlying chat.
    pub fn chat(&self) -> &Chat {
        &self.chat
    }
}

/// The two streams and the results of a response; see
/// [`StreamingResponse`](innkeeper_agent::chat::StreamingResponse).
#[derive(Debug)]
pub struct StreamingResponseHandle {
    /// The text of the response.
    pub token_stream: ProcessedTokens,
    /// The executed tool calls of the response.
    pub tool_stream: ExecutedTools,
    /// The collected results of the calls.
    pub results: ResponseResults,
}

impl StreamingResponseHandle {
    /// Returns the results as a message for the model; see [`ResponseResults::as_message`].
    pub async fn results_as_message(&self) -> Option<String> {
        self.results.as_message().await
    }
}
