//! What is recorded of an agent's run.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use hyper::header::HeaderMap;
use innkeeper_agent::golden::{
    AgentInput, Category, Golden, HttpRequestRecord, Input, KnownSecret, Origin, ReadError,
    Recording, RedactError, ReplyRecord, SecretPlace, VERSION, body_json, redact,
};
use innkeeper_host::{Environment, find_credentials};
use serde::Deserialize;
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::UnixStream;
use tokio::time::Instant;
use url::Url;

use super::agent_process::AgentEnd;
use super::credentials;
use super::join::{
    PassedLine, RunMode, ServedConfiguration, ServedSecret, Welcome, read_line, write_line,
};
use super::mcp_recording::{McpRecording, RecordedConnection, empty_object};
use super::model_server::ModelServer;
use super::providers::Upstreams;
use super::run_output::run_output;
use super::run_servers::RunServers;
use super::tools_socket::{ToolsSide, ToolsSocket};
use super::upstream::RecordingModel;
use crate::error_chain::error_chain;
use crate::timestamp::format_second_rfc3339;

/// Why a run has no golden.
#[derive(Debug, thiserror::Error)]
pub(crate) enum RecordRunError {
    /// Nothing came from the agent.
    #[error("the agent asked neither its model nor an MCP server")]
    Nothing,
    /// Something cannot be recorded.
    #[error("{0}")]
    Problem(String),
    /// A secret stays in the recording.
    #[error("the recording may contain a secret")]
    Redact(#[from] RedactError),
    /// The recording is too large.
    #[error(transparent)]
    TooLarge(#[from] ReadError),
}

/// The recording of a run. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct RecordedRun(Arc<RunState>);

#[derive(Debug)]
struct RunState {
    started_at: Instant,
    record: Mutex<Record>,
}

#[derive(Debug, Default)]
struct Record {
    recording: Recording,
    mcp: McpRecording,
    base_urls: BTreeMap<String, String>,
    secrets: Vec<KnownSecret>,
    /// Why the run cannot be recorded.
    problem: Option<String>,
}

#[derive(Debug)]
pub(crate) struct RecordedAgent<'a> {
    pub(crate) file: &'a Path,
    pub(crate) command: &'a [OsString],
    pub(crate) end: &'a AgentEnd,
}

impl RecordedRun {
    /// Starts a recording. The values of variables and options that are credentials are secrets.
    pub(crate) fn new(environment: &Environment, command: &[OsString]) -> Self {
        let mut secrets = credentials::of_environment(environment);
        secrets.extend(credentials::of_command(command));
        let record = Record { secrets, ..Record::default() };
        Self(Arc::new(RunState { started_at: Instant::now(), record: Mutex::new(record) }))
    }

    /// Starts the servers for the agent.
    ///
    /// # Errors
    ///
    /// The system gives no port or no directory.
    pub(crate) async fn serve(
        &self,
        upstreams: Upstreams,
        environment: &Environment,
    ) -> io::Result<RunServers> {
        let model_server = ModelServer::bind().await?;
        let variables = upstreams.variables(&model_server);
        let model = RecordingModel::new(self.clone(), upstreams, environment.clone());
        let tools = Arc::new(self.clone());
        RunServers::start(model_server, Arc::new(model), ToolsSocket::bind()?, tools, variables)
    }

