//! Runs a model with tools and keeps the conversation.
//!
//! [`Agent::run`] sends one user message to the model, runs the tools that the model calls, and
//! returns their results to the model until the model gives its last response. The rules are in
//! [`run`](crate::run); this module performs the I/O.

mod event;
mod run_result;
mod settings;
mod statistics;
mod stream;
mod tool_dispatcher;

use std::sync::Arc;

use futures_util::StreamExt as _;
use innkeeper_toolcall::prompt::Template;

use crate::conversation::Conversation;
use crate::executor::{Executor, ToolSnapshot};
use crate::provider::{LlmError, LlmErrorKind, LlmProvider, Request, Response, StreamChunk};
use crate::run::{Effect, Run, RunConfig, RunOutcome};
use crate::safety::{Approver, RateLimit};
use crate::timing::Timing;
use crate::tools::ToolRunner;

pub use crate::executor::{CacheSettings, DEFAULT_PARALLEL_CALLS};
pub use event::AgentEventRef;
pub use run_result::{RunResult, ToolCallRecord};
pub use settings::AgentSettings;
pub use statistics::{CALL_ORIGINS, Statistics};
pub use stream::{AgentEvent, AgentStream};

/// An agent: a model, the tools that the model may call, and their conversation.
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
/// let mut agent = Agent::new(Arc::new(model), Arc::new(host), AgentSettings::default());
/// let result = agent.run("What is two plus two?").await;
/// assert_eq!(result.text, "Four.");
/// # Ok(()) }
/// ```
pub struct Agent {
    provider: Arc<dyn LlmProvider>,
    executor: Executor,
    settings: AgentSettings,
    rate_limit: Option<RateLimit>,
    timing: Timing,
    conversation: Conversation,
    statistics: Statistics,
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

type EventSink<'s> = dyn FnMut(AgentEventRef<'_>) + Send + 's;

impl Agent {
    /// Creates an agent over this model and these tools, with an empty conversation.
    pub fn new(
        provider: Arc<dyn LlmProvider>,
        runner: Arc<dyn ToolRunner>,
        settings: AgentSettings,
    ) -> Self {
        Self::with_timing(provider, runner, settings, Timing::default())
    }

    fn with_timing(
        provider: Arc<dyn LlmProvider>,
        runner: Arc<dyn ToolRunner>,
        settings: AgentSettings,
        timing: Timing,
    ) -> Self {
        let rate_limit = settings.rate_limit_per_minute.map(RateLimit::per_minute);
        Self {
            provider,
            executor: Executor::new(runner, settings.executor_settings(), timing.clone()),
            settings,
            rate_limit,
            timing,
            conversation: Conversation::new(),
            statistics: Statistics::default(),
        }
    }

    /// Sets the approver, which decides about calls that need approval. Without an approver, those
    /// calls are denied.
    #[must_use]
    pub fn with_approver(mut self, approver: Arc<dyn Approver>) -> Self {
        self.executor.set_approver(approver);
        self
    }

    /// Returns the conversation so far.
    pub fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    /// Returns the name that the provider uses for the model.
    pub fn model(&self) -> &str {
        self.provider.model()
    }

    /// Returns the statistics of tool calls over all runs of this agent.
    pub fn statistics(&self) -> &Statistics {
        &self.statistics
    }

    /// Clears the conversation.
    pub fn clear(&mut self) {
        self.conversation = Conversation::new();
    }

    /// Sends a user message and drives the run to the model's last response.
    ///
    /// The run ends in bounded time: each response and each call has a timeout, and their numbers
    /// are limited. Dropping the future cancels pending requests and calls; the conversation then
    /// contains an error result for each interrupted call.
    pub async fn run(&mut self, message: &str) -> RunResult {
        self.run_loop(message, false, &mut |_| {}).await
    }

