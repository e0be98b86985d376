//! The application of a simulation: does what the plan says and notes what it sees.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use super::plan::{Action, Call, Ending, What, document};
use super::street::Street;
use crate::error::{RestartError, ServerFailure};
use crate::{
    CallError, CallKind, CallOptions, Config, Environment, Host, ReloadOptions, ServerState,
};

/// How a call ended.
#[derive(Clone, Debug)]
pub(super) enum End {
    /// With a result, and what it says. An old copy is `stale`.
    Ok {
        text: String,
        stale: bool,
    },
    ToolError,
    Failed {
        kind: CallKind,
        may_have_run: bool,
        tried: bool,
        words: String,
    },
    /// Its future was dropped.
    Dropped,
}

/// One call and its end.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// Its own, and of no other call.
    pub(super) key: String,
    pub(super) call: Call,
    /// Whether the server took calls as it began.
    pub(super) ready: bool,
    pub(super) began: Instant,
    pub(super) ended: Instant,
    pub(super) end: End,
}

/// A time in which the application itself disturbed a server.
#[derive(Clone, Debug)]
pub(super) struct Disturbed {
    server: String,
    from: Instant,
    until: Option<Instant>,
}

impl Disturbed {
    /// Whether the server was restarted or reloaded at that time.
    pub(super) fn covers(&self, server: &str, at: Instant) -> bool {
        self.server == server && self.from <= at && self.until.is_none_or(|until| at <= until)
    }

    pub(super) fn touches(&self, seen: &Seen) -> bool {
        self.server == seen.call.server.name
            && self.from <= seen.ended
            && self.until.is_none_or(|until| seen.began <= until)
    }
}

/// The application while it runs.
pub(super) struct Application {
    pub(super) host: Host,
    street: Street,
    calls: JoinSet<Seen>,
    orders: JoinSet<Vec<ServerFailure>>,
    made: usize,
    pub(super) disturbed: Arc<Mutex<Vec<Disturbed>>>,
    /// What was wrong on the way.
    pub(super) broken: Vec<String>,
}

pub(super) fn config(servers: &[super::plan::ServerPlan]) -> Config {
    let environment = Environment::from_pairs([("HOME", "/")]);
    let base = std::path::Path::new("/");
    Config::from_value(&document(servers), "simulation", base, &environment).unwrap()
}

impl Application {
    pub(super) fn new(host: Host, street: Street) -> Self {
        Self {
            host,
            street,
            calls: JoinSet::new(),
            orders: JoinSet::new(),
            made: 0,
            disturbed: Arc::default(),
            broken: Vec::new(),
        }
    }

    /// Begins an action.
    pub(super) fn act(&mut self, action: Action) {
        self.look();
        match action {
            Action::Calls(calls) => {
                for call in calls {
                    self.made += 1;
                    let key = format!("c{}", self.made);
                    self.calls.spawn(make(self.host.clone(), key, call));
                }
            }
            Action::Restart(name) => {
                let (host, over) = (self.host.clone(), self.disturb([name.clone()]));
                self.orders.spawn(async move {
                    let restarted = host.restart_server(&name).await;
                    over();
                    match restarted {
                        Err(RestartError::Failed(failure)) => vec![*failure],
                        Ok(()) | Err(RestartError::Unknown(_) | RestartError::Shutdown) => {
                            Vec::new()
                        }
                    }
                });
            }
            Action::Reload { servers, apply, touched } => {
                self.street.settle(&servers);
                let (host, over) = (self.host.clone(), self.disturb(touched));
                let options =
                    ReloadOptions { config: Some(config(&servers)), apply_changes: apply };
                self.orders.spawn(async move {
                    let reloaded = host.reload_with(options).await;
                    over();
                    reloaded.map(|report| report.failed).unwrap_or_default()
                });
            }
        }
    }

