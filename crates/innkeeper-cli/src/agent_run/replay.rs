//! A recorded run, played back to its agent.

use std::ffi::OsString;
use std::io;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::{self, BoxFuture};
use futures_util::stream::FuturesUnordered;
use futures_util::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use hyper::body::Bytes;
use hyper::header::{HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use innkeeper_agent::golden::{
    Golden, HttpResponseRecord, KnownSecret, ReplyRecord, SentRequest, StreamEnd, body_json,
    redact_value,
};
use innkeeper_host::{Environment, find_credentials};
use tokio::io::{AsyncWriteExt as _, BufReader, split};
use tokio::net::UnixStream;
use tokio::sync::SetOnce;

use super::agent_process::AgentEnd;
use super::credentials;
use super::join::{RunMode, Welcome, next_line, write_line};
use super::mcp_replay::{ReplayedConnection, ServersState};
use super::model_server::{
    ConnectionLost, ModelAnswer, ModelBody, ModelRequest, ModelServer, ModelSide, body_of,
    error_response,
};
use super::providers::{UpstreamError, Upstreams, replay_keys};
use super::run_output::run_output;
use super::run_servers::RunServers;
use super::timeline::{Departure, Timeline};
use super::tools_socket::{ToolsSide, ToolsSocket};

/// The replay of a run. Clones share what was used.
#[derive(Clone, Debug)]
pub(crate) struct ReplayedRun(Arc<RunState>);

#[derive(Debug)]
struct RunState {
    golden: Arc<Golden>,
    upstreams: Upstreams,
    servers: Mutex<ServersState>,
    timeline: Timeline,
    /// What the agent may say but the recording has no trace of.
    secrets: Mutex<Vec<KnownSecret>>,
    /// Why the replay cannot go on.
    problem: SetOnce<String>,
}

impl ReplayedRun {
    /// Prepares the answers of a golden.
    ///
    /// # Errors
    ///
    /// A base URL of the golden is none.
    pub(crate) fn new(
        golden: Golden,
        environment: &Environment,
        command: &[OsString],
    ) -> Result<Self, UpstreamError> {
        let agent = golden.input.agent.as_ref();
        let base_urls = agent.map(|agent| &agent.base_urls);
        let upstreams = Upstreams::from_recording(base_urls.unwrap_or(&Default::default()))?;
        let servers = Mutex::new(ServersState::new(&golden));
        let timeline = Timeline::new(&golden);
        let mut secrets = credentials::of_environment(environment);
        secrets.extend(credentials::of_command(command));
        let golden = Arc::new(golden);
        let secrets = Mutex::new(secrets);
        let problem = SetOnce::new();
        let state = RunState { golden, upstreams, servers, timeline, secrets, problem };
        Ok(Self(Arc::new(state)))
    }

    /// Starts the servers for the agent.
    ///
    /// # Errors
    ///
    /// The system gives no port or no directory.
    pub(crate) async fn serve(&self) -> io::Result<RunServers> {
        let model_server = ModelServer::bind().await?;
        let variables = self.0.upstreams.variables(&model_server);
        let keys = replay_keys().filter(|(name, _)| std::env::var_os(name).is_none());
        let variables: Vec<(_, OsString)> = variables.into_iter().chain(keys).collect();
        let run = Arc::new(self.clone());
        RunServers::start(model_server, run.clone(), ToolsSocket::bind()?, run, variables)
    }

    /// Completes when the agent did something that was not recorded.
    pub(crate) async fn failed(&self) {
        self.0.problem.wait().await;
    }

    /// Returns what the agent did that was not recorded.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.0.problem.get().map(String::as_str)
    }

    /// Returns the recorded answers that nothing asked for.
    pub(crate) fn unused(&self) -> Vec<String> {
        self.lock().unused(&self.0.golden)
    }

    /// Returns the numbers of requests to the model and of tool calls so far.
    pub(crate) fn counts(&self) -> (usize, usize) {
        let script = &self.lock().script;
        (script.requests(), script.begun_calls())
    }

    pub(crate) fn replayed(&self, end: &AgentEnd) -> Golden {
        let script = &self.lock().script;
        let mut golden_output = run_output(end, script.requests(), script.made_calls());
        redact_value(&mut golden_output, &self.secrets(), find_credentials);
        Golden { golden_output, ..(*self.0.golden).clone() }
    }

    fn lock(&self) -> MutexGuard<'_, ServersState> {
        self.0.servers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn secrets(&self) -> Vec<KnownSecret> {
        self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn add_secrets(&self, secrets: Vec<KnownSecret>) {
        let mut known = self.0.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        credentials::add(&mut known, secrets);
    }

    /// Ends the replay. The first problem explains the others.
    fn report(&self, problem: String) {
        self.0.problem.set(problem).ok();
    }

    async fn answer_request(&self, request: ModelRequest) -> ModelAnswer {
        let ModelRequest { method, provider, path_and_query, headers, body } = request;
        let Some((_, url)) = self.0.upstreams.url(&provider, &path_and_query) else {
            let text = format!("no provider is named `{provider}`");
            return Ok(error_response(StatusCode::NOT_FOUND, &text));
        };
        self.add_secrets(credentials::of_headers(&headers));
        let mut body = (!body.is_empty()).then(|| body_json(&body));
        if let Some(body) = &mut body {
            redact_value(body, &self.secrets(), find_credentials);
        }
        let sent =
            SentRequest { method: method.as_str(), url: url.as_str(), body: body.as_deref() };
        let reply = self.lock().script.take_reply(sent);
        self.0.timeline.on_request();
        let (at, reply) = match reply {
            Ok(reply) => reply,
            Err(miss) => return Ok(self.end_with(miss.to_string())),
        };
        let head = Departure::Head(at);
        if !matches!(reply, ReplyRecord::Silent {}) {
            if let Err(first) = self.0.timeline.turn(head).await {
                let answer = format!("the response to request {}", at + 1);
                return Ok(self.end_with(self.too_early(&answer, first)));
            }
            self.0.timeline.depart(head);
        }
        match reply {
            ReplyRecord::Http(response) => Ok(self.model_response(at, response)),
            ReplyRecord::Failed { .. } => Err(ConnectionLost),
            // The agent gives up as it did.
            ReplyRecord::Silent {} => future::pending().await,
        }
    }

    /// Ends the replay. The libraries repeat no request with this status.
    fn end_with(&self, problem: String) -> Response<ModelBody> {
        let response = error_response(StatusCode::BAD_REQUEST, &problem);
        self.report(problem);
        response
    }

    /// Describes something that waits for what the agent does not ask for.
    fn too_early(&self, answer: &str, first: Departure) -> String {
        let first = match first {
            Departure::Head(at) | Departure::Body(at) => {
                format!("the response to request {}", at + 1)
            }
            Departure::Result(at) => {
                let name = self.0.golden.tool_calls.get(at).map_or("?", |call| &call.name);
                format!("the result of call {} (`{name}`)", at + 1)
            }
        };
        format!(
            "the agent waits for {answer}, and in the recording {first} came before, for which it has \
             not asked"
        )
    }

    /// Returns a recorded response, whose chunks leave one by one.
    fn model_response(&self, at: usize, record: HttpResponseRecord) -> Response<ModelBody> {
        let body = Body { run: self.clone(), at, is_complete: false };
        let count = record.chunks.len();
        let chunks = record.chunks.into_iter().enumerate().map(|(number, chunk)| {
            let bytes = Bytes::copy_from_slice(&chunk.data.to_bytes().unwrap_or_default());
            (number + 1 == count, bytes)
        });
        let chunks: Vec<_> = chunks.collect();
        let chunks = stream::unfold((chunks.into_iter(), body), async |(mut chunks, mut body)| {
            let (is_last, bytes) = chunks.next()?;
            // The server writes what it has when the body has nothing more.
            tokio::task::yield_now().await;
            let turn = if is_last { body.turn().await } else { Ok(()) };
            Some((turn.map(|()| bytes), (chunks, body)))
        });
        let body = match record.end {
            StreamEnd::Complete { .. } => chunks.boxed(),
            StreamEnd::Failed { .. } => {
                let failure = async {
                    tokio::task::yield_now().await;
                    Err(ConnectionLost)
                };
                chunks.chain(stream::once(failure)).boxed()
            }
            // The agent reads no further, as before.
            StreamEnd::Unread {} => chunks.chain(stream::pending()).boxed(),
        };
        let mut response = Response::new(body_of(body));
        // A record from a file may have any number.
        *response.status_mut() =
            StatusCode::from_u16(record.status).unwrap_or(StatusCode::BAD_GATEWAY);
        for (name, value) in &record.headers {
            if let (Ok(name), Ok(value)) =
                (HeaderName::try_from(name), HeaderValue::try_from(value))
            {
                response.headers_mut().append(name, value);
            }
        }
        response
    }

    async fn serve_connection(
        &self,
        arguments: Vec<String>,
        mut stream: BufReader<UnixStream>,
    ) -> io::Result<()> {
        write_line(&mut stream, &Welcome { mode: RunMode::Replay }).await?;
        let connection =
            ReplayedConnection::new(self.0.golden.clone(), &mut self.lock(), &arguments);
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(miss) => {
                self.report(miss.to_string());
                return Ok(());
            }
        };
        let (reader, mut writer) = split(stream);
        let lines = stream::try_unfold(BufReader::new(reader), async |mut reader| {
            Ok::<_, io::Error>(next_line(&mut reader).await?.map(|line| (line, reader)))
        });
        let mut lines = pin!(lines);
        let mut waiting = FuturesUnordered::new();
        loop {
            let changed = self.0.timeline.changed();
            let mut out = Vec::new();
            connection.send_notifications(&mut self.lock(), &mut out);
            writer.write_all(&out).await?;
            out.clear();
            tokio::select! {
                line = lines.try_next() => {
                    let Some(line) = line? else { return Ok(()) };
                    if let Err(miss) = connection.on_line(&mut self.lock(), &line, &mut out) {
                        self.report(miss.to_string());
                    }
                    self.0.timeline.on_request();
                    for call in connection.take_answered() {
                        waiting.push(async move {
                            (self.0.timeline.turn(Departure::Result(call.position)).await, call)
                        });
                    }
                }
                Some((turn, call)) = waiting.next() => {
                    if let Err(first) = turn {
                        let answer = format!("the result of call {}", call.position + 1);
                        self.report(self.too_early(&answer, first));
                        continue;
                    }
                    connection.end_call(&mut self.lock(), &call, &mut out);
                    self.0.timeline.depart(Departure::Result(call.position));
                }
                () = changed => {}
            }
            writer.write_all(&out).await?;
        }
    }
}

/// The body of a response, which has left when nobody reads it any more.
struct Body {
    run: ReplayedRun,
    at: usize,
    is_complete: bool,
}

impl Body {
    async fn turn(&mut self) -> Result<(), ConnectionLost> {
        let departure = Departure::Body(self.at);
        if let Err(first) = self.run.0.timeline.turn(departure).await {
            let answer = format!("the end of the response to request {}", self.at + 1);
            self.run.report(self.run.too_early(&answer, first));
            return Err(ConnectionLost);
        }
        self.run.0.timeline.depart(departure);
        self.is_complete = true;
        Ok(())
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if !self.is_complete {
            self.run.0.timeline.depart(Departure::Body(self.at));
        }
    }
}

impl ModelSide for ReplayedRun {
    fn respond(self: Arc<Self>, request: ModelRequest) -> BoxFuture<'static, ModelAnswer> {
        async move { self.answer_request(request).await }.boxed()
    }
}

impl ToolsSide for ReplayedRun {
    fn serve(
        self: Arc<Self>,
        arguments: Vec<String>,
        stream: BufReader<UnixStream>,
    ) -> BoxFuture<'static, io::Result<()>> {
        async move { self.serve_connection(arguments, stream).await }.boxed()
    }
}
