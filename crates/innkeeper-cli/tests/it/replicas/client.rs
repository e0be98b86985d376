//! A client of one revision that records what it sees.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use innkeeper_host::{Environment, http_client};
use reqwest::header::{ACCEPT, CONTENT_TYPE};
use reqwest::{RequestBuilder, Response};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, timeout};

use super::history::{CallKind, EventKind, History, Outcome};

/// The revision without sessions.
pub(super) const STATELESS: &str = "2026-07-28";

/// Maximum time of a call: the time in which a replica finds an owner, twice, and the call.
const CALL_TIME: Duration = Duration::from_secs(30);

/// Maximum time to get a session.
const SESSION_TIME: Duration = Duration::from_secs(30);

/// Time before a new attempt.
const RETRY_DELAY: Duration = Duration::from_millis(200);

const SESSION_ID: &str = "mcp-session-id";

/// A call before it is sent.
#[derive(Clone, Debug)]
pub(super) struct Call {
    /// The number in the history, in the log of the server, and the id of the request.
    pub(super) number: u64,
    pub(super) kind: CallKind,
    /// Number of its progress messages.
    pub(super) steps: u64,
    pub(super) method: &'static str,
    pub(super) params: Value,
    /// A text in the result.
    pub(super) expected: String,
}

/// A client of one revision.
#[derive(Debug)]
pub(super) struct Client {
    http: reqwest::Client,
    url: String,
    revision: &'static str,
    headers: Vec<(&'static str, String)>,
    session: RwLock<Option<String>>,
    history: Arc<History>,
}

impl Client {
    pub(super) fn new(url: String, revision: &'static str, history: &Arc<History>) -> Self {
        let http = http_client(&Environment::default(), false).unwrap();
        let (session, history) = (RwLock::default(), history.clone());
        Self { http, url, revision, headers: Vec::new(), session, history }
    }

    /// Sends an API key with each request.
    pub(super) fn with_key(self, key: &str) -> Self {
        self.with_header("authorization", format!("Bearer {key}"))
    }

    /// Sends a header with each request.
    pub(super) fn with_header(mut self, name: &'static str, value: String) -> Self {
        self.headers.push((name, value));
        self
    }

    /// Sends the requests to another address.
    pub(super) fn at(&self, url: String) -> Self {
        Self {
            http: self.http.clone(),
            url,
            revision: self.revision,
            headers: self.headers.clone(),
            session: RwLock::new(self.session()),
            history: self.history.clone(),
        }
    }

    pub(super) fn is_stateless(&self) -> bool {
        self.revision == STATELESS
    }

    pub(super) fn session(&self) -> Option<String> {
        self.session.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets a session, unless there is a newer one.
    pub(super) fn forget(&self, session: &str) {
        let mut current = self.session.write().unwrap_or_else(PoisonError::into_inner);
        if current.as_deref() == Some(session) {
            *current = None;
        }
    }

    fn request(&self, method: reqwest::Method, session: Option<&str>) -> RequestBuilder {
        let mut request = self.http.request(method, &self.url);
        request = request.header("mcp-protocol-version", self.revision);
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        match session {
            Some(session) => request.header(SESSION_ID, session),
            None => request,
        }
    }

    /// Sends a message.
    pub(super) async fn post(
        &self,
        session: Option<&str>,
        message: &Value,
    ) -> reqwest::Result<Response> {
        let mut request = self.request(reqwest::Method::POST, session);
        if self.is_stateless() {
            request = request.header("mcp-method", message["method"].as_str().unwrap());
            if let Some(name) = message["params"]["name"].as_str() {
                request = request.header("mcp-name", name);
            }
        }
        let request = request
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "application/json, text/event-stream");
        request.body(message.to_string()).send().await
    }

    /// Resumes an event stream.
    pub(super) async fn resume(&self, session: &str, after: &str) -> reqwest::Result<Response> {
        let request = self.request(reqwest::Method::GET, Some(session));
        request.header(ACCEPT, "text/event-stream").header("last-event-id", after).send().await
    }

    /// Ends a session and returns the status.
    pub(super) async fn delete(&self, session: &str) -> Option<u16> {
        let response = self.request(reqwest::Method::DELETE, Some(session)).send().await;
        response.ok().map(|response| response.status().as_u16())
    }

