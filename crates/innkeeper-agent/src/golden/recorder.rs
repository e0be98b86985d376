//! Collects what passes between a run and the outside.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use innkeeper_golden::{
    ApprovalRecord, Category, Exchange, FindCredentials, Golden, HttpRequestRecord, Input,
    KnownSecret, Origin, Outcome, QuestionRecord, Recording, ReplyRecord, ServerRecord, VERSION,
    body_json, differences, is_varying_in_output, redact,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::approvals::RecordingApprover;
use super::failure::http_failure;
use super::model::RecordingClient;
use super::record_error::{RecordError, unfinished};
use super::replay::{Replay, replay};
use super::settings::SettingsRecord;
use super::tool_records::{tool_record, unavailable_record};
use super::tools::RecordingTools;
use crate::agent::{Agent, AgentSettings};
use crate::ghost::{AgentParts, GhostResult, NamespacedAgent, RunSeams};
use crate::millis::to_millis;
use crate::provider::{LlmProvider, ProviderApi};
use crate::run_json::TokenUsage;
use crate::safety::Approver;
use crate::server_requests::ServerRequestHandler;
use crate::timing::Timing;
use crate::tools::{AvailableTool, ToolRunner, UnavailableTool};
use crate::transport::{HttpError, HttpProvider, IncomingResponse, OutgoingRequest};

/// Maximum number of differences between a run and its replay that an error names.
const MAX_DIFFERENCES: usize = 10;

/// Records one run, or all runs of a chat. Clones share the recording.
///
/// Pass the model, the tools and the approver of the run through the recorder, and create the agent
/// with [`Self::agent`].
#[derive(Clone)]
pub struct GoldenRecorder {
    timing: Timing,
    started_at: Instant,
    record: Arc<Mutex<Record>>,
}

impl fmt::Debug for GoldenRecorder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GoldenRecorder").finish_non_exhaustive()
    }
}

/// What was recorded so far.
#[derive(Default)]
struct Record {
    endpoint: Option<EndpointRecord>,
    recording: Recording,
    approvals: Vec<ApprovalRecord>,
    jitter: Vec<f64>,
    /// The number of iterations of the runs before this one.
    earlier_iterations: u32,
}

/// The model of a run, as configured.
struct EndpointRecord {
    provider: String,
    model: String,
    api: ProviderApi,
    base_url: String,
}

/// What a recorder cannot see of a run.
#[derive(Debug)]
pub struct RunDescription {
    /// The name of the golden.
    pub test_name: String,
    /// What the golden shows.
    pub category: Option<Category>,
    /// When the run began.
    pub recorded_at: SystemTime,
    /// The servers.
    pub servers: DescribedServers,
    /// The messages of the user.
    pub prompts: DescribedPrompts,
    /// The namespace of the tools.
    pub namespace: String,
    /// Whether the responses were streamed.
    pub streaming: bool,
    /// The settings of the agent.
    pub settings: AgentSettings,
}

/// The servers of a recorded run.
#[derive(Clone, Debug)]
pub struct DescribedServers {
    /// The configuration as the user wrote it.
    pub config: Box<RawValue>,
    /// The servers after the start: `None` for a ready server, else why it is not available.
    pub states: BTreeMap<String, Option<String>>,
}

/// The messages of the user in a recorded run.
#[derive(Clone, Debug)]
pub struct DescribedPrompts {
    /// The message, or the first one of a chat.
    pub first: String,
    /// The further messages of a chat; see [`GoldenRecorder::start_further_run`].
    pub further: Vec<String>,
}

impl RunSeams for GoldenRecorder {
    fn model(&self, provider: &HttpProvider) -> HttpProvider {
        self.record_model(provider)
    }

    fn tools(&self, tools: Arc<dyn ToolRunner>) -> Arc<dyn ToolRunner> {
        self.record_tools(tools)
    }

    fn approver(&self, approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
        self.record_approver(approver)
    }

