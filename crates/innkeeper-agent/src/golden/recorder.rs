//! Collects what passes between a run and the outside.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use chrono::DateTime;
use innkeeper_golden::{
    ApprovalRecord, Category, Chunk, ChunkData, Difference, Exchange, FindCredentials, Golden,
    HttpRequestRecord, HttpResponseRecord, Input, KnownSecret, MAX_FILE_BYTES, Offer, Origin,
    Outcome, ProgressRecord, ReadError, RedactError, ReplyRecord, ServerRecord, StreamEnd,
    ToolCallRecord, VERSION, differences, is_varying_in_output, redact,
};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tokio::time::Instant;

use super::approvals::RecordingApprover;
use super::failure::http_failure;
use super::model::RecordingClient;
use super::replay::{Replay, ReplayError, replay};
use super::settings::{SettingsRecord, millis};
use super::tool_records::{tool_record, unavailable_record};
use super::tools::RecordingTools;
use crate::agent::{Agent, AgentSettings};
use crate::ghost::{GhostResult, RunSeams};
use crate::provider::{LlmProvider, ProviderApi};
use crate::run::RunOutcome;
use crate::run_json::TokenUsage;
use crate::safety::Approver;
use crate::timing::Timing;
use crate::tools::{AvailableTool, ToolRunner, UnavailableTool};
use crate::transport::{HttpError, HttpProvider, IncomingResponse, OutgoingRequest};

/// The headers of responses that a golden has: those that a run reads, and the type of the body.
const RECORDED_HEADERS: [&str; 5] =
    ["content-type", "date", "retry-after", "retry-after-ms", "x-should-retry"];

/// Maximum number of differences between a run and its replay that an error names.
const MAX_DIFFERENCES: usize = 10;

/// Records one run. Clones share the recording.
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
    exchanges: Vec<Exchange>,
    tools: Vec<innkeeper_golden::ToolRecord>,
    /// Positions in `tools`, by hash and name.
    positions: HashMap<(String, String), usize>,
    offers: Vec<Offer>,
    calls: Vec<ToolCallRecord>,
    ended_calls: usize,
    approvals: Vec<ApprovalRecord>,
    jitter: Vec<f64>,
    /// The bytes of bodies and results, as far as counted.
    bytes: usize,
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
    /// The configuration of the servers as the user wrote it.
    pub server_config: Box<RawValue>,
    /// The message of the user.
    pub user_prompt: String,
    /// The namespace of the tools.
    pub namespace: String,
    /// Whether the responses were streamed.
    pub streaming: bool,
    /// The settings of the agent.
    pub settings: AgentSettings,
    /// The servers after the start: `None` for a ready server, else why it is not available.
    pub servers: BTreeMap<String, Option<String>>,
}

/// Why a run has no golden.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// The run was interrupted, or nothing was sent.
    #[error("the run did not end by itself: {reason}")]
    NotFinished {
        /// What happened.
        reason: String,
    },
    /// The model is not reached over HTTP.
    #[error("the model has no HTTP API, so there are no bytes to record")]
    NoHttp,
    /// A golden cannot hold the value of a setting.
    #[error("a recording cannot hold the setting `{setting}`")]
    Setting {
        /// The name of the setting.
        setting: &'static str,
    },
    /// A secret stays in the recording.
    #[error("the recording may contain a secret")]
    Redact(#[from] RedactError),
    /// The recording is too large.
    #[error(transparent)]
    Write(#[from] ReadError),
    /// The replay of the recording failed.
    #[error("the recording does not replay")]
    Replay(#[from] ReplayError),
    /// The replay of the recording has another result.
    #[error("the recording replays with another result: {}", join(.differences))]
    Differs {
        /// The differences, at most ten.
        differences: Vec<Difference>,
    },
    /// The recording does not replay after ordinary words were replaced, because a variable or header
    /// has such a value.
    #[error(
        "the recording does not replay after {} was replaced, whose value is an ordinary word",
        .names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" and ")
    )]
    OrdinaryWord {
        /// The names of the values, such as `env:MODE`.
        names: Vec<String>,
        /// What went wrong.
        source: Box<Self>,
    },
    /// A value has no JSON form.
    #[error("cannot write the recording")]
    Json(#[from] serde_json::Error),
}

impl RecordError {
    /// Returns the error of a run that was not sent.
    pub(crate) fn not_finished(result: &GhostResult) -> Self {
        let reason = unfinished(&result.result.outcome);
        Self::NotFinished { reason: reason.unwrap_or_else(|| "it has no recording".to_owned()) }
    }