    /// Returns the session, a new one if there is none; `None` without a session in time.
    pub(super) async fn open(&self) -> Option<String> {
        let deadline = Instant::now() + SESSION_TIME;
        while Instant::now() < deadline {
            if let Some(session) = self.session() {
                return Some(session);
            }
            if let Some(session) = self.initialize().await {
                *self.session.write().unwrap_or_else(PoisonError::into_inner) = Some(session);
                continue;
            }
            sleep(RETRY_DELAY).await;
        }
        None
    }

    async fn initialize(&self) -> Option<String> {
        let message = json!({ "jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {
            "protocolVersion": self.revision,
            "capabilities": {},
            "clientInfo": { "name": "test", "version": "1" },
        }});
        let response = self.post(None, &message).await.ok()?;
        let session = response.headers().get(SESSION_ID)?.to_str().ok()?.to_owned();
        let initialized = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" });
        let _ = self.post(Some(&session), &initialized).await;
        Some(session)
    }

    /// Sends calls in one request, and records their events. Forgets a session that ended.
    pub(super) async fn call(&self, calls: &[Call]) {
        let session = match self.is_stateless() {
            true => None,
            false => {
                let session = self.open().await;
                assert!(session.is_some(), "no session within {SESSION_TIME:?}");
                session
            }
        };
        for call in calls {
            let (kind, steps) = (call.kind, call.steps);
            self.history.add(call.number, EventKind::Started { kind, steps });
        }
        let mut waiting = Waiting { history: &self.history, calls: calls.to_vec() };
        let exchanging = self.exchange(session.as_deref(), calls, &mut waiting);
        let outcome = timeout(CALL_TIME, exchanging).await.unwrap_or(Outcome::TimedOut);
        waiting.end_all(&outcome);
    }

    /// Returns how the calls ended that got no response.
    async fn exchange(
        &self,
        session: Option<&str>,
        calls: &[Call],
        waiting: &mut Waiting<'_>,
    ) -> Outcome {
        let messages: Vec<Value> = calls.iter().map(|call| self.message(call)).collect();
        let message = match &messages[..] {
            [message] => message.clone(),
            messages => json!(messages),
        };
        let mut response = match self.post(session, &message).await {
            Ok(response) => response,
            Err(error) if error.is_connect() => return Outcome::Refused(0),
            Err(_) => return Outcome::Broken("no response".to_owned()),
        };
        match response.status().as_u16() {
            200 => {}
            status @ (404 | 421 | 429 | 503) => {
                if let (404, Some(session)) = (status, session) {
                    self.forget(session);
                }
                return Outcome::Refused(status);
            }
            status @ (502 | 504) => return Outcome::Broken(format!("status {status}")),
            status => return Outcome::Wrong(format!("status {status}")),
        }
        let is_json = response.headers()[CONTENT_TYPE] == "application/json";
        if is_json {
            match response.bytes().await {
                Ok(body) => waiting.receive(&String::from_utf8_lossy(&body)),
                Err(_) => return Outcome::Broken("response broke off".to_owned()),
            }
            return Outcome::Broken("the response lacks the call".to_owned());
        }
        let mut last_id = None;
        loop {
            read_events(&mut response, &mut last_id, waiting).await;
            if waiting.calls.is_empty() {
                return Outcome::Acknowledged;
            }
            let (Some(session), Some(after)) = (session, &last_id) else {
                return Outcome::Broken("stream without ids broke off".to_owned());
            };
            waiting.add(&EventKind::BrokeOff);
            response = loop {
                match self.resume(session, after).await {
                    Ok(response) if response.status() == 200 => break response,
                    Ok(response) if response.status() == 404 => {
                        self.forget(session);
                        let body = response.text().await.unwrap_or_default();
                        return Outcome::Broken(format!("not resumed: {body}"));
                    }
                    Ok(_) | Err(_) => sleep(RETRY_DELAY).await,
                }
            };
        }
    }

