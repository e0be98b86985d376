//! The application of a simulation: executes the plan and records the outcomes.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::plan::{ApplicationAction, CallTarget, HostEnding, PlannedCall, config_json};
use super::state::Simulation;
use crate::error::{RestartError, ServerFailure};
use crate::{
    CallError, CallErrorKind, CallOptions, Config, Environment, Host, ReloadOptions, ServerState,
};

/// The outcome of a call.
#[derive(Clone, Debug)]
pub(super) enum ObservedOutcome {
    /// The call returned a result with this text. `stale` is the mark of a stale result.
    Ok {
        text: String,
        stale: bool,
    },
    ToolError,
    Failed {
        kind: CallErrorKind,
        may_have_run: bool,
        attempted: bool,
        message: String,
    },
    /// The future of the call was dropped.
    Dropped,
}

/// A call with its outcome.
#[derive(Clone, Debug)]
pub(super) struct ObservedCall {
    /// The unique key of the call.
    pub(super) key: String,
    pub(super) call: PlannedCall,
    /// Whether the server accepted calls when the call started.
    pub(super) server_ready: bool,
    pub(super) started_at: Instant,
    pub(super) ended_at: Instant,
    pub(super) outcome: ObservedOutcome,
}

/// A period in which the application restarted or reloaded a server.
#[derive(Clone, Debug)]
pub(super) struct Disturbance {
    server: String,
    from: Instant,
    until: Option<Instant>,
}

impl Disturbance {
    /// Returns whether the period contains this time.
    pub(super) fn covers(&self, server: &str, at: Instant) -> bool {
        self.server == server && self.from <= at && self.until.is_none_or(|until| at <= until)
    }

    pub(super) fn overlaps(&self, observed: &ObservedCall) -> bool {
        self.server == observed.call.server.name
            && self.from <= observed.ended_at
            && self.until.is_none_or(|until| observed.started_at <= until)
    }
}

pub(super) struct Application {
    pub(super) host: Host,
    simulation: Simulation,
    calls: JoinSet<ObservedCall>,
    operations: JoinSet<Vec<ServerFailure>>,
    call_count: usize,
    pub(super) disturbances: Arc<Mutex<Vec<Disturbance>>>,
    /// The violated invariants.
    pub(super) violations: Vec<String>,
}

pub(super) fn build_config(servers: &[super::plan::ServerPlan]) -> Config {
    let environment = Environment::from_pairs([("HOME", "/")]);
    let base = std::path::Path::new("/");
    Config::from_value(&config_json(servers), "simulation", base, &environment).unwrap()
}

impl Application {
    pub(super) fn new(host: Host, simulation: Simulation) -> Self {
        Self {
            host,
            simulation,
            calls: JoinSet::new(),
            operations: JoinSet::new(),
            call_count: 0,
            disturbances: Arc::default(),
            violations: Vec::new(),
        }
    }

    pub(super) fn perform(&mut self, action: ApplicationAction) {
        self.check_catalog();
        match action {
            ApplicationAction::Calls(calls) => {
                for call in calls {
                    self.call_count += 1;
                    let key = format!("c{}", self.call_count);
                    self.calls.spawn(run_call(self.host.clone(), key, call));
                }
            }
            ApplicationAction::Restart(name) => {
                let host = self.host.clone();
                let end_disturbance = self.start_disturbance([name.clone()]);
                self.operations.spawn(async move {
                    let restarted = host.restart_server(&name).await;
                    end_disturbance();
                    match restarted {
                        Err(RestartError::Failed(failure)) => vec![*failure],
                        Ok(()) | Err(RestartError::UnknownServer(_) | RestartError::Shutdown) => {
                            Vec::new()
                        }
                    }
                });
            }
            ApplicationAction::Reload { servers, apply, affected } => {
                self.simulation.set_plans(&servers);
                let host = self.host.clone();
                let end_disturbance = self.start_disturbance(affected);
                let options = ReloadOptions {
                    config: Some(build_config(&servers)),
                    apply_changes: apply,
                    trust: None,
                };
                self.operations.spawn(async move {
                    let reloaded = host.reload_with(options).await;
                    end_disturbance();
                    reloaded.map(|report| report.failed).unwrap_or_default()
                });
            }
        }
    }