    /// Makes a golden of the run, without secrets.
    ///
    /// # Errors
    ///
    /// Nothing was recorded, or something cannot be.
    pub(crate) fn finish(&self, agent: &RecordedAgent<'_>) -> Result<Golden, RecordRunError> {
        let record = std::mem::take(&mut *self.lock());
        let Record { recording, mcp, base_urls, secrets, problem } = record;
        if let Some(problem) = problem {
            return Err(RecordRunError::Problem(problem));
        }
        recording.check_size()?;
        let (served, questions) = mcp.into_records();
        if recording.exchanges().is_empty() && served.is_empty() {
            return Err(RecordRunError::Nothing);
        }
        let (first_provider, first_url) =
            base_urls.first_key_value().map_or_else(Default::default, |(provider, base_url)| {
                (provider.clone(), base_url.clone())
            });
        let input = Input {
            server_config: empty_object(),
            system_prompt: String::new(),
            provider: first_provider,
            model: first_model(&recording),
            api: first_api(&recording).to_owned(),
            base_url: first_url,
            user_prompt: String::new(),
            further_prompts: Vec::new(),
            namespace: String::new(),
            streaming: recording.exchanges().iter().any(|exchange| is_stream(&exchange.response)),
            settings: empty_object(),
            agent: Some(AgentInput {
                command: agent
                    .command
                    .iter()
                    .map(|argument| argument.to_string_lossy().into_owned())
                    .collect(),
                base_urls,
            }),
        };
        let name = agent.file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let requests = recording.exchanges().len();
        let calls = recording.calls();
        let mut golden = Golden {
            version: VERSION,
            category: Category::from_test_name(&name),
            test_name: name,
            origin: Origin::Recorded,
            recorded_at: format_second_rfc3339(SystemTime::now()),
            program: concat!("innkeeper ", env!("CARGO_PKG_VERSION")).to_owned(),
            input,
            golden_output: run_output(agent.end, requests, calls.iter()),
            provider_responses: recording.exchanges().to_vec(),
            servers: BTreeMap::new(),
            tools: recording.tools().to_vec(),
            offers: Vec::new(),
            tool_calls: calls.to_vec(),
            served,
            approvals: Vec::new(),
            questions,
            jitter: Vec::new(),
            rules: None,
            accepted: Vec::new(),
        };
        redact(&mut golden, &secrets, find_credentials)?;
        Ok(golden)
    }

    pub(super) fn add_secrets(&self, secrets: Vec<KnownSecret>) {
        credentials::add(&mut self.lock().secrets, secrets);
    }

    pub(super) fn add_provider(&self, provider: &str, base_url: &Url) {
        let base_url = base_url.as_str().trim_end_matches('/').to_owned();
        self.lock().base_urls.insert(provider.to_owned(), base_url);
    }

    /// Notes why the run cannot be recorded.
    pub(super) fn fail(&self, problem: String) {
        self.lock().problem.get_or_insert(problem);
    }

    pub(super) fn on_request(&self, method: &str, url: &str, body: &[u8]) -> usize {
        let request = HttpRequestRecord {
            method: method.to_owned(),
            url: url.to_owned(),
            body: (!body.is_empty()).then(|| body_json(body)),
            begin_ms: self.elapsed_ms(),
        };
        let recording = &mut self.lock().recording;
        let iteration = u32::try_from(recording.exchanges().len()).unwrap_or(u32::MAX);
        recording.on_request(iteration.saturating_add(1), request)
    }

    pub(super) fn on_response(&self, exchange: usize, status: u16, headers: &HeaderMap) {
        self.lock().recording.on_response(exchange, self.elapsed_ms(), status, |name| {
            headers.get(name)?.to_str().ok()
        });
    }

    pub(super) fn on_send_error(&self, exchange: usize, error: reqwest::Error) {
        let kind = if error.is_connect() { "connect" } else { "disconnected" };
        let kind = kind.to_owned();
        let message = chain(error);
        self.lock().recording.on_send_error(exchange, self.elapsed_ms(), kind, message);
    }

    pub(super) fn on_chunk(&self, exchange: usize, bytes: &[u8]) {
        self.lock().recording.on_chunk(exchange, self.elapsed_ms(), bytes);
    }

    pub(super) fn on_body_error(&self, exchange: usize, error: reqwest::Error) {
        let kind = "disconnected".to_owned();
        let message = chain(error);
        self.lock().recording.on_body_error(exchange, self.elapsed_ms(), kind, message);
    }

    pub(super) fn on_body_end(&self, exchange: usize) {
        self.lock().recording.on_body_end(exchange, self.elapsed_ms());
    }

    fn on_passed_line(&self, connection: &mut RecordedConnection, line: &PassedLine) {
        let now = self.elapsed_ms();
        let Record { recording, mcp, .. } = &mut *self.lock();
        match line {
            PassedLine::Client(message) => {
                mcp.on_client_line(connection, recording, now, message.get().as_bytes());
            }
            PassedLine::Server(message) => {
                mcp.on_server_line(connection, recording, now, message.get().as_bytes());
            }
        }
    }

