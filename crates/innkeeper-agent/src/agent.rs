//! Runs a model with tools and keeps the conversation.
//!
//! [`Agent::run`] sends one user message to the model, runs the tools that the model calls, and
//! returns their results to the model until the model gives its last response. The rules are in
//! [`run`](crate::run); this module performs the I/O.

mod active_run;
mod compact;
mod event;
mod model_client;
mod run_driver;
mod run_result;
mod spans;
mod statistics;
mod stream;
mod tool_dispatcher;
mod undo;

use std::future::{Future, pending};
use std::pin::pin;
use std::sync::Arc;

use futures_util::FutureExt as _;
use futures_util::future::{BoxFuture, Either, select};
use innkeeper_host::Telemetry;
use innkeeper_toolcall::prompt::Template;

use crate::content::Content;
use crate::conversation::Conversation;
use crate::executor::{Executor, ToolSnapshot};
use crate::provider::LlmProvider;
use crate::run::{INTERRUPTED_MESSAGE, RunConfig, RunOutcome};
use crate::safety::{Approver, RateLimit};
use crate::timing::Timing;
use crate::tools::ToolRunner;
use active_run::AgentState;
use model_client::ModelClient;
use run_driver::RunDriver;
use spans::ActiveSpan;
use tool_dispatcher::{ResponseCalls, ToolDispatcher};

pub use crate::executor::{CacheSettings, CallSettings, DEFAULT_PARALLEL_CALLS};
pub use crate::settings::{AgentSettings, RequestSettings, ToolUseSettings};
pub use compact::{CompactError, CompactedHistory};
pub use event::AgentEvent;
pub use run_result::{RunResult, ToolCallAttempts, ToolCallOutcome, ToolCallRecord};
pub use statistics::{CALL_ORIGINS, CallStatistics, Statistics};
pub use stream::AgentStream;
pub use undo::{UNDO_META_KEY, UndoRecord};

/// An agent: a model, the tools that the model may call, and their conversation. Clones are cheap
/// and share the conversation, the statistics, the rate limits and the cache.
///
/// A conversation has at most one run at a time: a further run ends at once with
/// [`RunOutcome::NotSent`] and changes nothing.
///
/// # Examples
///
/// ```
/// use std::sync::Arc;
///
/// use innkeeper_agent::agent::{Agent, AgentSettings};
/// use innkeeper_agent::provider::{Response, ScriptedProvider};
/// use innkeeper_host::{Config, Host};
///
/// # #[tokio::main]
/// # async fn main() -> Result<(), innkeeper_host::StartError> {
/// let host = Host::start(Config::default()).await?;
/// let model = ScriptedProvider::new([Ok(Response::from_text("Four."))]);
/// let agent = Agent::new(Arc::new(model), Arc::new(host), AgentSettings::default());
/// let result = agent.run("What is two plus two?").await;
/// assert_eq!(result.text, "Four.");
/// # Ok(()) }
/// ```
#[derive(Clone)]
pub struct Agent {
    provider: Arc<dyn LlmProvider>,
    /// All tools. The executor offers a search for the tools if there are many.
    runner: Arc<dyn ToolRunner>,
    executor: Executor,
    settings: Arc<AgentSettings>,
    rate_limit: Option<Arc<RateLimit>>,
    telemetry: Telemetry,
    timing: Timing,
    state: AgentState,
}

impl std::fmt::Debug for Agent {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Agent")
            .field("provider", &self.provider.name())
            .field("model", &self.provider.model())
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

type EventSink<'s> = dyn FnMut(AgentEvent) + Send + 's;

impl Agent {
    /// Creates an agent over this model and these tools, with an empty conversation.
    /// [`Self::with_conversation`] continues another conversation.
    pub fn new(
        provider: Arc<dyn LlmProvider>,
        runner: Arc<dyn ToolRunner>,
        settings: AgentSettings,
    ) -> Self {
        Self::with_timing(provider, runner, settings, Timing::default())
    }

    /// Creates an agent with a clock of its own.
    pub(crate) fn with_timing(
        provider: Arc<dyn LlmProvider>,
        runner: Arc<dyn ToolRunner>,
        settings: AgentSettings,
        timing: Timing,
    ) -> Self {
        let rate_limit = settings.limits.rate_limit_per_minute;
        let searchable = settings.searchable_runner(runner.clone(), &provider.capabilities());
        Self {
            provider,
            runner,
            executor: Executor::new(searchable, settings.executor_settings(), timing.clone()),
            settings: Arc::new(settings),
            rate_limit: rate_limit.map(|requests| Arc::new(RateLimit::per_minute(requests))),
            telemetry: Telemetry::default(),
            timing,
            state: AgentState::default(),
        }
    }

