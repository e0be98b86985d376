//! `McpHost`, its builder and its configuration, based on [`innkeeper_agent::agent::Agent`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use innkeeper_agent::agent::{
    Agent, AgentEvent, AgentSettings, CacheSettings, CallSettings, RequestSettings, Statistics,
    ToolUseSettings,
};
use innkeeper_agent::conversation::HistoryBudget;
use innkeeper_agent::provider::{LlmError, LlmProvider};
use innkeeper_agent::run::{RunLimits, RunOutcome, ToolCalling};
use innkeeper_agent::safety::{PatternError, ToolBlocklist};
use innkeeper_agent::tool_search::ToolSearchSettings;
use innkeeper_agent::tools::ToolRunner;
use innkeeper_toolcall::{Format, ModelFamily};
use serde_json::Value;
use tokio::sync::Mutex;

use super::client::McpClient;
use super::template::PromptTemplate;

/// Temperature of the first attempt.
const INITIAL_TEMPERATURE: f64 = 0.7;

/// Configuration of an [`McpHost`]. [`AgentSettings`] has more settings.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHostConfig {
    /// Maximum number of corrections for invalid calls in one response. Default: 3.
    pub max_retries: u32,
    /// Delay before the first correction in milliseconds; the delay doubles for each further
    /// correction. Default: 1,000.
    pub retry_delay_ms: u64,
    /// Reduction of the temperature per correction, from 0.7. Default: 0.1.
    pub temperature_reduction: f32,
    /// Limits of requests and calls.
    pub safety_constraints: SafetyConfig,
}

/// Limits of requests and calls.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetyConfig {
    /// Maximum number of tokens of one response. Default: 4,096.
    pub max_tokens_per_request: usize,
    /// Maximum number of calls in one response; if a response has more, none is executed. Default:
    /// 5.
    pub max_tools_per_request: usize,
    /// Maximum number of requests in any 60 seconds; further requests fail. Default: 30.
    pub rate_limit_per_minute: u32,
    /// Patterns of tools that are hidden from the model and blocked; see [`ToolBlocklist`].
    /// Default: none.
    pub blocked_tool_patterns: Vec<String>,
}

impl Default for McpHostConfig {
    fn default() -> Self {
        Self {
            max_retries: 3,
            retry_delay_ms: 1000,
            temperature_reduction: 0.1,
            safety_constraints: SafetyConfig::default(),
        }
    }
}

impl Default for SafetyConfig {
    fn default() -> Self {
        Self {
            max_tokens_per_request: 4096,
            max_tools_per_request: 5,
            rate_limit_per_minute: 30,
            blocked_tool_patterns: Vec::new(),
        }
    }
}

/// An error of building an [`McpHost`] or of processing a message.
#[derive(Debug, thiserror::Error)]
pub enum McpHostError {
    /// The builder has no model.
    #[error("no model provider: call `with_llm_provider` before `build`")]
    NoProvider,
    /// The builder has no tools.
    #[error("no tool source: call `with_mcp_client` before `build`")]
    NoClient,
    /// Another task holds the lock of the client.
    #[error("client is locked: release the lock before `build`")]
    ClientInUse,
    /// A pattern in `blocked_tool_patterns` is invalid.
    #[error("invalid pattern in `blocked_tool_patterns`")]
    Pattern(#[from] PatternError),
    /// The request to the model failed.
    #[error("request to the model failed")]
    Llm(#[from] LlmError),
    /// The model wrote no valid call in any attempt.
    #[error("no valid tool call after {} attempts: {}", .problems.len(), .problems.join("; "))]
    RetriesExhausted {
        /// Validation error of each attempt.
        problems: Vec<String>,
    },
    /// The model still called tools in the last permitted response.
    #[error("tool call limit reached after {rounds} rounds")]
    OutOfRounds {
        /// Number of rounds.
        rounds: u32,
    },
    /// The model repeated a call that was refused because its result did not change.
    #[error("the model repeated a call whose result did not change")]
    LoopDetected,
    /// A tool call failed, and the host does not continue after a failure.
    #[error("a tool call failed")]
    CallFailed,
    /// The response reached the maximum length.
    #[error("response truncated: raise `max_tokens_per_request` or shorten the message")]
    Truncated {
        /// The truncated text.
        text: String,
    },
    /// The model refused to respond.
    #[error("the model refused to respond")]
    Refused {
        /// Text of the refusal.
        text: String,
    },
    /// The request could not be built.
    #[error("cannot build the request: {0}")]
    NotSent(String),
}

/// Source of the tools: an [`McpClient`], with or without a lock, a host, or any [`ToolRunner`].
#[derive(Clone)]
pub struct ToolSource(ToolSourceKind);

#[derive(Clone)]
enum ToolSourceKind {
    Runner(Arc<dyn ToolRunner>),
    /// [`McpHostBuilder::build`] takes the lock once.
    Locked(Arc<Mutex<McpClient>>),
}

impl std::fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSource").finish_non_exhaustive()
    }
}