    async fn record_connection(
        &self,
        arguments: Vec<String>,
        mut stream: BufReader<UnixStream>,
    ) -> io::Result<()> {
        write_line(&mut stream, &Welcome { mode: RunMode::Record }).await?;
        let configuration = read_line(&mut stream).await?;
        // `serve` has ended because of its configuration.
        let Some(ServedConfiguration { server_config, secrets }) = configuration else {
            return Ok(());
        };
        let secrets = secrets.into_iter().map(|ServedSecret { name, value }| secret(name, value));
        self.add_secrets(secrets.collect());
        let mut connection = self.lock().mcp.connect(arguments, server_config);
        let recorded = self.record_lines(&mut connection, &mut stream).await;
        self.lock().mcp.on_end(connection);
        recorded
    }

    async fn record_lines(
        &self,
        connection: &mut RecordedConnection,
        stream: &mut BufReader<UnixStream>,
    ) -> io::Result<()> {
        stream.write_all(b"\n").await?;
        while let Some(line) = read_line(stream).await? {
            self.on_passed_line(connection, &line);
            stream.write_all(b"\n").await?;
        }
        Ok(())
    }

    fn elapsed_ms(&self) -> u64 {
        u64::try_from(self.0.started_at.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn lock(&self) -> MutexGuard<'_, Record> {
        self.0.record.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ToolsSide for RecordedRun {
    fn serve(
        self: Arc<Self>,
        arguments: Vec<String>,
        stream: BufReader<UnixStream>,
    ) -> BoxFuture<'static, io::Result<()>> {
        async move {
            let recorded = self.record_connection(arguments, stream).await;
            match recorded {
                // Clients end their servers with a signal, at any time.
                Err(error)
                    if matches!(
                        error.kind(),
                        ErrorKind::BrokenPipe
                            | ErrorKind::ConnectionReset
                            | ErrorKind::UnexpectedEof
                    ) =>
                {
                    Ok(())
                }
                Err(error) => {
                    self.fail(format!("a line of `innkeeper serve --stdio` is lost: {error}"));
                    Err(error)
                }
                Ok(()) => Ok(()),
            }
        }
        .boxed()
    }
}

fn secret(name: String, value: String) -> KnownSecret {
    KnownSecret { name, value, place: SecretPlace::Anywhere }
}

/// Returns the messages of an error and its causes. The URL may contain a password.
fn chain(error: reqwest::Error) -> String {
    let error = error.without_url();
    error_chain(&error).map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

/// Returns the model of the first request that names one.
fn first_model(recording: &Recording) -> String {
    #[derive(Deserialize)]
    struct Body {
        model: String,
    }
    let bodies = recording.exchanges().iter().filter_map(|exchange| exchange.request.body.as_ref());
    let mut models = bodies.filter_map(|body| serde_json::from_str(body.get()).ok());
    models.next().map(|Body { model }| model).unwrap_or_default()
}

/// Returns the API of the first request, by the end of its path.
fn first_api(recording: &Recording) -> &'static str {
    const ENDINGS: [(&str, &str); 7] = [
        ("/chat/completions", "chat"),
        ("/api/chat", "chat"),
        ("/responses", "responses"),
        ("/messages", "messages"),
        (":generateContent", "generate"),
        (":streamGenerateContent", "generate"),
        ("/interactions", "interactions"),
    ];
    let paths =
        recording.exchanges().iter().filter_map(|exchange| exchange.request.url.split('?').next());
    let mut apis = paths.filter_map(|path| {
        ENDINGS.iter().find(|(ending, _)| path.ends_with(ending)).map(|(_, api)| *api)
    });
    apis.next().unwrap_or_default()
}

fn is_stream(reply: &ReplyRecord) -> bool {
    let ReplyRecord::Http(response) = reply else { return false };
    let content_type = response.headers.iter().find(|(name, _)| name == "content-type");
    content_type.is_some_and(|(_, value)| {
        value.starts_with("text/event-stream") || value.starts_with("application/x-ndjson")
    })
}
