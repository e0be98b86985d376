//! The HTTP request handler of a remote server, with faults.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use bytes::Bytes;
use http_body_util::{BodyExt, Limited};
use hyper::Request;
use hyper::body::Incoming;
use hyper::header::{CONTENT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::upgrade::OnUpgrade;
use serde_json::Value;
use tokio::sync::watch;

use super::body::{self, HttpResponse};
use super::bridge::Bridge;
use super::builder::{RemoteServerBuilder, RemoteTransport};
use super::events::EventLog;
use super::fault::{self, FaultAction};
use super::listener::{ConnectionFault, ConnectionFaultSender};
use super::request_log::RequestLog;
use super::tasks::ServerTasks;
use super::{body_writer, headers, sse, streamable, websocket};

/// Maximum size of a request body in bytes.
const MAX_BODY_BYTES: usize = 256 * 1024 * 1024;

/// Maximum number of concurrent sessions; more than any test needs.
const MAX_SESSIONS: usize = 64;

/// The state of a running remote server, shared by its connections.
#[derive(Debug)]
pub(super) struct ServerState {
    config: RemoteServerBuilder,
    origin: String,
    log: RequestLog,
    tasks: ServerTasks,
    faults: FaultCounts,
    bridges: Bridges,
    reset_signal: watch::Sender<()>,
    last_stream: AtomicU64,
}

/// How often each fault matched, and what was applied.
#[derive(Debug)]
struct FaultCounts {
    matches: Mutex<Vec<usize>>,
    applied: Mutex<Vec<String>>,
}

/// The fixture servers behind a remote server.
#[derive(Debug, Default)]
struct Bridges {
    sessions: Mutex<HashMap<String, Arc<McpSession>>>,
    shared: Mutex<Option<Arc<Bridge>>>,
    all: Mutex<Vec<Weak<Bridge>>>,
}

/// A session with its own fixture server.
#[derive(Debug)]
pub(super) struct McpSession {
    pub(super) id: String,
    pub(super) bridge: Arc<Bridge>,
    pub(super) events: Arc<EventLog>,
}

#[derive(Debug)]
pub(super) struct IncomingRequest {
    pub(super) head: Parts,
    pub(super) body: Bytes,
    /// The body as JSON; null if the body is not JSON.
    pub(super) message: Value,
    pub(super) fault: Option<FaultAction>,
    pub(super) connection_faults: ConnectionFaultSender,
    pub(super) upgrade: Option<OnUpgrade>,
}

impl IncomingRequest {
    /// Returns the JSON-RPC method.
    pub(super) fn rpc_method(&self) -> Option<&str> {
        self.message.get("method")?.as_str()
    }

    pub(super) fn is_request(&self) -> bool {
        self.message.get("method").is_some() && self.message.get("id").is_some()
    }

    pub(super) async fn reset_connection(&self) -> HttpResponse {
        self.connection_faults.inject(ConnectionFault::Reset).await;
        std::future::pending().await
    }
}

impl ServerState {
    pub(super) fn new(config: RemoteServerBuilder, origin: String) -> Arc<Self> {
        let matches = Mutex::new(vec![0; config.faults.len()]);
        Arc::new(Self {
            config,
            origin,
            log: RequestLog::new(),
            tasks: ServerTasks::default(),
            faults: FaultCounts { matches, applied: Mutex::default() },
            bridges: Bridges::default(),
            reset_signal: watch::Sender::new(()),
            last_stream: AtomicU64::new(0),
        })
    }

    pub(super) fn config(&self) -> &RemoteServerBuilder {
        &self.config
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn log(&self) -> &RequestLog {
        &self.log
    }

    pub(super) fn tasks(&self) -> &ServerTasks {
        &self.tasks
    }

    pub(super) fn url(&self) -> String {
        let path = self.config.transport.path();
        if self.config.socket.is_some() {
            return format!("unix://{}#{path}", self.origin);
        }
        match self.config.transport {
            RemoteTransport::WebSocket => {
                format!("{}{path}", self.origin.replacen("http", "ws", 1))
            }
            RemoteTransport::Streamable
            | RemoteTransport::Sse
            | RemoteTransport::RequestRecorder => format!("{}{path}", self.origin),
        }
    }

    /// Returns a receiver that changes when every connection must be reset.
    pub(super) fn reset_signal(&self) -> watch::Receiver<()> {
        self.reset_signal.subscribe()
    }

    pub(super) fn reset_connections(&self) {
        self.reset_signal.send_replace(());
    }

    /// Returns the next stream id, starting at one.
    pub(super) fn next_stream(&self) -> u64 {
        self.last_stream.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Returns the fault that affects a request.
    pub(super) fn match_fault(&self, http: Option<&str>, rpc: Option<&str>) -> Option<FaultAction> {
        let mut struck = lock(&self.faults.matches);
        let mut matched = None;
        for (fault, count) in self.config.faults.iter().zip(struck.iter_mut()) {
            if fault.matches_request(http, rpc) {
                *count += 1;
                if matched.is_none() && fault.applies_to(*count) {
                    matched = Some(fault.action.clone());
                }
            }
        }
        lock(&self.faults.applied).extend(matched.iter().map(|action| format!("{action:?}")));
        matched
    }

    pub(super) fn applied_faults(&self) -> Vec<String> {
        lock(&self.faults.applied).clone()
    }

    /// Starts a session with this id; none if there are too many sessions.
    pub(super) fn start_session(&self, id: String) -> Option<Arc<McpSession>> {
        let bridge = self.start_bridge()?;
        let session = Arc::new(McpSession { id: id.clone(), bridge, events: EventLog::new() });
        let mut sessions = lock(&self.bridges.sessions);
        sessions.retain(|_, session| !session.bridge.has_ended());
        if sessions.len() >= MAX_SESSIONS {
            return None;
        }
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// Returns the session with this id if its fixture server runs.
    pub(super) fn session(&self, id: &str) -> Option<Arc<McpSession>> {
        lock(&self.bridges.sessions).get(id).filter(|session| !session.bridge.has_ended()).cloned()
    }

    /// Ends a session and kills its fixture server; returns whether the session existed.
    pub(super) fn end_session(&self, id: &str) -> bool {
        let session = lock(&self.bridges.sessions).remove(id);
        session.is_some_and(|session| {
            session.bridge.kill();
            true
        })
    }

    /// Returns the shared fixture server; starts it again after an exit.
    pub(super) fn shared_bridge(&self) -> Option<Arc<Bridge>> {
        let mut shared = lock(&self.bridges.shared);
        if shared.as_ref().is_none_or(|bridge| bridge.has_ended()) {
            *shared = self.start_bridge();
        }
        shared.clone()
    }

    fn start_bridge(&self) -> Option<Arc<Bridge>> {
        let bridge = Bridge::start(self.config.fixture.as_ref()?, &self.tasks);
        let mut bridges = lock(&self.bridges.all);
        bridges.retain(|bridge| bridge.strong_count() > 0);
        bridges.push(Arc::downgrade(&bridge));
        Some(bridge)
    }

    /// Returns all fixture servers.
    pub(super) fn bridges(&self) -> Vec<Arc<Bridge>> {
        lock(&self.bridges.all).iter().filter_map(Weak::upgrade).collect()
    }

    /// Ends every task and kills every fixture server.
    pub(super) fn stop(&self) {
        self.tasks.stop();
        for bridge in self.bridges() {
            bridge.kill();
        }
        if let Some(path) = &self.config.socket {
            // The test may have removed the socket already.
            let _ = std::fs::remove_file(path);
        }
    }

    /// Waits for the end of all tasks and processes.
    pub(super) async fn join(&self) {
        self.tasks.join().await;
        for bridge in self.bridges() {
            bridge.kill_and_wait().await;
        }
    }
}

pub(super) async fn respond(
    served: Arc<ServerState>,
    connection_faults: ConnectionFaultSender,
    mut request: Request<Incoming>,
) -> Result<HttpResponse, Infallible> {
    let upgrade = request.headers().contains_key("upgrade");
    let upgrade = upgrade.then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, MAX_BODY_BYTES).collect().await else {
        return Ok(body::empty_response(413));
    };
    let text = body.to_bytes();
    let message: Value = serde_json::from_slice(&text).unwrap_or_default();
    let rpc = message.get("method").and_then(Value::as_str);
    let action = served.match_fault(Some(head.method.as_str()), rpc);
    let description = action.as_ref().map(|action| format!("{action:?}"));
    let number = served.log.add(&head, &text, description);
    let reply = apply_fault_and_respond(
        &served,
        IncomingRequest { head, body: text, message, fault: action, connection_faults, upgrade },
    )
    .await;
    served.log.record_status(number, reply.status().as_u16());
    Ok(reply)
}

async fn apply_fault_and_respond(
    served: &Arc<ServerState>,
    request: IncomingRequest,
) -> HttpResponse {
    match &request.fault {
        Some(FaultAction::Reply(scripted)) => return fault_response(scripted, &request.message),
        Some(FaultAction::Delay(delay)) => body_writer::pause_or_hang(*delay).await,
        Some(FaultAction::ResetBeforeResponse) => return request.reset_connection().await,
        Some(FaultAction::EndlessHeaders) => {
            request.connection_faults.inject(ConnectionFault::EndlessHeaders).await;
            return std::future::pending().await;
        }
        Some(FaultAction::ForgetSession) => {
            if let Some(id) =
                headers::header_text(&request.head.headers, headers::SESSION_ID_HEADER)
            {
                served.end_session(id);
            }
        }
        _ => {}
    }
    let action = request.fault.clone();
    let mut reply = match served.config.transport {
        RemoteTransport::RequestRecorder => {
            body::full_response(200, Some("application/json"), "{}")
        }
        RemoteTransport::Streamable => streamable::respond(served, request).await,
        RemoteTransport::Sse => sse::respond(served, request).await,
        RemoteTransport::WebSocket => websocket::respond(served, request),
    };
    let has_body = reply.headers().contains_key(CONTENT_TYPE);
    match action {
        Some(FaultAction::ContentType(value)) if has_body => {
            body::set_header(&mut reply, CONTENT_TYPE.as_str(), &value);
        }
        Some(FaultAction::Gzip) if has_body => {
            body::set_header(&mut reply, CONTENT_ENCODING.as_str(), "gzip");
        }
        _ => {}
    }
    reply
}

fn fault_response(scripted: &fault::FaultResponse, message: &Value) -> HttpResponse {
    let id = message.get("id").cloned().unwrap_or_default();
    let mut reply = match &scripted.error {
        Some((code, text)) => body::json_rpc_error(scripted.status, &id, *code, text),
        None => body::full_response(scripted.status, None, scripted.body.clone()),
    };
    for (name, value) in &scripted.headers {
        let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(name), Ok(value)) = parsed else { panic!("invalid header `{name}: {value}`") };
        if name == CONTENT_TYPE {
            reply.headers_mut().remove(CONTENT_TYPE);
        }
        reply.headers_mut().append(name, value);
    }
    reply
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