impl From<Arc<McpClient>> for ToolSource {
    fn from(client: Arc<McpClient>) -> Self {
        Self(ToolSourceKind::Runner(Arc::new(client.server().clone())))
    }
}

impl From<Arc<Mutex<McpClient>>> for ToolSource {
    fn from(client: Arc<Mutex<McpClient>>) -> Self {
        Self(ToolSourceKind::Locked(client))
    }
}

impl From<Arc<dyn ToolRunner>> for ToolSource {
    fn from(runner: Arc<dyn ToolRunner>) -> Self {
        Self(ToolSourceKind::Runner(runner))
    }
}

impl From<innkeeper_host::Host> for ToolSource {
    fn from(host: innkeeper_host::Host) -> Self {
        Self(ToolSourceKind::Runner(Arc::new(host)))
    }
}

/// Builder of an [`McpHost`].
#[derive(Default)]
pub struct McpHostBuilder {
    provider: Option<Box<dyn LlmProvider>>,
    source: Option<ToolSource>,
    config: McpHostConfig,
    template: Option<PromptTemplate>,
    system: String,
    context_tokens: Option<usize>,
    wait_for_rate_limit: bool,
    call_cache: Option<CacheSettings>,
}

impl std::fmt::Debug for McpHostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpHostBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl McpHostBuilder {
    /// Sets the model.
    #[must_use]
    pub fn with_llm_provider(mut self, provider: Box<dyn LlmProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// Sets the source of the tools.
    #[must_use]
    pub fn with_mcp_client(mut self, client: impl Into<ToolSource>) -> Self {
        self.source = Some(client.into());
        self
    }

    /// Sets the configuration.
    #[must_use]
    pub fn with_config(mut self, config: McpHostConfig) -> Self {
        self.config = config;
        self
    }

    /// Sets how the prompt describes the tools. Default: the template of the model's family.
    #[must_use]
    pub fn with_prompt_template(mut self, template: PromptTemplate) -> Self {
        self.template = Some(template);
        self
    }

    /// Sets the system prompt. Default: empty.
    #[must_use]
    pub fn with_system_prompt(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// Sets the maximum size of the conversation in a request, in estimated tokens. Default: 8,192.
    #[must_use]
    pub fn with_context_tokens(mut self, tokens: usize) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Makes requests above the rate limit wait instead of fail.
    #[must_use]
    pub fn wait_for_rate_limit(mut self) -> Self {
        self.wait_for_rate_limit = true;
        self
    }

    /// Caches the results of identical calls of tools that are annotated as read-only or
    /// idempotent. Default: no cache.
    #[must_use]
    pub fn with_call_cache(mut self, cache: CacheSettings) -> Self {
        self.call_cache = Some(cache);
        self
    }

    /// Builds the host.
    ///
    /// # Errors
    ///
    /// Returns an error if the model or the tools are missing, if the client is locked, or if a
    /// pattern is invalid.
    pub fn build(self) -> Result<McpHost, McpHostError> {
        let provider: Arc<dyn LlmProvider> = self.provider.ok_or(McpHostError::NoProvider)?.into();
        let runner = match self.source.ok_or(McpHostError::NoClient)?.0 {
            ToolSourceKind::Runner(runner) => runner,
            ToolSourceKind::Locked(client) => {
                let client = client.try_lock().map_err(|_| McpHostError::ClientInUse)?;
                Arc::new(client.server().clone())
            }
        };
        let McpHostConfig {
            max_retries,
            retry_delay_ms,
            temperature_reduction,
            safety_constraints,
        } = self.config;
        let family = self.template.as_ref().map_or_else(
            || ModelFamily::for_model(provider.model()),
            |template| template.layout().family(),
        );
        let native = provider.supports_tools() && family == ModelFamily::Llama31;
        let max_tokens = safety_constraints.max_tokens_per_request;
        let settings = AgentSettings {
            system: self.system,
            limits: RunLimits {
                max_calls: safety_constraints.max_tools_per_request,
                // One response may use all of its corrections, and the provider may fail in
                // addition.
                retry_budget: RunLimits::default().retry_budget.max(max_retries.saturating_mul(2)),
                max_retries,
                retry_delay: Duration::from_millis(retry_delay_ms),
                rate_limit_per_minute: Some(safety_constraints.rate_limit_per_minute),
                wait_for_rate_limit: self.wait_for_rate_limit,
                ..RunLimits::default()
            },
            requests: RequestSettings {
                history_budget: Some(
                    self.context_tokens.map_or_else(HistoryBudget::default, |max_tokens| {
                        HistoryBudget { max_tokens }
                    }),
                ),
                max_tokens: u32::try_from(max_tokens).unwrap_or(u32::MAX),
                temperature: Some(INITIAL_TEMPERATURE),
                temperature_reduction: temperature_reduction.into(),
                summarize_history: false,
                ..RequestSettings::default()
            },
            tool_use: ToolUseSettings {
                tool_calling: if native { ToolCalling::Auto } else { ToolCalling::Prompt },
                format: self.template.as_ref().map_or(Format::Detect, PromptTemplate::format),
                template: self.template.map(PromptTemplate::into_layout),
                ..ToolUseSettings::default()
            },
            calls: CallSettings { cache: self.call_cache, ..CallSettings::default() },
            tool_search: ToolSearchSettings::disabled(),
            blocklist: ToolBlocklist::new(&safety_constraints.blocked_tool_patterns)?,
            ..AgentSettings::default()
        };
        Ok(McpHost(Agent::new(provider, runner, settings)))
    }
}

/// A model, its tools, and their conversation: an [`Agent`] that describes the tools in the prompt.
/// A model of the Llama 3.1 family whose provider supports native tools gets native tools.
#[derive(Debug)]
pub struct McpHost(Agent);

impl McpHost {
    /// Returns a builder without a model and without tools.
    pub fn builder() -> McpHostBuilder {
        McpHostBuilder::default()
    }

    /// Sends a user message and returns the text of the model's last response.
    ///
    /// # Errors
    ///
    /// See [`McpHostError`]. The conversation can continue after each of these errors.
    pub async fn process_message(&mut self, message: &str) -> Result<String, McpHostError> {
        let report = self.0.run(message).await;
        outcome_to_result(report.outcome, report.text, report.stats.iterations)
    }

    /// Sends a user message and returns the text as a stream. Unlike [`Self::process_message`], the
    /// stream also contains the text of rejected attempts. An error is the last item of the stream.
    pub fn process_message_stream(
        &mut self,
        message: &str,
    ) -> impl Stream<Item = Result<String, McpHostError>> + Send + use<> {
        self.0.stream(message).filter_map(async |happened| match happened {
            AgentEvent::Text(text) => Some(Ok(text)),
            AgentEvent::Finished(report) => {
                outcome_to_result(report.outcome, String::new(), report.stats.iterations)
                    .err()
                    .map(Err)
            }
            AgentEvent::Reasoning(_)
            | AgentEvent::ToolCallDetected { .. }
            | AgentEvent::ToolCallProgress { .. }
            | AgentEvent::ToolCallStarted { .. }
            | AgentEvent::ToolCallFinished(_)
            | AgentEvent::Planned(_)
            | AgentEvent::HistorySummaryStarted { .. }
            | AgentEvent::MessagesAdded(_)
            | AgentEvent::HistoryShortened { .. }
            | AgentEvent::ResponseFinished { .. }
            | AgentEvent::Warned(_)
            | AgentEvent::ToolsOmitted(_)
            | AgentEvent::Retrying { .. } => None,
        })
    }

    /// Returns the statistics of tool calls and corrections.
    pub fn retry_statistics(&self) -> Statistics {
        self.0.statistics()
    }

    /// Returns the statistics as a JSON object, with the model's name and the provider's errors by
    /// kind.
    pub fn get_metrics(&self) -> Value {
        let mut metrics = self.0.statistics().to_json();
        metrics["model"] = self.0.model().into();
        metrics
    }

    /// Clears the conversation.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// Returns the underlying agent.
    pub fn agent(&self) -> &Agent {
        &self.0
    }
}

fn outcome_to_result(
    ended: RunOutcome,
    text: String,
    iterations: u32,
) -> Result<String, McpHostError> {
    match ended {
        RunOutcome::Completed => Ok(text),
        RunOutcome::Truncated => Err(McpHostError::Truncated { text }),
        RunOutcome::Refused => Err(McpHostError::Refused { text }),
        RunOutcome::IterationLimit => Err(McpHostError::OutOfRounds { rounds: iterations }),
        RunOutcome::LoopDetected => Err(McpHostError::LoopDetected),
        RunOutcome::Interrupted => Err(McpHostError::NotSent("the run was interrupted".to_owned())),
        RunOutcome::CallFailed => Err(McpHostError::CallFailed),
        RunOutcome::NoValidCall { attempts } => Err(McpHostError::RetriesExhausted {
            problems: attempts.into_iter().map(|attempt| attempt.problem).collect(),
        }),
        RunOutcome::Failed(error) => Err(McpHostError::Llm(error)),
        RunOutcome::NotSent { reason } => Err(McpHostError::NotSent(reason)),
    }
}