    /// Sets the approver, which decides about calls that need approval. Without an approver, those
    /// calls are denied. Earlier clones of the agent keep their approver.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.executor.set_approver(approver);
        self
    }

    /// Returns an agent with another model and the settings for this model, which shares the
    /// conversation, the statistics, the tools, the approver and the telemetry with this agent.
    #[must_use]
    pub fn with_provider(self, provider: Arc<dyn LlmProvider>, settings: AgentSettings) -> Self {
        let mut agent = Self::with_timing(provider, self.runner, settings, self.timing);
        agent.executor.take_approver(&self.executor);
        Self { telemetry: self.telemetry, state: self.state, ..agent }
    }

    /// Sets the OpenTelemetry providers. Each run gets a span `invoke_agent`, with a span `chat` for
    /// each request to the model; the spans contain the model, counts and kinds of errors, and no
    /// text. If the host of the tools has the same providers, the spans of its calls are children of
    /// the run. Earlier clones of the agent keep their providers. Default: no spans.
    #[must_use]
    pub fn with_telemetry(mut self, telemetry: Telemetry) -> Self {
        self.telemetry = telemetry;
        self
    }

    /// Sets the conversation that the agent continues, such as a stored conversation. Each pending
    /// call gets an error result, because nothing shows whether the call completed. Earlier clones of
    /// the agent keep their conversation, and from now on count their own statistics.
    ///
    /// # Examples
    ///
    /// ```
    /// use innkeeper_agent::agent::Agent;
    /// use innkeeper_agent::conversation::Conversation;
    ///
    /// fn continue_stored(agent: Agent, stored: &str) -> Result<Agent, serde_json::Error> {
    ///     let conversation: Conversation = serde_json::from_str(stored)?;
    ///     Ok(agent.with_conversation(conversation))
    /// }
    /// ```
    #[must_use]
    pub fn with_conversation(mut self, mut conversation: Conversation) -> Self {
        conversation.fail_pending(INTERRUPTED_MESSAGE);
        self.state = self.state.with_conversation(conversation);
        self
    }

    /// Returns the conversation. During a run, the conversation is the one before the run. The copy
    /// shares the contents of the messages.
    pub fn conversation(&self) -> Conversation {
        self.state.conversation()
    }

    /// Returns the name that the provider uses for the model.
    pub fn model(&self) -> &str {
        self.provider.model()
    }

    /// Returns the number of tokens that a request with its response may have: the context window of
    /// the model, or less if [`RequestSettings::history_budget`] limits the history. `None` if neither is
    /// known. The oldest messages are left out of a longer request.
    pub fn context_tokens(&self) -> Option<u32> {
        let window = self.provider.capabilities().tokens.context;
        let (_, limited) = self.settings.history_and_window(window);
        limited.into_iter().chain(window).min()
    }

    /// Returns the statistics of tool calls over all runs of this agent and its clones.
    pub fn statistics(&self) -> Statistics {
        self.state.statistics()
    }

    /// Removes the last user message and everything after it from the conversation, and returns the
    /// message; `None` without a user message, and during a run. What the tools did stays:
    /// [`Agent::undo`] undoes calls.
    pub fn remove_last_exchange(&self) -> Option<Content> {
        self.state.remove_last_exchange()
    }

    /// Clears the conversation. A run in progress continues, and its messages are lost.
    pub fn clear(&self) {
        self.state.clear();
    }

    /// Sends a user message and drives the run to the model's last response.
    ///
    /// The run ends in bounded time: each response has a timeout
    /// ([`RunLimits`](crate::run::RunLimits)), each call has the timeout of its [`ToolRunner`], and
    /// their numbers are limited too. Only an [`Approver`] has no time limit.
    /// Dropping the future cancels pending requests and calls; the conversation then contains an
    /// error result for each interrupted call.
    ///
    /// A failed run is a result: [`RunResult::outcome`] has the reason.
    ///
    /// # Examples
    ///
    /// A message may contain images and other media:
    ///
    /// ```no_run
    /// use innkeeper_agent::agent::Agent;
    /// use innkeeper_agent::content::{ContentBlock, MediaContent};
    ///
    /// # async fn example(agent: &Agent, png_in_base64: &str) {
    /// let mime_type = Some("image/png".to_owned());
    /// let image = ContentBlock::Image(MediaContent { mime_type, data: png_in_base64.into() });
    /// let result = agent.run(vec!["What is this?".into(), image]).await;
    /// # }
    /// ```
    pub async fn run(&self, message: impl Into<Content>) -> RunResult {
        self.run_loop(message.into(), false, pending().boxed(), &mut |_| {}).await
    }