    fn server_requests(&self, handler: &ServerRequestHandler) -> ServerRequestHandler {
        self.record_questions(handler)
    }

    fn timing(&self) -> Timing {
        self.timing.clone()
    }
}

impl Default for GoldenRecorder {
    fn default() -> Self {
        Self::new()
    }
}

impl GoldenRecorder {
    /// Creates a recorder. The times of the recording count from here.
    pub fn new() -> Self {
        Self::with_timing(Timing::default())
    }

    /// Creates a recorder of a run with this timing.
    pub(super) fn with_timing(timing: Timing) -> Self {
        let record = Arc::new(Mutex::new(Record::default()));
        let draw = timing.jitter.clone();
        let shared = record.clone();
        let jitter = move || {
            let number = draw();
            shared.lock().unwrap_or_else(PoisonError::into_inner).jitter.push(number);
            number
        };
        let timing = Timing { jitter: Arc::new(jitter), ..timing };
        Self { started_at: timing.now(), timing, record }
    }

    /// Returns a provider whose requests and responses are recorded. Call this before the provider
    /// sends anything.
    pub fn record_model(&self, provider: &HttpProvider) -> HttpProvider {
        let endpoint = provider.endpoint();
        self.lock().endpoint = Some(EndpointRecord {
            provider: endpoint.provider.clone(),
            model: endpoint.model.clone(),
            api: endpoint.api,
            base_url: endpoint.base_url.clone(),
        });
        provider.with_client_around(|client| Arc::new(RecordingClient::new(client, self.clone())))
    }

    /// Returns tools whose definitions and calls are recorded, by public names.
    pub fn record_tools(&self, tools: Arc<dyn ToolRunner>) -> Arc<dyn ToolRunner> {
        Arc::new(RecordingTools::new(tools, self.clone()))
    }

    /// Returns an approver whose decisions are recorded, by public names.
    pub fn record_approver(&self, approver: Arc<dyn Approver>) -> Arc<dyn Approver> {
        Arc::new(RecordingApprover::new(approver, self.clone()))
    }

    /// Creates the agent of the run.
    pub fn agent(
        &self,
        provider: Arc<dyn LlmProvider>,
        tools: Arc<dyn ToolRunner>,
        settings: AgentSettings,
    ) -> Agent {
        Agent::with_timing(provider, tools, settings, self.timing.clone())
    }

    /// Creates the agent of a run whose tools have the names of a namespace. Pass the provider through
    /// [`Self::record_model`] first; the other parts are recorded here.
    pub fn namespaced_agent(&self, parts: AgentParts<'_>) -> NamespacedAgent {
        parts.into_agent_between(Some(self))
    }

    /// Starts the run of a chat's next message. The same agent must run it, with the conversation that
    /// the run before left. `result` is the result so far; add that of the run to it with
    /// [`GhostResult::add_run`].
    pub fn start_further_run(&self, result: &GhostResult) {
        self.lock().earlier_iterations = result.result.stats.iterations;
    }

    /// Makes a golden of the run, without secrets, and replays it once: a recording that does not
    /// replay to the same result is an error. `find_credentials` returns what looks like a credential
    /// in a text.
    ///
    /// # Errors
    ///
    /// The run was interrupted, a setting or the model cannot be recorded, a secret would stay in the
    /// golden, or the golden is too large or does not replay.
    pub async fn finish(
        &self,
        description: &RunDescription,
        result: &GhostResult,
        secrets: &[KnownSecret],
        find_credentials: FindCredentials,
    ) -> Result<Golden, RecordError> {
        let golden = self.trace(description, result, secrets, find_credentials)?;
        let golden = Golden { origin: Origin::Recorded, ..golden };
        let written = replayed_recording(&golden).await;
        written.map_err(|error| error.with_ordinary_words(secrets))
    }

