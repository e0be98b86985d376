//! One prompt, one result: starts the servers, runs the model, stops the servers.
//!
//! [`mcp_ghost`] never fails: the result names an unknown provider, a missing key, a wrong
//! configuration, and each server that does not start.

mod ghost_result;
mod namespace;
mod namespaced_agent;
mod seams;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, slice};

use innkeeper_host::config::{Secret, TransportConfig};
use innkeeper_host::{Config, Environment, Host, ServerState, Telemetry};
use serde_json::Value;

use crate::agent::{AgentEvent, AgentSettings};
use crate::content::Content;
use crate::provider::LlmProvider;
use crate::safety::Approver;
use crate::server_requests::{ServerRequestHandler, ServerRequestSettings};
use crate::timing::Timing;
use crate::tools::{ResourceTools, ToolRunner as _};
use crate::transport::{
    Endpoint, ModelLookupError, ModelRule, ModelSelector, ProviderId, choose_model, get_llm_client,
};

pub use ghost_result::GhostResult;
pub use namespace::Namespace;
pub use namespaced_agent::{AgentParts, NamespacedAgent};
pub(crate) use seams::{RunFacts, RunSeams};

/// The default namespace, with which the model sees the tools by their public names.
pub const DEFAULT_NAMESPACE: &str = "mcp_ghost";

/// Default of the time limit of a tool call.
const DEFAULT_CALL_TIMEOUT: Duration = Duration::from_secs(30);

/// Minimum number of consecutive timeouts after which a server is unavailable (C47): the model
/// recovers from a single timeout.
pub const UNAVAILABLE_AFTER_TIMEOUTS: u32 = 3;

/// The name of a configuration value in problems.
const SOURCE_NAME: &str = "server_config";

/// The file of the working directory that may contain API keys.
const DOTENV_FILE: &str = ".env";

/// The servers of a run.
///
/// `Debug` omits a configuration, because the variables and headers of servers are secrets.
#[derive(Clone, PartialEq)]
pub enum GhostServers {
    /// A configuration with `mcpServers` or `servers`.
    Config(Value),
    /// The path of a configuration file.
    File(PathBuf),
}

impl fmt::Debug for GhostServers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config(_) => f.debug_tuple("Config").finish_non_exhaustive(),
            Self::File(path) => f.debug_tuple("File").field(path).finish(),
        }
    }
}

/// The parameters of [`mcp_ghost`].
#[derive(Clone, Debug)]
pub struct GhostConfig {
    /// The servers. All are optional for the run, whatever their configuration says.
    pub servers: GhostServers,
    /// The provider with its model, address and API key. Default of the key: the provider's variable in
    /// `environment`, else in the file `.env` of its working directory. The run reads nothing else from
    /// `.env`.
    pub model: ModelSelector,
    /// The request of the user.
    pub user_prompt: String,
    /// A model of the application, in place of `model`. Its runs cannot be recorded. Default:
    /// none.
    pub own_model: Option<Arc<dyn LlmProvider>>,
    /// Rules that choose another provider and model for the prompt. Default: none.
    pub model_rules: Vec<ModelRule>,
    /// The prefix of the names that the model sees. Default: [`DEFAULT_NAMESPACE`], which adds no
    /// prefix.
    pub namespace: String,
    /// The settings of the agent, with the system prompt. The blocklist and the pinned tools have
    /// public names, without the namespace. [`CallSettings::timeout`] limits each call with its
    /// progress. Default: those of an agent, with 30 s for a call.
    ///
    /// [`CallSettings::timeout`]: crate::agent::CallSettings::timeout
    pub settings: AgentSettings,
    /// How requests of the servers are answered: sampling with the model of the run, elicitation
    /// with the user. Default: `None`, which declares neither to the servers.
    pub server_requests: Option<ServerRequestSettings>,
    /// Decides about calls that need approval, by public names. Without an approver, those calls are
    /// denied.
    pub approver: Option<Arc<dyn Approver>>,
    /// The OpenTelemetry providers for the spans of the run, its requests and its calls. Default: no
    /// spans.
    pub telemetry: Telemetry,
    /// The variables for keys, proxies and the configuration of servers.
    pub environment: Environment,
}