    /// Works like [`Agent::run`], and passes each event to `sink` while the run goes on. `sink`
    /// must not block. Dropping the future cancels the run, as for [`Agent::run`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use innkeeper_agent::agent::{Agent, AgentEvent};
    ///
    /// # async fn example(agent: &Agent) {
    /// let show = |event| {
    ///     if let AgentEvent::Text(text) = event {
    ///         print!("{text}");
    ///     }
    /// };
    /// let result = agent.run_streaming("Summarize a.txt.", show).await;
    /// println!("\n{} tool calls", result.tool_calls.len());
    /// # }
    /// ```
    pub async fn run_streaming(
        &self,
        message: impl Into<Content>,
        mut sink: impl FnMut(AgentEvent) + Send,
    ) -> RunResult {
        self.run_loop(message.into(), true, pending().boxed(), &mut sink).await
    }

    /// Works like [`Agent::run_streaming`], and interrupts the run when `stop` completes. Pending
    /// requests and calls are then cancelled as if the future were dropped, and the result has what
    /// happened until then, with [`RunOutcome::Interrupted`].
    pub async fn run_streaming_until(
        &self,
        message: impl Into<Content>,
        stop: impl Future<Output = ()> + Send,
        mut sink: impl FnMut(AgentEvent) + Send,
    ) -> RunResult {
        self.run_loop(message.into(), true, stop.boxed(), &mut sink).await
    }

    async fn run_loop(
        &self,
        message: Content,
        streaming: bool,
        stop: BoxFuture<'_, ()>,
        sink: &mut EventSink<'_>,
    ) -> RunResult {
        let span = ActiveSpan::start_run(&self.telemetry, &*self.provider);
        let result = span.enter(self.drive_run(message, streaming, stop, sink)).await;
        span.end_run(&result);
        result
    }

    async fn drive_run(
        &self,
        message: Content,
        streaming: bool,
        stop: BoxFuture<'_, ()>,
        sink: &mut EventSink<'_>,
    ) -> RunResult {
        let begun = self.timing.now();
        let not_sent = |reason| RunResult::not_sent(reason, self.timing.elapsed(begun));
        let snapshot = self.executor.tool_snapshot();
        let config = Arc::new(self.run_config(&snapshot));
        let Some(mut active) = self.state.begin_run(config) else {
            return not_sent("another run of the agent is in progress".to_owned());
        };
        let mut driver = RunDriver {
            client: self.model_client(streaming),
            dispatcher: ToolDispatcher {
                executor: &self.executor,
                timing: &self.timing,
                snapshot,
                shows_progress: streaming,
                records: Vec::new(),
                current: ResponseCalls::default(),
            },
            timing: &self.timing,
            streaming,
        };
        let driven = {
            let driving = driver.execute(&mut active.run, message, sink);
            match select(pin!(driving), stop).await {
                Either::Left((driven, _)) => Some(driven),
                Either::Right(((), _)) => None,
            }
        };
        let outcome = match driven {
            Some(Ok(outcome)) => outcome,
            Some(Err(error)) => return not_sent(error.to_string()),
            None => {
                driver.dispatcher.interrupt(&mut active.run);
                RunOutcome::Interrupted
            }
        };
        let is_interrupted = outcome == RunOutcome::Interrupted;
        let records = driver.dispatcher.records;
        let result = RunResult::new(outcome, &active.run, records, self.timing.elapsed(begun));
        if !is_interrupted {
            active.finish(&result);
        }
        result
    }

    fn model_client(&self, streaming: bool) -> ModelClient<'_> {
        ModelClient {
            provider: &*self.provider,
            settings: &self.settings,
            rate_limit: self.rate_limit.as_deref(),
            telemetry: &self.telemetry,
            timing: &self.timing,
            streaming,
        }
    }

    fn run_config(&self, snapshot: &ToolSnapshot) -> RunConfig {
        let settings = &self.settings;
        let template = settings.tool_use.template.clone();
        let capabilities = self.provider.capabilities();
        let (history_budget, context_tokens) =
            settings.history_and_window(capabilities.tokens.context);
        RunConfig {
            settings: settings.clone(),
            tools: snapshot.tools.clone(),
            template: template.unwrap_or_else(|| Template::for_model(self.provider.model())),
            history_budget,
            context_tokens,
            max_tokens: settings.response_tokens(capabilities.tokens.context),
            capabilities,
            plain_tools: false,
        }
    }
}

#[cfg(test)]
mod tests;
