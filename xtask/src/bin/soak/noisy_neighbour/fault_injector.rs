//! Repeats a fault in a host between two commands.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use innkeeper_host::{
    CallError, CallOptions, CallbackCapabilities, CallbackError, Config, Environment, Host,
    ReloadOptions, ServerRequest,
};
use innkeeper_testkit::fixture;
use serde_json::{Value, json};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::task::JoinSet;

use super::scenarios::{FAULTY_SERVER, FaultScenario, Trigger};
use super::{CALL_INTERVAL, HEALTHY_SERVER};

/// Delay after the start of a server before its fault counts as active.
const FAULT_START_DELAY: Duration = Duration::from_millis(50);
/// The JSON-RPC error code for an unknown method.
const METHOD_NOT_FOUND: i64 = -32601;
/// Maximum concurrent calls of the healthy server: more than the test makes.
const MAX_CONCURRENT_CALLS: u32 = 10_000;

/// A host and the task that repeats the fault.
pub(super) struct FaultInjector {
    pub(super) host: Host,
    base_config: Value,
    fault_tasks: JoinSet<()>,
    use_count: Arc<AtomicU64>,
}

impl FaultInjector {
    /// Starts a host with these servers, without a fault.
    pub(super) async fn without_fault(servers: Value) -> Result<Self, String> {
        let base_config = json!({"servers": servers});
        let host =
            Host::builder(config(&base_config)?).callback(&CallbackCapabilities::all(), respond);
        let host = host.start().await.map_err(|error| format!("start: {error}"))?;
        Ok(Self { host, base_config, fault_tasks: JoinSet::new(), use_count: Arc::default() })
    }

    /// Adds the server with this entry and repeats its fault until [`FaultInjector::end`].
    pub(super) async fn begin(
        &mut self,
        scenario: &FaultScenario,
        entry: &Value,
    ) -> Result<(), String> {
        let mut with = self.base_config.clone();
        with["servers"][FAULTY_SERVER] = entry.clone();
        let (sender, started) = channel(1);
        let (host, scenario, with) = (self.host.clone(), scenario.clone(), config(&with)?);
        let times = self.use_count.clone();
        let injection = async move { run_fault(&host, &scenario, with, sender, &times).await };
        self.fault_tasks.spawn(injection);
        wait_started(started).await
    }

    /// Number of uses of the faulty servers in all rounds.
    pub(super) fn use_count(&self) -> u64 {
        self.use_count.load(Ordering::Relaxed)
    }

    /// Stops the fault and removes its server.
    pub(super) async fn end(&mut self) -> Result<(), String> {
        self.fault_tasks.shutdown().await;
        apply_config(&self.host, config(&self.base_config)?).await.map(drop)
    }
}

async fn wait_started(mut started: Receiver<Result<(), String>>) -> Result<(), String> {
    started.recv().await.unwrap_or_else(|| Err("the fault ended early".to_owned()))
}

async fn run_fault(
    host: &Host,
    scenario: &FaultScenario,
    with: Config,
    started: Sender<Result<(), String>>,
    times: &AtomicU64,
) {
    let report = |outcome| async {
        let _ = started.send(outcome).await;
    };
    match scenario.trigger {
        Trigger::Starts => {
            let starting = async {
                // The result is part of the fault.
                times.fetch_add(1, Ordering::Relaxed);
                let _ = apply_config(host, with).await;
                loop {
                    times.fetch_add(1, Ordering::Relaxed);
                    let _ = host.restart_server(FAULTY_SERVER).await;
                }
            };
            let telling = async {
                tokio::time::sleep(FAULT_START_DELAY).await;
                report(Ok(())).await;
            };
            tokio::join!(starting, telling);
        }
        Trigger::Calls | Trigger::CallsAndRestarts => {
            let ready = apply_config(host, with).await;
            let start_failed = ready.is_err();
            report(ready).await;
            if start_failed {
                return;
            }
            let (tool, options) = (
                format!("{FAULTY_SERVER}.{}", scenario.tool),
                CallOptions { timeout: Some(scenario.timeout), ..CallOptions::default() },
            );
            loop {
                times.fetch_add(1, Ordering::Relaxed);
                let pace = tokio::time::sleep(CALL_INTERVAL);
                let call = host.call_tool_with(&tool, scenario.arguments.clone(), options.clone());
                let (outcome, ()) = tokio::join!(call, pace);
                let unavailable = matches!(outcome, Err(CallError::Unavailable { .. }));
                if unavailable || scenario.trigger == Trigger::CallsAndRestarts {
                    let _ = host.restart_server(FAULTY_SERVER).await;
                }
            }
        }
    }
}

/// Returns an error if a server of the configuration does not become ready.
async fn apply_config(host: &Host, config: Config) -> Result<(), String> {
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

/// Answers a server's request at once, as an application with a ready response.
async fn respond(request: ServerRequest) -> Result<Value, CallbackError> {
    match &*request.method {
        "roots/list" => Ok(json!({"roots": []})),
        "elicitation/create" => Ok(json!({"action": "accept", "content": {"colour": "red"}})),
        "sampling/createMessage" => Ok(json!({
            "role": "assistant", "model": "none", "content": {"type": "text", "text": "red"},
        })),
        _ => Err(CallbackError::new(METHOD_NOT_FOUND, "unsupported request")),
    }
}

/// The configuration entry of the healthy server.
pub(super) fn healthy_entry() -> Value {
    json!({HEALTHY_SERVER: fixture(HEALTHY_SERVER).config_key("maxConcurrent", MAX_CONCURRENT_CALLS).config_entry()})
}