    /// Makes a golden of the run like [`Self::finish`], without replaying it.
    ///
    /// # Errors
    ///
    /// As for [`Self::finish`], except those of the replay.
    pub fn trace(
        &self,
        description: &RunDescription,
        result: &GhostResult,
        secrets: &[KnownSecret],
        find_credentials: FindCredentials,
    ) -> Result<Golden, RecordError> {
        if let Some(reason) = unfinished(&result.result.outcome) {
            return Err(RecordError::NotFinished { reason });
        }
        let mut golden = self.golden(description, result)?;
        redact(&mut golden, secrets, find_credentials)?;
        Ok(Golden { origin: Origin::Trace, ..golden })
    }

    /// Returns the recording with all its secrets.
    pub(super) fn golden(
        &self,
        description: &RunDescription,
        result: &GhostResult,
    ) -> Result<Golden, RecordError> {
        let settings = SettingsRecord::new(&description.settings)
            .map_err(|setting| RecordError::Setting { setting })?;
        let record = self.lock();
        record.recording.check_size()?;
        let endpoint = record.endpoint.as_ref().ok_or(RecordError::NoHttp)?;
        let input = Input {
            server_config: description.servers.config.clone(),
            system_prompt: description.settings.system.clone(),
            provider: endpoint.provider.clone(),
            model: endpoint.model.clone(),
            api: endpoint.api.as_str().to_owned(),
            base_url: endpoint.base_url.clone(),
            user_prompt: description.prompts.first.clone(),
            further_prompts: description.prompts.further.clone(),
            namespace: description.namespace.clone(),
            streaming: description.streaming,
            settings: to_raw_value(&settings)?,
            agent: None,
        };
        let servers = description.servers.states.iter().map(|(name, reason)| {
            (name.clone(), ServerRecord { ready: reason.is_none(), reason: reason.clone() })
        });
        let mut golden = Golden {
            version: VERSION,
            test_name: description.test_name.clone(),
            origin: Origin::Recorded,
            category: description.category,
            recorded_at: date_text(description.recorded_at),
            program: concat!("innkeeper ", env!("CARGO_PKG_VERSION")).to_owned(),
            input,
            golden_output: to_raw_value(result)?,
            provider_responses: record.recording.exchanges().to_vec(),
            servers: servers.collect(),
            tools: record.recording.tools().to_vec(),
            offers: record.recording.offers().to_vec(),
            tool_calls: record.recording.calls().to_vec(),
            approvals: record.approvals.clone(),
            served: Vec::new(),
            questions: record.recording.questions().to_vec(),
            rules: None,
            accepted: Vec::new(),
            jitter: record.jitter.iter().map(to_raw_value).collect::<Result<_, _>>()?,
        };
        drop(record);
        add_token_usage(&mut golden.provider_responses, result)?;
        Ok(golden)
    }

    /// Records a request; returns its position.
    pub(super) fn on_request(&self, request: &OutgoingRequest) -> usize {
        let body = (!request.body.is_empty()).then(|| body_json(&request.body));
        let request_record = HttpRequestRecord {
            method: request.method.to_string(),
            url: request.url.clone(),
            body,
            begin_ms: self.elapsed_ms(),
        };
        let mut record = self.lock();
        let iteration = record.earlier_iterations.saturating_add(request.iteration);
        record.recording.on_request(iteration, request_record)
    }

    pub(super) fn on_response(&self, exchange: usize, response: &IncomingResponse) {
        let now = self.elapsed_ms();
        let status = response.status.as_u16();
        self.lock()
            .recording
            .on_response(exchange, now, status, |name| response.headers.get(name)?.to_str().ok());
    }

    /// Records that a request has no response.
    pub(super) fn on_send_error(&self, exchange: usize, error: &HttpError) {
        let (kind, message) = http_failure(error);
        let now = self.elapsed_ms();
        self.lock().recording.on_send_error(exchange, now, kind, message);
    }