    /// Returns the request of a call.
    pub(super) fn message(&self, call: &Call) -> Value {
        let mut params = call.params.clone();
        let mut meta = json!({ "progressToken": call.number });
        if self.is_stateless() {
            meta["io.modelcontextprotocol/protocolVersion"] = json!(STATELESS);
            meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
            meta["io.modelcontextprotocol/clientInfo"] = json!({ "name": "test", "version": "1" });
        }
        params["_meta"] = meta;
        json!({ "jsonrpc": "2.0", "id": call.number, "method": call.method, "params": params })
    }
}

/// The calls of one request that wait for their responses.
struct Waiting<'a> {
    history: &'a History,
    calls: Vec<Call>,
}

impl Waiting<'_> {
    /// Records an event of the stream for all calls.
    fn add(&self, kind: &EventKind) {
        for call in &self.calls {
            self.history.add(call.number, kind.clone());
        }
    }

    fn end_all(&mut self, outcome: &Outcome) {
        self.add(&EventKind::Ended(outcome.clone()));
        self.calls.clear();
    }

    /// Takes a message, or a batch.
    fn receive(&mut self, text: &str) {
        let Ok(message) = serde_json::from_str::<Value>(text) else {
            return self.end_all(&Outcome::Wrong(format!("not JSON: {text}")));
        };
        match message {
            Value::Array(messages) => messages.iter().for_each(|message| self.take(message)),
            message => self.take(&message),
        }
    }

    fn take(&mut self, message: &Value) {
        if message["method"] == "notifications/progress" {
            let token = message["params"]["progressToken"].as_u64();
            let step = message["params"]["progress"].as_u64().unwrap_or_default();
            let known = self.calls.iter().any(|call| Some(call.number) == token);
            match (known, token) {
                (true, Some(number)) => self.history.add(number, EventKind::Progress(step)),
                _ => self.end_all(&Outcome::Wrong(message.to_string())),
            }
            return;
        }
        let place = self.calls.iter().position(|call| message["id"] == json!(call.number));
        let Some(place) = place else {
            return self.end_all(&Outcome::Wrong(message.to_string()));
        };
        let call = self.calls.remove(place);
        self.history.add(call.number, EventKind::Ended(outcome(&call, message)));
    }
}

/// Returns how a call ended by its response.
fn outcome(call: &Call, response: &Value) -> Outcome {
    let error = &response["error"];
    match error["data"]["mayHaveRun"].as_bool() {
        _ if error.is_null() && response["result"].to_string().contains(&call.expected) => {
            Outcome::Acknowledged
        }
        _ if error.is_null() => Outcome::Wrong(response.to_string()),
        Some(true) => Outcome::Unknown,
        Some(false) => Outcome::NotRun,
        None => Outcome::Failed(error["message"].as_str().unwrap_or_default().to_owned()),
    }
}

/// Reads events until the end of the body, or until all calls have their responses.
async fn read_events(
    response: &mut Response,
    last_id: &mut Option<String>,
    waiting: &mut Waiting<'_>,
) {
    let mut text = Vec::new();
    while let Ok(Some(chunk)) = response.chunk().await {
        text.extend_from_slice(&chunk);
        while let Some(end) = text.windows(2).position(|window| window == b"\n\n") {
            let event: Vec<u8> = text.drain(..end + 2).collect();
            take_event(&String::from_utf8_lossy(&event), last_id, waiting);
        }
        if waiting.calls.is_empty() {
            return;
        }
    }
}

fn take_event(event: &str, last_id: &mut Option<String>, waiting: &mut Waiting<'_>) {
    let field = |name: &str| {
        let line = event.lines().find_map(|line| line.strip_prefix(name));
        line.map(str::trim)
    };
    if let Some(id) = field("id:") {
        let numbers = id.split_once('-').and_then(|(stream, position)| {
            Some((stream.parse::<u64>().ok()?, position.parse::<u64>().ok()?))
        });
        let Some((stream, position)) = numbers else {
            return waiting.end_all(&Outcome::Wrong(format!("event id {id}")));
        };
        waiting.add(&EventKind::Message { stream, position });
        *last_id = Some(id.to_owned());
    }
    if let Some(data) = field("data:").filter(|data| !data.is_empty()) {
        waiting.receive(data);
    }
}