    /// Works like [`Agent::run`], and passes each event to `sink` while the run goes on. `sink`
    /// must not block. Dropping the future cancels the run, as for [`Agent::run`].
    ///
    /// # Examples
    ///
    /// ```no_run
    /// use innkeeper_agent::agent::{Agent, AgentEventRef};
    ///
    /// # async fn example(agent: &mut Agent) {
    /// let show = |event: AgentEventRef<'_>| {
    ///     if let AgentEventRef::Text(text) = event {
    ///         print!("{text}");
    ///     }
    /// };
    /// let result = agent.run_streaming("Summarize a.txt.", show).await;
    /// println!("\n{} tool calls", result.tool_calls.len());
    /// # }
    /// ```
    pub async fn run_streaming(
        &mut self,
        message: &str,
        mut sink: impl FnMut(AgentEventRef<'_>) + Send,
    ) -> RunResult {
        self.run_loop(message, true, &mut sink).await
    }

    async fn run_loop(
        &mut self,
        message: &str,
        streaming: bool,
        sink: &mut EventSink<'_>,
    ) -> RunResult {
        let begun = self.timing.now();
        let snapshot = self.executor.tool_snapshot();
        let config = Arc::new(self.run_config(&snapshot));
        let asker = ModelClient {
            provider: &*self.provider,
            settings: &self.settings,
            rate_limit: self.rate_limit.as_ref(),
            timing: &self.timing,
            streaming,
        };
        let mut records = Vec::new();
        let (mut run, mut effect) = match Run::start(config, &mut self.conversation, message) {
            Ok(started) => started,
            Err(error) => {
                let reason = error.to_string();
                return RunResult::not_sent(reason, self.timing.elapsed(begun));
            }
        };
        let ended = loop {
            effect = match effect {
                Effect::SendRequest(request) => {
                    match asker.send_request(*request, &mut run, sink).await {
                        Ok(response) => run.on_response(&response, self.timing.jitter()),
                        Err(error) => run.on_error(error, self.timing.jitter()),
                    }
                }
                Effect::Sleep(delay) => {
                    sink(AgentEventRef::Retrying { delay });
                    self.timing.sleep(delay).await;
                    run.on_delay()
                }
                Effect::CallTools(planned) => {
                    let executor = &self.executor;
                    let (run, records) = (&mut run, &mut records);
                    tool_dispatcher::dispatch(executor, &snapshot, planned, run, records, sink)
                        .await
                }
                // `dispatch` reports every call of an effect before it returns, so no call is
                // pending here.
                Effect::AwaitTools => {
                    break RunOutcome::NotSent {
                        reason: "no result for a pending call".to_owned(),
                    };
                }
                Effect::Finish(ended) => break ended,
            };
        };
        let report = RunResult::new(ended, &run, records, self.timing.elapsed(begun));
        drop(run);
        self.statistics.count(&report);
        report
    }

    fn run_config(&self, snapshot: &ToolSnapshot) -> RunConfig {
        let settings = &self.settings;
        let template = settings.template.clone();
        let capabilities = self.provider.capabilities();
        let (history_budget, context_tokens) =
            settings.history_and_window(capabilities.context_tokens);
        RunConfig {
            system: settings.system.clone(),
            tools: snapshot.available.clone(),
            known_tools: snapshot.known.clone(),
            tool_validator: snapshot.tool_validator.clone(),
            template: template.unwrap_or_else(|| Template::for_model(self.provider.model())),
            format: settings.format,
            tool_calling: settings.tool_calling,
            history_budget,
            context_tokens,
            capabilities,
            max_tokens: settings.max_tokens,
            prompt_caching: settings.prompt_caching,
            temperature: settings.temperature,
            temperature_reduction: settings.temperature_reduction,
            max_retries: settings.max_retries,
            retry_delay: settings.retry_delay,
            limits: settings.limits.clone(),
            blocklist: settings.blocklist.clone(),
        }
    }
}

/// Sends requests to the model.
struct ModelClient<'a> {
    provider: &'a dyn LlmProvider,
    settings: &'a AgentSettings,
    rate_limit: Option<&'a RateLimit>,
    timing: &'a Timing,
    streaming: bool,
}

impl ModelClient<'_> {
    async fn send_request(
        &self,
        request: Request,
        run: &mut Run<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<Response, LlmError> {
        self.acquire_rate_limit().await?;
        let limit = self.settings.response_timeout;
        let response = async {
            if self.streaming {
                self.stream_response(request, run, sink).await
            } else {
                self.provider.generate(request).await
            }
        };
        let timeout_error = || {
            let message = format!("no complete response within {} s", limit.as_secs());
            let model = self.provider.model().into();
            LlmError {
                model,
                ..LlmError::new(self.provider.name(), LlmErrorKind::TimedOut, message)
            }
        };
        self.timing.timeout(limit, response).await.unwrap_or_else(|| Err(timeout_error()))
    }

    /// Waits until the rate limit allows a request, or fails if it does not.
    async fn acquire_rate_limit(&self) -> Result<(), LlmError> {
        let Some(rate) = self.rate_limit else { return Ok(()) };
        while let Err(after) = rate.try_acquire_at(self.timing.now()) {
            if !self.settings.wait_for_rate_limit || !rate.allows_any() {
                let message = format!(
                    "rate limit of {} requests per minute reached; next request in {:.1} s",
                    self.settings.rate_limit_per_minute.unwrap_or_default(),
                    after.as_secs_f64()
                );
                let kind = LlmErrorKind::LocalRateLimit { after };
                return Err(LlmError::new(self.provider.name(), kind, message));
            }
            self.timing.sleep(after).await;
        }
        Ok(())
    }

    async fn stream_response(
        &self,
        request: Request,
        run: &mut Run<'_>,
        sink: &mut EventSink<'_>,
    ) -> Result<Response, LlmError> {
        let mut chunks = self.provider.stream(request);
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk?;
            run.on_chunk(&chunk, &mut |event| sink(event.into()));
            match chunk {
                StreamChunk::Done(response) => return Ok(*response),
                StreamChunk::Text(_)
                | StreamChunk::Reasoning(_)
                | StreamChunk::ToolCallStart { .. }
                | StreamChunk::ArgumentsDelta { .. } => {}
            }
        }
        let message = "the response is incomplete";
        Err(LlmError::new(self.provider.name(), LlmErrorKind::Connection, message))
    }
}

#[cfg(test)]
mod tests;
