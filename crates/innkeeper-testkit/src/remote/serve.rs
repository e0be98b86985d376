//! One HTTP request: remembered, struck by its fault or handed to the transport.

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

use super::body::{self, Reply};
use super::bridge::Bridge;
use super::events::EventLog;
use super::fault::{self, Act};
use super::listen::{Trick, Tricks};
use super::plan::{Plan, Wire};
use super::seen::Log;
use super::tasks::Tasks;
use super::{headers, pen, sse, streamable, websocket};

/// Bytes a request's body may have, so that none fills the memory.
const LONGEST_BODY: usize = 256 * 1024 * 1024;

/// Conversations at the same time; more than any test has, fewer than a machine can bear.
const SESSIONS: usize = 64;

/// A running remote server, shared by its connections.
#[derive(Debug)]
pub(super) struct Served {
    plan: Plan,
    origin: String,
    log: Log,
    tasks: Tasks,
    struck: Mutex<Vec<usize>>,
    sessions: Mutex<HashMap<String, Arc<Session>>>,
    shared: Mutex<Option<Arc<Bridge>>>,
    bridges: Mutex<Vec<Weak<Bridge>>>,
    broken: watch::Sender<()>,
    streams: AtomicU64,
}

/// One conversation with a fixture server of its own.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) id: String,
    pub(super) bridge: Arc<Bridge>,
    pub(super) events: Arc<EventLog>,
}

/// A request being answered.
#[derive(Debug)]
pub(super) struct Ask {
    pub(super) head: Parts,
    pub(super) text: Bytes,
    /// The body as JSON; null where it is none.
    pub(super) message: Value,
    pub(super) act: Option<Act>,
    pub(super) tricks: Tricks,
    pub(super) upgrade: Option<OnUpgrade>,
}

impl Ask {
    /// The JSON-RPC method.
    pub(super) fn rpc_method(&self) -> Option<&str> {
        self.message.get("method")?.as_str()
    }

    /// Whether the message wants an answer.
    pub(super) fn is_request(&self) -> bool {
        self.message.get("method").is_some() && self.message.get("id").is_some()
    }

    /// Resets the connection instead of answering.
    pub(super) async fn hang_up(&self) -> Reply {
        self.tricks.play(Trick::Reset).await;
        std::future::pending().await
    }
}

impl Served {
    pub(super) fn new(plan: Plan, origin: String) -> Arc<Self> {
        let struck = Mutex::new(vec![0; plan.faults.len()]);
        Arc::new(Self {
            plan,
            origin,
            log: Log::new(),
            tasks: Tasks::default(),
            struck,
            sessions: Mutex::default(),
            shared: Mutex::default(),
            bridges: Mutex::default(),
            broken: watch::Sender::new(()),
            streams: AtomicU64::new(0),
        })
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.plan
    }

    pub(super) fn origin(&self) -> &str {
        &self.origin
    }

    pub(super) fn log(&self) -> &Log {
        &self.log
    }

    pub(super) fn tasks(&self) -> &Tasks {
        &self.tasks
    }

    pub(super) fn url(&self) -> String {
        let path = self.plan.wire.path();
        if self.plan.socket.is_some() {
            return format!("unix://{}#{path}", self.origin);
        }
        match self.plan.wire {
            Wire::WebSocket => format!("{}{path}", self.origin.replacen("http", "ws", 1)),
            Wire::Streamable | Wire::Sse | Wire::Recorder => format!("{}{path}", self.origin),
        }
    }

    /// Changes when every connection is to be broken off.
    pub(super) fn broken(&self) -> watch::Receiver<()> {
        self.broken.subscribe()
    }

    pub(super) fn break_connections(&self) {
        self.broken.send_replace(());
    }