    /// Records a disturbance of the servers until the returned function is called.
    fn start_disturbance(
        &self,
        servers: impl IntoIterator<Item = String>,
    ) -> impl FnOnce() + Send + 'static {
        let disturbed = self.disturbances.clone();
        let from = Instant::now();
        let (first, count) = {
            let mut all = disturbed.lock().unwrap_or_else(PoisonError::into_inner);
            let first = all.len();
            all.extend(servers.into_iter().map(|server| Disturbance { server, from, until: None }));
            (first, all.len() - first)
        };
        move || {
            let mut all = disturbed.lock().unwrap_or_else(PoisonError::into_inner);
            for disturbance in &mut all[first..first + count] {
                disturbance.until = Some(Instant::now());
            }
        }
    }

    /// Checks that the catalog contains only tools of ready servers.
    fn check_catalog(&mut self) {
        let status = self.host.status();
        for tool in self.host.catalog().tool_names() {
            let server = tool.split('.').next().unwrap_or_default();
            let state = status.get(server).map(|status| status.state);
            if state != Some(ServerState::Ready) {
                self.violations
                    .push(format!("catalog: `{tool}` belongs to a server that is {state:?}"));
            }
        }
    }

    /// Waits for all calls and operations. Returns the calls and the servers that failed to
    /// restart.
    pub(super) async fn wait_all(
        &mut self,
        limit: Duration,
    ) -> (Vec<ObservedCall>, Vec<ServerFailure>) {
        let mut observed = Vec::new();
        let mut failures = Vec::new();
        let all = async {
            while let Some(call) = self.calls.join_next().await {
                observed.push(call.unwrap());
            }
            while let Some(operation) = self.operations.join_next().await {
                failures.extend(operation.unwrap());
            }
        };
        if timeout(limit, all).await.is_err() {
            let calls = self.calls.len();
            let operations = self.operations.len();
            self.violations.push(format!(
                "every call ends: {calls} calls and {operations} operations have not ended"
            ));
            self.calls.abort_all();
            self.operations.abort_all();
        }
        observed.sort_by_key(|observed_call| {
            observed_call.key[1..].parse::<usize>().unwrap_or_default()
        });
        (observed, failures)
    }

    /// Ends the host with the given ending, within `limit`.
    pub(super) async fn stop_host(&mut self, ending: HostEnding, limit: Duration) {
        if ending == HostEnding::Kill {
            self.host.kill();
        }
        if ending == HostEnding::AbandonedShutdown {
            let _ = timeout(Duration::from_millis(50), self.host.shutdown()).await;
        }
        if ending == HostEnding::Drop {
            return;
        }
        let started_at = Instant::now();
        let report = self.host.shutdown().await;
        let took = started_at.elapsed();
        if took > limit {
            self.violations
                .push(format!("shutdown within the limit: took {took:?}, limit {limit:?}"));
        }
        for server in report.servers.iter().filter(|server| server.leftovers) {
            self.violations
                .push(format!("shutdown leaves no process: `{}` has leftovers", server.server));
        }
        let tool_count = self.host.catalog().tool_names().count();
        if tool_count > 0 {
            self.violations
                .push(format!("the catalog is empty after shutdown: {tool_count} tools"));
        }
        // The stopped tasks need time to finish.
        sleep(Duration::from_millis(100)).await;
        for (name, status) in self.host.status() {
            if status.in_flight > 0 {
                self.violations.push(format!(
                    "no request in flight after shutdown: `{name}` has {}",
                    status.in_flight
                ));
            }
        }
    }
}

async fn run_call(host: Host, key: String, call: PlannedCall) -> ObservedCall {
    let started_at = Instant::now();
    let catalog = host.catalog();
    let server_ready = catalog
        .server(&call.server.name)
        .is_some_and(|server| server.state() == ServerState::Ready);
    let request = send_call(&host, &key, &call);
    let outcome = match call.drop_after {
        None => request.await,
        Some(limit) => timeout(limit, request).await.unwrap_or(ObservedOutcome::Dropped),
    };
    ObservedCall { key, server_ready, started_at, ended_at: Instant::now(), outcome, call }
}

async fn send_call(host: &Host, key: &str, call: &PlannedCall) -> ObservedOutcome {
    let server = &call.server.name;
    let options = CallOptions { fresh: call.fresh, ..CallOptions::default() };
    let result = match call.target {
        CallTarget::WriteTool | CallTarget::ReadOnlyTool => {
            let tool = if call.target == CallTarget::WriteTool { "work" } else { "look" };
            let arguments =
                if call.invalid_arguments { json!({ "key": 7 }) } else { json!({ "key": key }) };
            match host.call_tool_with(&format!("{server}.{tool}"), arguments, options).await {
                Ok(result) if result.is_error() => return ObservedOutcome::ToolError,
                Ok(result) => Ok(result.into_raw()),
                Err(error) => Err(error),
            }
        }
        CallTarget::Prompt(number) => {
            host.get_prompt(&format!("{server}.p{number}"), &Map::new(), options).await
        }
        CallTarget::Resource(number) => {
            host.read_resource(&format!("sim://{server}/{number}"), Some(server), options).await
        }
    };
    match result {
        Ok(raw) => {
            let result: Value = serde_json::from_str(raw.get()).unwrap();
            let text = match call.target {
                CallTarget::WriteTool | CallTarget::ReadOnlyTool => &result["content"][0]["text"],
                CallTarget::Prompt(_) => &result["messages"][0]["content"]["text"],
                CallTarget::Resource(_) => &result["contents"][0]["text"],
            };
            let stale = result["_meta"]["stale"] == true;
            ObservedOutcome::Ok { text: text.as_str().unwrap_or_default().to_owned(), stale }
        }
        Err(error) => {
            let (may_have_run, attempted) = match &error {
                CallError::Unavailable { may_have_run, attempts, .. } => {
                    (*may_have_run, *attempts > 0)
                }
                CallError::Routing(_) | CallError::Validation { .. } => (false, false),
                CallError::Timeout { .. }
                | CallError::Protocol { .. }
                | CallError::Server { .. }
                | CallError::Withheld { .. } => (true, true),
            };
            ObservedOutcome::Failed {
                kind: error.kind(),
                may_have_run,
                attempted,
                message: error.to_string(),
            }
        }
    }
}