impl GhostConfig {
    /// Creates the parameters of a run with all defaults.
    pub fn new(
        servers: GhostServers,
        system_prompt: impl Into<String>,
        provider: impl Into<String>,
        user_prompt: impl Into<String>,
        environment: Environment,
    ) -> Self {
        let mut settings =
            AgentSettings { system: system_prompt.into(), ..AgentSettings::default() };
        settings.calls.timeout = Some(DEFAULT_CALL_TIMEOUT);
        Self {
            servers,
            model: ModelSelector { provider: provider.into(), ..ModelSelector::default() },
            user_prompt: user_prompt.into(),
            own_model: None,
            model_rules: Vec::new(),
            namespace: DEFAULT_NAMESPACE.to_owned(),
            settings,
            server_requests: None,
            approver: None,
            telemetry: Telemetry::default(),
            environment,
        }
    }

    /// Returns the model of the first rule that fits the prompt, or that of the parameters.
    pub(crate) fn chosen_model(&self) -> &ModelSelector {
        let prompt = Content::from(self.user_prompt.as_str());
        choose_model(&self.model_rules, &prompt).unwrap_or(&self.model)
    }

    /// Returns the environment of the provider: with the API keys of `.env`, and with no other
    /// variable of the file.
    fn provider_environment(&self) -> Environment {
        let environment = self.environment.clone();
        let Some(directory) = environment.current_dir() else { return environment };
        let file = directory.join(DOTENV_FILE);
        let names: Vec<&str> =
            ProviderId::ALL.iter().flat_map(|id| id.key_variables()).copied().collect();
        environment.with_dotenv_variables(&file, &names)
    }

    /// Returns the settings of the agent, in which the tools have the names that the model sees.
    pub(crate) fn agent_settings(&self) -> AgentSettings {
        let mut settings = self.settings.clone();
        for name in &mut settings.tool_search.pinned_tools {
            *name = namespace::display_name(&self.namespace, name);
        }
        settings
    }

    /// Reads the configuration of the servers, in which every server is optional and no progress
    /// extends a call.
    fn host_config(&self) -> Result<Config, innkeeper_host::ConfigError> {
        // The current directory may be a cloned repository, whose `.env` is not trusted.
        let env = &self.environment.clone().without_dotenv();
        let mut config = match &self.servers {
            GhostServers::Config(value) => {
                let here = env.current_dir().unwrap_or(Path::new("."));
                Config::from_value_partial(value, SOURCE_NAME, here, env)?
            }
            GhostServers::File(path) => Config::load_partial(slice::from_ref(path), env)?,
        };
        for server in config.servers.values_mut() {
            if let Some(timeout) = self.settings.calls.timeout {
                server.calls.max_total_timeout = timeout;
            }
            let timeouts = &mut server.calls.unavailable_after_timeouts;
            *timeouts = (*timeouts).max(UNAVAILABLE_AFTER_TIMEOUTS);
        }
        Ok(config.with_optional_servers())
    }
}

/// Starts the servers, lets the model use their tools until its last response, and stops the
/// servers. Every failure is part of the result.
///
/// The run ends in bounded time: the start and the stop have the limits of the configuration, each
/// response and each call that of [`GhostConfig::settings`]. Dropping the future cancels pending
/// requests and calls, and stops the servers.
///
/// # Examples
///
/// ```no_run
/// use innkeeper_agent::ghost::{GhostConfig, GhostServers, mcp_ghost};
/// use innkeeper_host::Environment;
/// use serde_json::json;
///
/// # async fn example() {
/// let servers = json!({"mcpServers": {"sqlite": {"command": "uvx", "args": ["mcp-server-sqlite"]}}});
/// let config = GhostConfig::new(
///     GhostServers::Config(servers),
///     "Use the database.",
///     "anthropic",
///     "Which tables are there?",
///     Environment::from_process(),
/// );
/// let report = mcp_ghost(config).await;
/// println!("{}", serde_json::to_string(&report).unwrap_or_default());
/// # }
/// ```
pub async fn mcp_ghost(config: GhostConfig) -> GhostResult {
    run(config, None).await
}

/// Works like [`mcp_ghost`], and passes each event of the run to `sink` while the run goes on, with
/// the tools under the names that the model sees. `sink` must not block. The responses of the model
/// are streamed.
pub async fn mcp_ghost_streaming(
    config: GhostConfig,
    mut sink: impl FnMut(AgentEvent) + Send,
) -> GhostResult {
    run(config, Some(&mut sink)).await
}

pub(crate) type EventSink<'s> = dyn FnMut(AgentEvent) + Send + 's;

async fn run(config: GhostConfig, sink: Option<&mut EventSink<'_>>) -> GhostResult {
    let timing = Timing::default();
    let begun = timing.now();
    let (mut result, _) = run_with_servers(config, sink, None).await;
    result.result.elapsed = timing.elapsed(begun);
    result
}

