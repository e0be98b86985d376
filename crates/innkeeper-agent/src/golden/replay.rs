//! Runs an agent over the bytes of a golden.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use innkeeper_golden::{Golden, Input, Miss, UnusedAnswers};
use innkeeper_host::Environment;
use innkeeper_protocol::view::ViewError;
use tokio::runtime::Builder;
use tokio::sync::oneshot;

use super::approvals::ReplayApprover;
use super::clock::ReplayClock;
use super::model::ReplayClient;
use super::questions::replayed_questions;
use super::record_error::RecordError;
use super::recorder::{DescribedPrompts, DescribedServers, GoldenRecorder, RunDescription};
use super::script::Script;
use super::settings::SettingsRecord;
use super::tools::ReplayTools;
use crate::agent::{Agent, AgentSettings, RunResult};
use crate::ghost::{AgentParts, GhostResult, NamespacedAgent};
use crate::provider::{LlmError, ProviderApi};
use crate::safety::{Approver, PatternError};
use crate::tasks;
use crate::transport::{
    Endpoint, HttpProvider, ModelLookupError, ModelSelector, ProviderId, get_llm_client,
};

/// A replayed run.
#[derive(Debug)]
pub struct Replay {
    /// The result of the run.
    pub result: GhostResult,
    /// The recording of the replay, which differs from the golden only if the program does.
    pub golden: Golden,
    /// The recorded answers that nothing asked for.
    pub unused: Vec<String>,
}

impl Replay {
    /// Returns an error if the run did not ask for everything that was recorded, and must.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Unused`].
    pub fn require(self, unused: UnusedAnswers) -> Result<Self, ReplayError> {
        match unused {
            UnusedAnswers::Allowed => Ok(self),
            UnusedAnswers::Refused => self.require_complete(),
        }
    }

    /// Returns an error if the run did not ask for everything that was recorded.
    ///
    /// # Errors
    ///
    /// [`ReplayError::Unused`].
    pub fn require_complete(self) -> Result<Self, ReplayError> {
        if self.unused.is_empty() { Ok(self) } else { Err(ReplayError::Unused(self.unused)) }
    }
}