    /// Records a chunk or the failure of a body.
    pub(super) fn on_chunk(&self, exchange: usize, chunk: &Result<bytes::Bytes, HttpError>) {
        let now = self.elapsed_ms();
        match chunk {
            Ok(bytes) => self.lock().recording.on_chunk(exchange, now, bytes),
            Err(error) => {
                let (kind, message) = http_failure(error);
                self.lock().recording.on_body_error(exchange, now, kind, message);
            }
        }
    }

    /// Records the end of a body, unless it failed.
    pub(super) fn on_body_end(&self, exchange: usize) {
        let now = self.elapsed_ms();
        self.lock().recording.on_body_end(exchange, now);
    }

    /// Records the offered tools if they differ from those before.
    pub(super) fn on_offer(&self, tools: &[AvailableTool], unavailable: &[UnavailableTool]) {
        let tools = tools.iter().map(tool_record).collect();
        let unavailable = unavailable.iter().map(unavailable_record).collect();
        self.lock().recording.on_offer(tools, unavailable);
    }

    /// Records the start of a call; returns its position.
    pub(super) fn on_call(&self, name: &str, arguments: &RawValue) -> usize {
        let now = self.elapsed_ms();
        self.lock().recording.on_call(now, name, arguments, 0, None)
    }

    pub(super) fn on_progress(&self, call: usize, params: &RawValue) {
        let now = self.elapsed_ms();
        self.lock().recording.on_progress(call, now, params);
    }

    pub(super) fn on_call_end(&self, call: usize, outcome: Outcome) {
        let now = self.elapsed_ms();
        self.lock().recording.on_call_end(call, now, outcome);
    }

    /// Records a question of a server; returns its position.
    pub(super) fn on_question(&self, question: impl FnOnce(&Recording) -> QuestionRecord) -> usize {
        let recording = &mut self.lock().recording;
        let question = question(recording);
        recording.on_question(question)
    }

    pub(super) fn on_answer(&self, question: usize, answer: &RawValue) {
        self.lock().recording.on_answer(question, answer);
    }

    pub(super) fn on_approval(&self, approval: ApprovalRecord) {
        self.lock().approvals.push(approval);
    }

    fn elapsed_ms(&self) -> u64 {
        to_millis(self.timing.elapsed(self.started_at))
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn replayed_recording(golden: &Golden) -> Result<Golden, RecordError> {
    let Replay { golden: replayed, .. } = replay(golden).await?.require_complete()?;
    let expected = &golden.golden_output;
    let actual = &replayed.golden_output;
    let differences = differences(expected, actual, &is_varying_in_output, MAX_DIFFERENCES);
    if differences.is_empty() { Ok(replayed) } else { Err(RecordError::Differs { differences }) }
}

/// Adds the reported tokens of each iteration to the last response of the iteration.
fn add_token_usage(
    exchanges: &mut [Exchange],
    result: &GhostResult,
) -> Result<(), serde_json::Error> {
    #[derive(Serialize)]
    struct Reported {
        prompt_tokens: u64,
        completion_tokens: u64,
        total_tokens: u64,
    }
    for (usage, iteration) in result.result.stats.usage_by_iteration.iter().zip(1..) {
        let TokenUsage { prompt_tokens, completion_tokens, total_tokens, .. } =
            TokenUsage::new(usage.usage, usage.is_complete);
        let reported = Reported { prompt_tokens, completion_tokens, total_tokens };
        let mut answered = exchanges
            .iter_mut()
            .rev()
            .filter(|exchange| exchange.iteration == iteration && is_success(&exchange.response));
        if let Some(exchange) = answered.next().filter(|_| usage.is_complete) {
            exchange.token_usage = Some(to_raw_value(&reported)?);
        }
    }
    Ok(())
}

fn is_success(reply: &ReplyRecord) -> bool {
    matches!(reply, ReplyRecord::Http(response) if (200..300).contains(&response.status))
}

fn date_text(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let date = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