    /// The number of a stream, from one.
    pub(super) fn next_stream(&self) -> u64 {
        self.streams.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// The fault a request meets.
    pub(super) fn strike(&self, http: Option<&str>, rpc: Option<&str>) -> Option<Act> {
        let mut struck = lock(&self.struck);
        let mut found = None;
        for (fault, count) in self.plan.faults.iter().zip(struck.iter_mut()) {
            if fault.is_for(http, rpc) {
                *count += 1;
                if found.is_none() && fault.strikes(*count) {
                    found = Some(fault.act.clone());
                }
            }
        }
        found
    }

    /// Starts a conversation with this id; none when there are too many.
    pub(super) fn begin(&self, id: String) -> Option<Arc<Session>> {
        let bridge = self.start()?;
        let session = Arc::new(Session { id: id.clone(), bridge, events: EventLog::new() });
        let mut sessions = lock(&self.sessions);
        sessions.retain(|_, session| !session.bridge.has_ended());
        if sessions.len() >= SESSIONS {
            return None;
        }
        sessions.insert(id, Arc::clone(&session));
        Some(session)
    }

    /// The conversation with this id, while its fixture server speaks.
    pub(super) fn session(&self, id: &str) -> Option<Arc<Session>> {
        lock(&self.sessions).get(id).filter(|session| !session.bridge.has_ended()).cloned()
    }

    /// Ends a conversation and kills its fixture server; whether there was one.
    pub(super) fn forget(&self, id: &str) -> bool {
        let session = lock(&self.sessions).remove(id);
        session.is_some_and(|session| {
            session.bridge.kill();
            true
        })
    }

    /// The fixture server that serves everyone; started anew when it has ended.
    pub(super) fn shared(&self) -> Option<Arc<Bridge>> {
        let mut shared = lock(&self.shared);
        if shared.as_ref().is_none_or(|bridge| bridge.has_ended()) {
            *shared = self.start();
        }
        shared.clone()
    }

    fn start(&self) -> Option<Arc<Bridge>> {
        let bridge = Bridge::start(self.plan.fixture.as_ref()?, &self.tasks);
        let mut bridges = lock(&self.bridges);
        bridges.retain(|bridge| bridge.strong_count() > 0);
        bridges.push(Arc::downgrade(&bridge));
        Some(bridge)
    }

    /// The fixture servers that are still held.
    pub(super) fn bridges(&self) -> Vec<Arc<Bridge>> {
        lock(&self.bridges).iter().filter_map(Weak::upgrade).collect()
    }

    /// Ends every task and kills every fixture server.
    pub(super) fn stop(&self) {
        self.tasks.stop();
        for bridge in self.bridges() {
            bridge.kill();
        }
        if let Some(path) = &self.plan.socket {
            // One that somebody else removed is as good.
            drop(std::fs::remove_file(path));
        }
    }

    /// Waits until everything has ended.
    pub(super) async fn ended(&self) {
        self.tasks.ended().await;
        for bridge in self.bridges() {
            bridge.gone().await;
        }
    }
}

/// Answers a request.
pub(super) async fn answer(
    served: Arc<Served>,
    tricks: Tricks,
    mut request: Request<Incoming>,
) -> Result<Reply, Infallible> {
    let upgrade = request.headers().contains_key("upgrade");
    let upgrade = upgrade.then(|| hyper::upgrade::on(&mut request));
    let (head, body) = request.into_parts();
    let Ok(body) = Limited::new(body, LONGEST_BODY).collect().await else {
        return Ok(body::empty(413));
    };
    let text = body.to_bytes();
    let message: Value = serde_json::from_slice(&text).unwrap_or_default();
    let rpc = message.get("method").and_then(Value::as_str);
    let act = served.strike(Some(head.method.as_str()), rpc);
    let fault = act.as_ref().map(|act| format!("{act:?}"));
    let number = served.log.add(&head, &text, fault);
    let reply = meet(&served, Ask { head, text, message, act, tricks, upgrade }).await;
    served.log.answered(number, reply.status().as_u16());
    Ok(reply)
}

async fn meet(served: &Arc<Served>, ask: Ask) -> Reply {
    match &ask.act {
        Some(Act::Reply(own)) => return own_reply(own, &ask.message),
        Some(Act::Delay(pause)) => pen::rest(*pause).await,
        Some(Act::HangUp) => return ask.hang_up().await,
        Some(Act::EndlessHead) => {
            ask.tricks.play(Trick::EndlessHead).await;
            return std::future::pending().await;
        }
        Some(Act::Forget) => {
            if let Some(id) = headers::text(&ask.head.headers, headers::SESSION) {
                served.forget(id);
            }
        }
        _ => {}
    }
    let act = ask.act.clone();
    let mut reply = match served.plan.wire {
        Wire::Recorder => body::whole(200, Some("application/json"), "{}"),
        Wire::Streamable => streamable::answer(served, ask).await,
        Wire::Sse => sse::answer(served, ask).await,
        Wire::WebSocket => websocket::answer(served, ask),
    };
    let answers = reply.headers().contains_key(CONTENT_TYPE);
    match act {
        Some(Act::Type(value)) if answers => body::set(&mut reply, CONTENT_TYPE.as_str(), &value),
        Some(Act::Gzip) if answers => body::set(&mut reply, CONTENT_ENCODING.as_str(), "gzip"),
        _ => {}
    }
    reply
}

fn own_reply(own: &fault::Reply, message: &Value) -> Reply {
    let id = message.get("id").cloned().unwrap_or_default();
    let mut reply = match &own.error {
        Some((code, text)) => body::error(own.status, &id, *code, text),
        None => body::whole(own.status, None, own.body.clone()),
    };
    for (name, value) in &own.headers {
        let parsed = (HeaderName::try_from(name), HeaderValue::try_from(value));
        let (Ok(name), Ok(value)) = parsed else { panic!("`{name}: {value}` is no header") };
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
