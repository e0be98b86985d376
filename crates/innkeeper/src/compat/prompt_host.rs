//! `McpHost`, its builder and its configuration, by [`innkeeper_agent::agent::Agent`].

use std::sync::Arc;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use innkeeper_agent::agent::{Agent, Happened, Settings, Statistics};
use innkeeper_agent::conversation::Budget;
use innkeeper_agent::provider::{LlmError, LlmProvider};
use innkeeper_agent::safety::{PatternError, Patterns};
use innkeeper_agent::tools::ToolRunner;
use innkeeper_agent::turn::{Ended, Limits, ToolCalling};
use innkeeper_toolcall::{Family, Format};
use serde_json::Value;
use tokio::sync::Mutex;

use super::client::McpClient;
use super::template::PromptTemplate;

/// How random the first attempt is.
const TEMPERATURE: f64 = 0.7;

/// How a [`McpHost`] works; [`Settings`] has more.
#[derive(Clone, Debug, PartialEq)]
pub struct McpHostConfig {
    /// How often the model is told what was wrong with a call. Default: 3.
    pub max_retries: u32,
    /// The pause before the first of these in milliseconds; each further one is twice as long.
    /// Default: 1,000.
    pub retry_delay_ms: u64,
    /// By how much less random each further attempt is, from 0.7. Default: 0.1.
    pub temperature_reduction: f32,
    /// What the model may do.
    pub safety_constraints: SafetyConfig,
}

/// What the model may do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SafetyConfig {
    /// The most tokens of one answer. Default: 4,096.
    pub max_tokens_per_request: usize,
    /// The most calls of one answer; if it has more, none is run. Default: 5.
    pub max_tools_per_request: usize,
    /// How many requests may be sent in any 60 seconds; one more fails. Default: 30.
    pub rate_limit_per_minute: u32,
    /// Tools that the model does not see and cannot call: see [`Patterns`]. Default: none.
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

/// Why there is no host, or no answer.
#[derive(Debug, thiserror::Error)]
pub enum McpHostError {
    /// It was built without a model.
    #[error("there is no model: call `with_llm_provider` before `build`")]
    NoProvider,
    /// It was built without tools.
    #[error("there are no tools: call `with_mcp_client` before `build`")]
    NoClient,
    /// The client is behind a lock that is taken.
    #[error("the client is in use: build the host while nobody holds its lock")]
    ClientInUse,
    /// A pattern in `blocked_tool_patterns` is none.
    #[error("`blocked_tool_patterns` cannot be used")]
    Pattern(#[from] PatternError),
    /// The model gave no answer.
    #[error("the model gave no answer")]
    Llm(#[from] LlmError),
    /// The model did not manage to write a call.
    #[error("no valid tool call after {} attempts: {}", .problems.len(), .problems.join("; "))]
    RetriesExhausted {
        /// What was wrong with each attempt.
        problems: Vec<String>,
    },
    /// It still called tools when no more rounds were left.
    #[error("the model still called tools after {rounds} rounds")]
    OutOfRounds {
        /// How many there were.
        rounds: u32,
    },
    /// Its answer was cut at the greatest length.
    #[error(
        "the answer was cut at its greatest length: raise `max_tokens_per_request`, or shorten what is asked"
    )]
    Cut {
        /// What there is of it.
        text: String,
    },
    /// The model declined.
    #[error("the model declined to answer")]
    Refused {
        /// Its words.
        text: String,
    },
    /// What it would be asked cannot be put together.
    #[error("the model cannot be asked: {0}")]
    Unasked(String),
}

/// Where tools come from: an [`McpClient`], alone or behind a lock, or whatever runs tools.
#[derive(Clone)]
pub struct ToolSource(Source);

#[derive(Clone)]
enum Source {
    Runner(Arc<dyn ToolRunner>),
    /// Whose lock is taken once, when the host is built.
    Locked(Arc<Mutex<McpClient>>),
}

impl std::fmt::Debug for ToolSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ToolSource").finish_non_exhaustive()
    }
}

impl From<Arc<McpClient>> for ToolSource {
    fn from(client: Arc<McpClient>) -> Self {
        Self(Source::Runner(Arc::new(client.server().clone())))
    }
}

impl From<Arc<Mutex<McpClient>>> for ToolSource {
    fn from(client: Arc<Mutex<McpClient>>) -> Self {
        Self(Source::Locked(client))
    }
}

impl From<Arc<dyn ToolRunner>> for ToolSource {
    fn from(runner: Arc<dyn ToolRunner>) -> Self {
        Self(Source::Runner(runner))
    }
}

impl From<innkeeper_host::Host> for ToolSource {
    fn from(host: innkeeper_host::Host) -> Self {
        Self(Source::Runner(Arc::new(host)))
    }
}

/// Makes a [`McpHost`].
#[derive(Default)]
pub struct McpHostBuilder {
    provider: Option<Box<dyn LlmProvider>>,
    source: Option<ToolSource>,
    config: McpHostConfig,
    template: Option<PromptTemplate>,
    system: String,
    context_tokens: Option<usize>,
    waits: bool,
}

impl std::fmt::Debug for McpHostBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("McpHostBuilder").field("config", &self.config).finish_non_exhaustive()
    }
}

impl McpHostBuilder {
    /// The model.
    #[must_use]
    pub fn with_llm_provider(mut self, provider: Box<dyn LlmProvider>) -> Self {
        self.provider = Some(provider);
        self
    }

    /// The tools.
    #[must_use]
    pub fn with_mcp_client(mut self, client: impl Into<ToolSource>) -> Self {
        self.source = Some(client.into());
        self
    }