    /// Notes that servers are disturbed, until what is given is called.
    fn disturb(&self, servers: impl IntoIterator<Item = String>) -> impl FnOnce() + Send + 'static {
        let disturbed = self.disturbed.clone();
        let from = Instant::now();
        let (first, count) = {
            let mut all = disturbed.lock().unwrap_or_else(PoisonError::into_inner);
            let first = all.len();
            all.extend(servers.into_iter().map(|server| Disturbed { server, from, until: None }));
            (first, all.len() - first)
        };
        move || {
            let mut all = disturbed.lock().unwrap_or_else(PoisonError::into_inner);
            for one in &mut all[first..first + count] {
                one.until = Some(Instant::now());
            }
        }
    }

    /// The catalog has no tool of a server that does not take calls.
    fn look(&mut self) {
        let status = self.host.status();
        for tool in self.host.catalog().tool_names() {
            let server = tool.split('.').next().unwrap_or_default();
            let state = status.get(server).map(|status| status.state);
            if state != Some(ServerState::Ready) {
                self.broken
                    .push(format!("catalog: `{tool}` is offered by a server that is {state:?}"));
            }
        }
    }

    /// Waits for what it has begun; gives the calls, and the servers that did not start again.
    pub(super) async fn finish(&mut self, limit: Duration) -> (Vec<Seen>, Vec<ServerFailure>) {
        let (mut seen, mut failures) = (Vec::new(), Vec::new());
        let all = async {
            while let Some(call) = self.calls.join_next().await {
                seen.push(call.unwrap());
            }
            while let Some(order) = self.orders.join_next().await {
                failures.extend(order.unwrap());
            }
        };
        if timeout(limit, all).await.is_err() {
            let (calls, orders) = (self.calls.len(), self.orders.len());
            self.broken.push(format!("every call ends: {calls} calls, {orders} orders have not"));
            self.calls.abort_all();
            self.orders.abort_all();
        }
        seen.sort_by_key(|seen| seen.key[1..].parse::<usize>().unwrap_or_default());
        (seen, failures)
    }

    /// Takes leave of the host as `ending` says, within `limit`.
    pub(super) async fn leave(&mut self, ending: Ending, limit: Duration) {
        if ending == Ending::Kill {
            self.host.kill();
        }
        if ending == Ending::Impatient {
            drop(timeout(Duration::from_millis(50), self.host.shutdown()).await);
        }
        if ending == Ending::Drop {
            return;
        }
        let began = Instant::now();
        let report = self.host.shutdown().await;
        let took = began.elapsed();
        if took > limit {
            self.broken.push(format!("shutdown in its budget: it took {took:?}, not {limit:?}"));
        }
        for server in report.servers.iter().filter(|server| server.leftovers) {
            self.broken.push(format!("shutdown leaves nothing: of `{}` it did", server.server));
        }
        let left = self.host.catalog().tool_names().count();
        if left > 0 {
            self.broken.push(format!("catalog: {left} tools are offered after the shutdown"));
        }
        // What was told to end takes note of that.
        sleep(Duration::from_millis(100)).await;
        for (name, status) in self.host.status() {
            if status.in_flight > 0 {
                self.broken.push(format!("no pending request: `{name}` has {}", status.in_flight));
            }
        }
    }
}

async fn make(host: Host, key: String, call: Call) -> Seen {
    let began = Instant::now();
    let catalog = host.catalog();
    let ready =
        catalog.server(&call.server.name).is_some_and(|it| it.state() == ServerState::Ready);
    let asked = ask(&host, &key, &call);
    let end = match call.patience {
        None => asked.await,
        Some(patience) => timeout(patience, asked).await.unwrap_or(End::Dropped),
    };
    Seen { key, ready, began, ended: Instant::now(), end, call }
}

async fn ask(host: &Host, key: &str, call: &Call) -> End {
    let server = &call.server.name;
    let options = CallOptions { fresh: call.fresh, ..CallOptions::default() };
    let result = match call.what {
        What::Work | What::Look => {
            let tool = if call.what == What::Work { "work" } else { "look" };
            let arguments = if call.misfit { json!({ "key": 7 }) } else { json!({ "key": key }) };
            match host.call_tool_with(&format!("{server}.{tool}"), arguments, options).await {
                Ok(result) if result.is_error() => return End::ToolError,
                Ok(result) => Ok(result.into_raw()),
                Err(error) => Err(error),
            }
        }
        What::Prompt(number) => {
            host.get_prompt(&format!("{server}.p{number}"), &Map::new(), options).await
        }
        What::Resource(number) => {
            host.read_resource(&format!("sim://{server}/{number}"), Some(server), options).await
        }
    };
    match result {
        Ok(raw) => {
            let result: Value = serde_json::from_str(raw.get()).unwrap();
            let text = match call.what {
                What::Work | What::Look => &result["content"][0]["text"],
                What::Prompt(_) => &result["messages"][0]["content"]["text"],
                What::Resource(_) => &result["contents"][0]["text"],
            };
            let stale = result["_meta"]["stale"] == true;
            End::Ok { text: text.as_str().unwrap_or_default().to_owned(), stale }
        }
        Err(error) => {
            let (may_have_run, tried) = match &error {
                CallError::Unavailable { may_have_run, attempts, .. } => {
                    (*may_have_run, *attempts > 0)
                }
                CallError::Routing(_) | CallError::Validation { .. } => (false, false),
                CallError::Timeout { .. }
                | CallError::Protocol { .. }
                | CallError::Server { .. }
                | CallError::Withheld { .. } => (true, true),
            };
            End::Failed { kind: error.kind(), may_have_run, tried, words: error.to_string() }
        }
    }
}