/// Runs a prompt with the servers of its configuration. Without facts in the output, the run did not
/// begin.
pub(crate) async fn run_with_servers(
    config: GhostConfig,
    sink: Option<&mut EventSink<'_>>,
    seams: Option<&dyn RunSeams>,
) -> (GhostResult, Option<RunFacts>) {
    let mut report = GhostResult::before_run(&config.settings.system, &config.model.provider);
    let RunModel { client, provider, endpoint } = match RunModel::new(&config, seams) {
        Ok(model) => model,
        Err(error) => return (report.fail(&error), None),
    };
    report.set_model(&*provider);
    let host_config = match config.host_config() {
        Ok(host_config) => host_config,
        Err(error) => return (report.fail(&error), None),
    };
    let secrets = server_secrets(&host_config);
    let mut builder = Host::builder(host_config.clone()).telemetry(config.telemetry.clone());
    if let Some(settings) = &config.server_requests {
        let mut handler = ServerRequestHandler::new(settings.clone());
        // A recording has the servers' questions with the answers, and not how the model answered.
        handler.set_model(Some(client));
        if let Some(seams) = seams {
            handler = seams.server_requests(&handler);
        }
        builder = handler.register(builder);
    }
    let host = match builder.start().await {
        Ok(host) => host,
        Err(error) => return (report.fail(&error), None),
    };
    let mut servers = BTreeMap::new();
    for (name, status) in host.status() {
        let reason = match status.state {
            ServerState::Ready => {
                report.servers_connected += 1;
                None
            }
            ServerState::Starting | ServerState::Unavailable | ServerState::Shutdown => {
                // The reason may contain a line that the server wrote.
                let reason = status.reason.unwrap_or_else(|| "not started".to_owned());
                let reason = secrets.iter().fold(reason, |text, secret| secret.mask_whole(text));
                report.add_server_error(&name, &reason);
                Some(reason)
            }
        };
        servers.insert(name.to_string(), reason);
    }
    report.tools_discovered = host.list_tools().len();
    let settings = config.agent_settings();
    let parts = AgentParts {
        provider,
        tools: Arc::new(ResourceTools::after_first_link(host.clone())),
        namespace: &config.namespace,
        settings: settings.clone(),
        approver: config.approver.clone(),
    };
    let NamespacedAgent { agent, namespace } = parts.into_agent_between(seams);
    let agent = agent.with_telemetry(config.telemetry.clone());
    let prompt = config.user_prompt.as_str();
    let mut result = match sink {
        Some(sink) => agent.run_streaming(prompt, sink).await,
        None => agent.run(prompt).await,
    };
    namespace.restore_names(&mut result);
    report.finish(result, agent.conversation());
    host.shutdown().await;
    (report, Some(RunFacts { endpoint, host_config, servers, settings }))
}

struct RunModel {
    /// The model, for requests of servers.
    client: Arc<dyn LlmProvider>,
    /// The model with the recorder in front of it.
    provider: Arc<dyn LlmProvider>,
    /// `None` for a model of the application.
    endpoint: Option<Endpoint>,
}

impl RunModel {
    fn new(config: &GhostConfig, seams: Option<&dyn RunSeams>) -> Result<Self, ModelLookupError> {
        if let Some(model) = &config.own_model {
            return Ok(Self { client: model.clone(), provider: model.clone(), endpoint: None });
        }
        let environment = config.provider_environment();
        let client = Arc::new(get_llm_client(config.chosen_model(), &environment)?);
        let endpoint = Some(client.endpoint().clone());
        let provider: Arc<dyn LlmProvider> = match seams {
            Some(seams) => Arc::new(seams.model(&client)),
            None => client.clone(),
        };
        Ok(Self { client, provider, endpoint })
    }
}

/// Returns the values of the variables and headers of all servers, longest first, because a value
/// may contain another value.
fn server_secrets(config: &Config) -> Vec<Secret> {
    let values = config.servers.values().filter_map(|server| match &server.transport {
        TransportConfig::Stdio { env, .. } => Some(env),
        TransportConfig::Http { headers, .. }
        | TransportConfig::Sse { headers, .. }
        | TransportConfig::WebSocket { headers, .. } => Some(headers),
        TransportConfig::InProcess => None,
    });
    let mut secrets: Vec<_> = values.flat_map(|values| values.values().cloned()).collect();
    secrets.sort_by_key(|secret| std::cmp::Reverse(secret.expose().len()));
    secrets
}