    /// How it works.
    #[must_use]
    pub fn with_config(mut self, config: McpHostConfig) -> Self {
        self.config = config;
        self
    }

    /// How the model is told of tools. Default: as is best for its family.
    #[must_use]
    pub fn with_prompt_template(mut self, template: PromptTemplate) -> Self {
        self.template = Some(template);
        self
    }

    /// What the model is told before all else. Default: nothing.
    #[must_use]
    pub fn with_system_prompt(mut self, system: impl Into<String>) -> Self {
        self.system = system.into();
        self
    }

    /// How much of the conversation goes along with a request, in estimated tokens. Default: 8,192.
    #[must_use]
    pub fn with_context_tokens(mut self, tokens: usize) -> Self {
        self.context_tokens = Some(tokens);
        self
    }

    /// Requests beyond the limit a minute wait instead of failing.
    #[must_use]
    pub fn wait_for_rate_limit(mut self) -> Self {
        self.waits = true;
        self
    }

    /// The host.
    ///
    /// # Errors
    ///
    /// Without a model or tools, and with a pattern that is none.
    pub fn build(self) -> Result<McpHost, McpHostError> {
        let provider: Arc<dyn LlmProvider> = self.provider.ok_or(McpHostError::NoProvider)?.into();
        let runner = match self.source.ok_or(McpHostError::NoClient)?.0 {
            Source::Runner(runner) => runner,
            Source::Locked(client) => {
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
        let family = self
            .template
            .as_ref()
            .map_or_else(|| Family::of(provider.model()), |template| template.layout().family());
        let native = provider.supports_tools() && family == Family::Llama31;
        let settings = Settings {
            system: self.system,
            calling: if native { ToolCalling::Auto } else { ToolCalling::Prompt },
            format: self.template.as_ref().map_or(Format::Detect, PromptTemplate::format),
            template: self.template.map(PromptTemplate::into_layout),
            limits: Limits {
                max_calls: safety_constraints.max_tools_per_request,
                // One answer may use up its retries, and the provider may fail beside.
                retry_budget: Limits::default().retry_budget.max(max_retries.saturating_mul(2)),
                ..Limits::default()
            },
            budget: Some(
                self.context_tokens.map_or_else(Budget::default, |tokens| Budget { tokens }),
            ),
            max_tokens: u32::try_from(safety_constraints.max_tokens_per_request)
                .unwrap_or(u32::MAX),
            temperature: Some(TEMPERATURE),
            temperature_reduction: temperature_reduction.into(),
            max_retries,
            retry_delay: Duration::from_millis(retry_delay_ms),
            rate_limit_per_minute: Some(safety_constraints.rate_limit_per_minute),
            wait_for_rate_limit: self.waits,
            blocked: Patterns::new(&safety_constraints.blocked_tool_patterns)?,
            ..Settings::default()
        };
        Ok(McpHost(Agent::new(provider, runner, settings)))
    }
}

/// A model, tools that it may call, and the conversation with it: an [`Agent`] that tells the model of
/// tools in its prompt, unless it is one of Llama 3.1 that takes them.
#[derive(Debug)]
pub struct McpHost(Agent);

impl McpHost {
    /// Makes one.
    pub fn builder() -> McpHostBuilder {
        McpHostBuilder::default()
    }

    /// Takes a message to the model's last answer: its text.
    ///
    /// # Errors
    ///
    /// See [`McpHostError`]. The conversation can go on after each of them.
    pub async fn process_message(&mut self, message: &str) -> Result<String, McpHostError> {
        let report = self.0.run(message).await;
        ended(report.ended, report.text, report.tally.iterations)
    }

    /// The text while it is written. What the model wrote in attempts that were none is in it, which
    /// the text of [`Self::process_message`] has not. What was wrong is the last item.
    pub fn process_message_stream<'h>(
        &'h mut self,
        message: &'h str,
    ) -> impl Stream<Item = Result<String, McpHostError>> + 'h {
        self.0.stream(message).filter_map(async |happened| match happened {
            Happened::Text(text) => Some(Ok(text)),
            Happened::Ended(report) => {
                ended(report.ended, String::new(), report.tally.iterations).err().map(Err)
            }
            Happened::Reasoning(_)
            | Happened::CallStart { .. }
            | Happened::Running { .. }
            | Happened::Ran(_)
            | Happened::Again { .. } => None,
        })
    }

    /// How well the model called tools so far.
    pub fn retry_statistics(&self) -> &Statistics {
        self.0.statistics()
    }

    /// The same as a JSON object with the model's name, and with the failures of its provider by class.
    pub fn get_metrics(&self) -> Value {
        let mut metrics = self.0.statistics().to_json();
        metrics["model"] = self.0.model().into();
        metrics
    }

    /// Forgets what was said.
    pub fn clear(&mut self) {
        self.0.clear();
    }

    /// What is behind it.
    pub fn agent(&mut self) -> &mut Agent {
        &mut self.0
    }
}

fn ended(ended: Ended, text: String, rounds: u32) -> Result<String, McpHostError> {
    match ended {
        Ended::Answered => Ok(text),
        Ended::Cut => Err(McpHostError::Cut { text }),
        Ended::Refused => Err(McpHostError::Refused { text }),
        Ended::OutOfRounds => Err(McpHostError::OutOfRounds { rounds }),
        Ended::NoCall { attempts } => Err(McpHostError::RetriesExhausted {
            problems: attempts.into_iter().map(|attempt| attempt.problem).collect(),
        }),
        Ended::Failed(error) => Err(McpHostError::Llm(error)),
        Ended::Unasked { reason } => Err(McpHostError::Unasked(reason)),
    }
}