    /// Names the secrets whose values are ordinary words, if there are some.
    fn with_ordinary_words(self, secrets: &[KnownSecret]) -> Self {
        let is_word = |value: &str| {
            value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"._- ".contains(&byte))
                && !value.bytes().any(|byte| byte.is_ascii_digit())
        };
        let ordinary = secrets.iter().filter(|secret| is_word(&secret.value));
        let names: Vec<_> = ordinary.map(|secret| secret.name.clone()).collect();
        if names.is_empty() { self } else { Self::OrdinaryWord { names, source: Box::new(self) } }
    }
}

fn join(differences: &[Difference]) -> String {
    differences.iter().map(Difference::to_string).collect::<Vec<_>>().join("; ")
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
        let (draw, shared) = (timing.jitter.clone(), record.clone());
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
        if record.bytes > MAX_FILE_BYTES {
            return Err(ReadError::TooLarge { bytes: record.bytes }.into());
        }
        let endpoint = record.endpoint.as_ref().ok_or(RecordError::NoHttp)?;
        let input = Input {
            server_config: description.server_config.clone(),
            system_prompt: description.settings.system.clone(),
            provider: endpoint.provider.clone(),
            model: endpoint.model.clone(),
            api: endpoint.api.as_str().to_owned(),
            base_url: endpoint.base_url.clone(),
            user_prompt: description.user_prompt.clone(),
            namespace: description.namespace.clone(),
            streaming: description.streaming,
            settings: to_raw_value(&settings)?,
        };
        let servers = description.servers.iter().map(|(name, reason)| {
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
            provider_responses: record.exchanges.clone(),
            servers: servers.collect(),
            tools: record.tools.clone(),
            offers: record.offers.clone(),
            tool_calls: record.calls.clone(),
            approvals: record.approvals.clone(),
            questions: Vec::new(),
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
        record.bytes = record.bytes.saturating_add(request.body.len());
        record.exchanges.push(Exchange {
            iteration: request.iteration,
            request: request_record,
            response: ReplyRecord::Silent {},
            token_usage: None,
        });
        record.exchanges.len() - 1
    }

    /// Records the head of a response.
    pub(super) fn on_response(&self, exchange: usize, response: &IncomingResponse) {
        let headers = RECORDED_HEADERS.iter().filter_map(|name| {
            let value = response.headers.get(*name)?.to_str().ok()?;
            Some(((*name).to_owned(), value.to_owned()))
        });
        let headers = headers.collect();
        let status = response.status.as_u16();
        self.on_reply(exchange, |ms| {
            ReplyRecord::Http(HttpResponseRecord {
                status,
                ms,
                headers,
                chunks: Vec::new(),
                end: StreamEnd::Unread {},
            })
        });
    }

    /// Records that a request has no response.
    pub(super) fn on_send_error(&self, exchange: usize, error: &HttpError) {
        let (kind, message) = http_failure(error);
        self.on_reply(exchange, |ms| ReplyRecord::Failed { ms, kind, message });
    }

    fn on_reply(&self, exchange: usize, reply: impl FnOnce(u64) -> ReplyRecord) {
        let now = self.elapsed_ms();
        if let Some(exchange) = self.lock().exchanges.get_mut(exchange) {
            exchange.response = reply(now.saturating_sub(exchange.request.begin_ms));
        }
    }

    /// Records a chunk or the failure of a body.
    pub(super) fn on_chunk(&self, exchange: usize, chunk: &Result<bytes::Bytes, HttpError>) {
        match chunk {
            Ok(bytes) => self.on_body(exchange, bytes.len(), |response, ms| {
                response.chunks.push(Chunk { ms, data: ChunkData::from_bytes(bytes) });
            }),
            Err(error) => {
                let (kind, message) = http_failure(error);
                self.on_body(exchange, 0, |response, ms| {
                    response.end = StreamEnd::Failed { ms, kind, message };
                });
            }
        }
    }

    /// Records the end of a body, unless it failed.
    pub(super) fn on_body_end(&self, exchange: usize) {
        self.on_body(exchange, 0, |response, ms| {
            if matches!(response.end, StreamEnd::Unread {}) {
                response.end = StreamEnd::Complete { ms };
            }
        });
    }

    fn on_body(
        &self,
        exchange: usize,
        bytes: usize,
        change: impl FnOnce(&mut HttpResponseRecord, u64),
    ) {
        let now = self.elapsed_ms();
        let mut record = self.lock();
        record.bytes = record.bytes.saturating_add(bytes);
        // A recording that is too large is refused at the end.
        if record.bytes > MAX_FILE_BYTES {
            return;
        }
        let Some(exchange) = record.exchanges.get_mut(exchange) else { return };
        let ms = now.saturating_sub(exchange.request.begin_ms);
        if let ReplyRecord::Http(response) = &mut exchange.response {
            change(response, ms);
        }
    }

    /// Records the offered tools if they differ from those before.
    pub(super) fn on_offer(&self, tools: &[AvailableTool], unavailable: &[UnavailableTool]) {
        let tools: Vec<_> = tools.iter().map(tool_record).collect();
        let mut record = self.lock();
        let positions = tools.into_iter().map(|tool| record.position(tool)).collect();
        let unavailable = unavailable.iter().map(unavailable_record).collect();
        let (requests, calls) = (record.exchanges.len(), record.ended_calls);
        let offer = Offer { requests, calls, tools: positions, unavailable };
        let is_new = record.offers.last().is_none_or(|last| {
            (&last.tools, &last.unavailable) != (&offer.tools, &offer.unavailable)
        });
        if is_new {
            record.offers.push(offer);
        }
    }

    /// Records the start of a call; returns its position.
    pub(super) fn on_call(&self, name: &str, arguments: &RawValue) -> usize {
        let begin_ms = self.elapsed_ms();
        let mut record = self.lock();
        let round = record.exchanges.len();
        record.calls.push(ToolCallRecord {
            name: name.to_owned(),
            arguments: arguments.to_owned(),
            round,
            begin_ms,
            end_ms: None,
            ended_before: 0,
            progress: Vec::new(),
            outcome: Outcome::Abandoned {},
        });
        record.calls.len() - 1
    }

    /// Records a progress notification.
    pub(super) fn on_progress(&self, call: usize, params: &RawValue) {
        let now = self.elapsed_ms();
        if let Some(call) = self.lock().calls.get_mut(call) {
            let ms = now.saturating_sub(call.begin_ms);
            call.progress.push(ProgressRecord { ms, params: params.to_owned() });
        }
    }

    /// Records the end of a call.
    pub(super) fn on_call_end(&self, call: usize, outcome: Outcome) {
        let end_ms = Some(self.elapsed_ms());
        let mut record = self.lock();
        let ended_before = record.ended_calls as u64;
        record.ended_calls += 1;
        if let Outcome::Result(raw) | Outcome::ToolError(raw) = &outcome {
            record.bytes = record.bytes.saturating_add(raw.get().len());
        }
        if let Some(call) = record.calls.get_mut(call) {
            call.end_ms = end_ms;
            call.ended_before = ended_before;
            call.outcome = outcome;
        }
    }

    /// Records a decision.
    pub(super) fn on_approval(&self, approval: ApprovalRecord) {
        self.lock().approvals.push(approval);
    }

    fn elapsed_ms(&self) -> u64 {
        millis(self.timing.elapsed(self.started_at))
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Record {
    /// Returns the position of an offered tool, which is stored once.
    fn position(&mut self, tool: innkeeper_golden::ToolRecord) -> usize {
        let refusal = tool.refusal.as_deref().unwrap_or_default();
        let key = (format!("{} {refusal}", tool.hash), tool.name.clone());
        if let Some(position) = self.positions.get(&key) {
            return *position;
        }
        self.tools.push(tool);
        self.positions.insert(key, self.tools.len() - 1);
        self.tools.len() - 1
    }
}

/// Replays a recording, and returns the recording of the replay.
async fn replayed_recording(golden: &Golden) -> Result<Golden, RecordError> {
    let Replay { golden: replayed, .. } = replay(golden).await?.require_complete()?;
    let (expected, actual) = (&golden.golden_output, &replayed.golden_output);
    let differences = differences(expected, actual, &is_varying_in_output, MAX_DIFFERENCES);
    if differences.is_empty() { Ok(replayed) } else { Err(RecordError::Differs { differences }) }
}

/// Returns why a run did not come to an end that a replay could reach.
fn unfinished(outcome: &RunOutcome) -> Option<String> {
    match outcome {
        RunOutcome::Interrupted => Some("it was interrupted".to_owned()),
        RunOutcome::NotSent { reason } => Some(reason.clone()),
        RunOutcome::Completed
        | RunOutcome::Truncated
        | RunOutcome::Refused
        | RunOutcome::IterationLimit
        | RunOutcome::CallFailed
        | RunOutcome::LoopDetected
        | RunOutcome::NoValidCall { .. }
        | RunOutcome::Failed(_) => None,
    }
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

/// Returns a body as JSON; a body that is not JSON becomes a string.
pub(super) fn body_json(body: &[u8]) -> Box<RawValue> {
    serde_json::from_slice(body).unwrap_or_else(|_| {
        let text = String::from_utf8_lossy(body);
        to_raw_value(&text).unwrap_or_else(|_| RawValue::NULL.to_owned())
    })
}

fn date_text(time: SystemTime) -> String {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    let seconds = i64::try_from(since.as_secs()).unwrap_or_default();
    let date = DateTime::from_timestamp(seconds, 0).unwrap_or_default();
    date.format("%Y-%m-%dT%H:%M:%SZ").to_string()
}