/// Why a golden has no replay.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The golden is that of another program's agent.
    #[error(
        "the recorded agent is another program; replay it with `innkeeper replay FILE -- AGENT ARGS`"
    )]
    ForeignAgent,
    /// The run asked for something that no recording answers.
    #[error("{0}")]
    Missed(Miss),
    /// The run did not ask for everything that was recorded.
    #[error("nothing asked for {}", .0.join(", "))]
    Unused(Vec<String>),
    /// The run waits for something that was not recorded.
    #[error("the run waits for an event that was not recorded")]
    Stuck,
    /// The settings are not those of an agent.
    #[error("invalid `input.settings`")]
    Settings(#[from] serde_json::Error),
    /// The settings have an invalid pattern for blocked tools.
    #[error("invalid `input.settings.blocked_tools`")]
    BlockedTools(#[from] PatternError),
    /// The provider or its API is unknown.
    #[error("invalid `input.provider` or `input.api`")]
    Model(#[from] ModelLookupError),
    /// A definition is not that of a tool.
    #[error("invalid definition in `tools`")]
    Tool(#[from] ViewError),
    /// The server of the model did not answer as a model's server does.
    #[error("the recorded server has no model")]
    Probe(#[source] LlmError),
    /// The recording of the replay cannot be made.
    #[error("cannot record the replay")]
    Record(#[source] Box<RecordError>),
    /// The system gives no thread, or the thread panicked.
    #[error("cannot run the replay: {0}")]
    Thread(String),
}

/// Replays a golden: runs the same agent over the recorded bytes, without network, servers or waits.
/// Dropping the future lets the replay end by itself; it takes milliseconds.
///
/// # Errors
///
/// The run asked for something that was not recorded, or the input of the golden is invalid. A changed
/// result is not an error: compare [`Replay::golden`] with the golden. Neither are recorded answers
/// that nothing asked for: see [`Replay::require_complete`].
pub async fn replay(golden: &Golden) -> Result<Replay, ReplayError> {
    if golden.input.agent.is_some() {
        return Err(ReplayError::ForeignAgent);
    }
    let golden = golden.clone();
    let (sender, receiver) = oneshot::channel();
    tasks::spawn_thread("innkeeper-replay", move || {
        // Without a receiver, nobody needs the replay.
        sender.send(replay_here(&golden)).ok();
    })
    .map_err(|error| ReplayError::Thread(error.to_string()))?;
    receiver.await.unwrap_or_else(|_| Err(ReplayError::Thread("the run panicked".to_owned())))
}

/// Replays on a runtime of this thread, whose clock jumps when nothing else can go on.
fn replay_here(golden: &Golden) -> Result<Replay, ReplayError> {
    let clock = ReplayClock::default();
    let idle_clock = clock.clone();
    let runtime = Builder::new_current_thread()
        .on_thread_park(move || idle_clock.advance())
        .build()
        .map_err(|error| ReplayError::Thread(error.to_string()))?;
    let script = Script::new(golden)?;
    runtime.block_on(async {
        let replayed = run(golden, &script, &clock);
        tokio::select! {
            biased;
            replay = replayed => replay,
            miss = script.missed() => Err(ReplayError::Missed(miss)),
            () = clock.stuck() => Err(ReplayError::Stuck),
        }
    })
}

async fn run(golden: &Golden, script: &Script, clock: &ReplayClock) -> Result<Replay, ReplayError> {
    let input = &golden.input;
    let timing = clock.timing(start_date(golden), recorded_jitter(golden));
    let recorder = GoldenRecorder::with_timing(timing.clone());
    let client = Arc::new(ReplayClient::new(script.clone(), clock.clone()));
    let provider = HttpProvider::with_client(endpoint(input)?, client).with_timing(timing);
    let mut provider = recorder.record_model(&provider);
    if golden.provider_responses.first().is_some_and(|first| first.iteration == 0) {
        provider.probe_server().await.map_err(ReplayError::Probe)?;
    }
    let provider = Arc::new(provider);
    let settings = settings(input)?;
    let description = description(golden, settings.clone());
    let mut approver: Option<Arc<dyn Approver>> = None;
    if !golden.approvals.is_empty() {
        approver = Some(Arc::new(ReplayApprover(script.clone())));
    }
    let NamespacedAgent { agent, namespace } = recorder.namespaced_agent(AgentParts {
        provider: provider.clone(),
        tools: Arc::new(ReplayTools::new(script.clone(), clock.clone())),
        namespace: &input.namespace,
        settings,
        approver,
    });
    let mut report = GhostResult::before_run(&input.system_prompt, &input.provider);
    report.set_model(&*provider);
    for (name, reason) in &description.servers.states {
        match reason {
            None => report.servers_connected += 1,
            Some(reason) => report.add_server_error(name, reason),
        }
    }
    report.tools_discovered = golden.offers.first().map_or(0, |offer| offer.tools.len());
    let mut result = run_message(&agent, &input.user_prompt, input.streaming).await;
    namespace.restore_names(&mut result);
    report.finish(result, agent.conversation());
    for prompt in &input.further_prompts {
        recorder.start_further_run(&report);
        let mut result = run_message(&agent, prompt, input.streaming).await;
        namespace.restore_names(&mut result);
        report.add_run(result, agent.conversation());
    }
    let recorded = recorder
        .golden(&description, &report)
        .map_err(|error| ReplayError::Record(Box::new(error)))?;
    let golden = Golden {
        origin: golden.origin,
        program: golden.program.clone(),
        recorded_at: golden.recorded_at.clone(),
        questions: replayed_questions(golden, &script.made_calls()),
        rules: golden.rules.clone(),
        accepted: golden.accepted.clone(),
        ..recorded
    };
    Ok(Replay { result: report, golden, unused: script.unused() })
}

async fn run_message(agent: &Agent, prompt: &str, streaming: bool) -> RunResult {
    match streaming {
        true => agent.run_streaming(prompt, |_| {}).await,
        false => agent.run(prompt).await,
    }
}

fn endpoint(input: &Input) -> Result<Endpoint, ModelLookupError> {
    let Input { provider, model, api, base_url, .. } = input;
    if ProviderId::from_name(provider).is_none() {
        // The local model has a provider of its own.
        let endpoint = Endpoint::new(provider, ProviderApi::OpenAiChat, model);
        return Ok(Endpoint { base_url: base_url.clone(), ..endpoint });
    }
    let selector = ModelSelector {
        provider: provider.clone(),
        model: Some(model.clone()),
        base_url: Some(base_url.clone()),
        api: Some(api.clone()),
        ..ModelSelector::default()
    };
    Ok(get_llm_client(&selector, &Environment::default())?.endpoint().clone())
}

fn settings(input: &Input) -> Result<AgentSettings, ReplayError> {
    let record: SettingsRecord = serde_json::from_str(input.settings.get())?;
    Ok(record.into_settings(&input.system_prompt)?)
}

fn description(golden: &Golden, settings: AgentSettings) -> RunDescription {
    let input = &golden.input;
    let servers = golden.servers.iter().map(|(name, server)| {
        let reason = (!server.ready).then(|| server.reason.clone().unwrap_or_default());
        (name.clone(), reason)
    });
    RunDescription {
        test_name: golden.test_name.clone(),
        category: golden.category,
        recorded_at: start_date(golden),
        servers: DescribedServers {
            config: input.server_config.clone(),
            states: servers.collect(),
        },
        prompts: DescribedPrompts {
            first: input.user_prompt.clone(),
            further: input.further_prompts.clone(),
        },
        namespace: input.namespace.clone(),
        streaming: input.streaming,
        settings,
    }
}

fn start_date(golden: &Golden) -> SystemTime {
    let date = DateTime::parse_from_rfc3339(&golden.recorded_at).unwrap_or_default();
    let seconds = u64::try_from(date.timestamp()).unwrap_or_default();
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Returns the recorded random numbers in their order, and the middle when they are used up.
fn recorded_jitter(golden: &Golden) -> impl Fn() -> f64 + Send + Sync + 'static {
    let numbers = golden.jitter.iter().filter_map(|number| number.get().parse().ok());
    let numbers = std::sync::Mutex::new(numbers.collect::<std::collections::VecDeque<f64>>());
    move || {
        let mut numbers = numbers.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        numbers.pop_front().unwrap_or(0.5)
    }
}
