//! A host that has a fault brought about in it, again and again, from one word to another.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_host::{
    Answers, CallError, CallOptions, Config, Environment, Host, Refusal, ReloadOptions,
    ServerRequest,
};
use innkeeper_testkit::fx;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::plan::{FAULTY, How, Play};
use super::{PACE, WELL};

/// How long a server has to be begun with before its fault counts as going on.
const UNDER_WAY: Duration = Duration::from_millis(50);
/// The code of JSON-RPC for a method that nobody knows.
const NOT_FOUND: i64 = -32601;
/// Calls under way at the healthy server: more than are ever made.
const MANY: u32 = 10_000;

/// A host, and what brings a fault about in it.
pub(super) struct Faults {
    pub(super) host: Host,
    without: Value,
    going_on: JoinSet<()>,
    times: Arc<AtomicU64>,
}

impl Faults {
    /// A host of these servers, none of which has a fault.
    pub(super) async fn none(servers: Value) -> Result<Self, String> {
        let without = json!({"servers": servers});
        let host = Host::builder(config(&without)?).callback(&Answers::everything(), answered);
        let host = host.start().await.map_err(|error| format!("start: {error}"))?;
        Ok(Self { host, without, going_on: JoinSet::new(), times: Arc::default() })
    }

    /// Adds the server with this entry and brings its fault about until [`Faults::end`].
    pub(super) async fn begin(&mut self, play: &Play, entry: &Value) -> Result<(), String> {
        let mut with = self.without.clone();
        with["servers"][FAULTY] = entry.clone();
        let (sender, begun) = channel(1);
        let (host, play, with) = (self.host.clone(), play.clone(), config(&with)?);
        let times = self.times.clone();
        let fault = async move { bring_about(&host, &play, with, sender, &times).await };
        self.going_on.spawn(fault);
        told(begun).await
    }

    /// How often its servers have been used, in all rounds.
    pub(super) fn times(&self) -> u64 {
        self.times.load(Ordering::Relaxed)
    }

    /// Ends the fault and its server.
    pub(super) async fn end(&mut self) -> Result<(), String> {
        self.going_on.shutdown().await;
        taken_up(&self.host, config(&self.without)?).await.map(drop)
    }
}

async fn told(mut begun: Receiver<Result<(), String>>) -> Result<(), String> {
    begun.recv().await.unwrap_or_else(|| Err("the fault ended by itself".to_owned()))
}

async fn bring_about(
    host: &Host,
    play: &Play,
    with: Config,
    begun: Sender<Result<(), String>>,
    times: &AtomicU64,
) {
    let tell = |outcome| async { drop(begun.send(outcome).await) };
    match play.how {
        How::Starts => {
            let starting = async {
                // How it ends is the fault.
                times.fetch_add(1, Ordering::Relaxed);
                drop(taken_up(host, with).await);
                loop {
                    times.fetch_add(1, Ordering::Relaxed);
                    drop(host.restart_server(FAULTY).await);
                }
            };
            let telling = async {
                tokio::time::sleep(UNDER_WAY).await;
                tell(Ok(())).await;
            };
            tokio::join!(starting, telling);
        }
        How::Calls | How::CallsAndStarts => {
            let ready = taken_up(host, with).await;
            let failed = ready.is_err();
            tell(ready).await;
            if failed {
                return;
            }
            let (tool, options) = (
                format!("{FAULTY}.{}", play.tool),
                CallOptions { timeout: Some(play.timeout), ..CallOptions::default() },
            );
            loop {
                times.fetch_add(1, Ordering::Relaxed);
                let pace = tokio::time::sleep(PACE);
                let call = host.call_tool_with(&tool, play.arguments.clone(), options.clone());
                let (outcome, ()) = tokio::join!(call, pace);
                let gone = matches!(outcome, Err(CallError::Unavailable { .. }));
                if gone || play.how == How::CallsAndStarts {
                    drop(host.restart_server(FAULTY).await);
                }
            }
        }
    }
}

/// An error when a server of it does not become ready.
async fn taken_up(host: &Host, config: Config) -> Result<(), String> {
    let options = ReloadOptions { config: Some(config), ..ReloadOptions::default() };
    let report = host.reload_with(options).await.map_err(|error| format!("reload: {error}"))?;
    match report.failed.first() {
        Some(failure) => Err(format!("`{}` is not ready: {failure:?}", failure.server)),
        None => Ok(()),
    }
}

fn config(file: &Value) -> Result<Config, String> {
    let environment = Environment::from_pairs([("PATH", "/usr/bin:/bin")]);
    Config::from_value(file, "neighbour", Path::new("."), &environment)
        .map_err(|error| format!("configuration: {error}"))
}

/// What an application answers that has something to say at once.
async fn answered(request: ServerRequest) -> Result<Value, Refusal> {
    match &*request.method {
        "roots/list" => Ok(json!({"roots": []})),
        "elicitation/create" => Ok(json!({"action": "accept", "content": {"colour": "red"}})),
        "sampling/createMessage" => Ok(json!({
            "role": "assistant", "model": "none", "content": {"type": "text", "text": "red"},
        })),
        _ => Err(Refusal::new(NOT_FOUND, "nobody answers that")),
    }
}

/// The entry of the healthy server.
pub(super) fn well() -> Value {
    json!({WELL: fx(WELL).key("maxConcurrent", MANY).entry()})
}
