//! Status, metrics and pins of the servers, without traffic.

use std::sync::Arc;
use std::time::SystemTime;

use indexmap::IndexMap;
use innkeeper_config::InvalidServer;
use innkeeper_process::{ProcessContainment, ProcessTable, ProcessUsage};
use tokio::time::Instant;

use super::Host;
use crate::catalog::{Catalog, CatalogEntry};
use crate::error::UnavailableReason;
use crate::lifecycle::ServerState;
use crate::lock::Lock;
use crate::metrics::{ServerMetrics, prometheus};
use crate::registry::invalid_reason;

/// The status of one server.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// The state in the lifecycle.
    pub state: ServerState,
    /// The process id of the server itself, while the process runs.
    pub pid: Option<u32>,
    /// The containment of the process tree, while the process runs.
    pub isolation: Option<ProcessContainment>,
    /// The reason why the server is unavailable, as a text.
    pub reason: Option<String>,
    /// The reason why the server is unavailable.
    pub unavailable_reason: Option<UnavailableReason>,
    /// What to change so that the next start can succeed, if the last start failed because of a
    /// frequent problem, or if the entry of the server has errors. See
    /// [`ServerFailure::hint`](crate::error::ServerFailure::hint).
    pub start_hint: Option<String>,
    /// Whether the last start failed because a user must sign in.
    pub needs_user_sign_in: bool,
    /// The time of the last call with a result that is not an error.
    pub last_success: Option<SystemTime>,
    /// The number of requests without a response yet.
    pub in_flight: usize,
    /// The last output on stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// The excluded tools, each with the reason.
    pub excluded_tools: Vec<(Box<str>, String)>,
    /// The changed configuration keys that wait for a restart.
    pub pending_restart: Vec<&'static str>,
}

impl ServerStatus {
    fn for_invalid_server(server: &InvalidServer) -> Self {
        Self {
            state: ServerState::Unavailable,
            pid: None,
            isolation: None,
            reason: Some(invalid_reason(server).to_string()),
            unavailable_reason: Some(invalid_reason(server)),
            start_hint: server.problems.iter().find_map(|problem| problem.hint.clone()),
            needs_user_sign_in: false,
            last_success: None,
            in_flight: 0,
            stderr: String::new(),
            excluded_tools: Vec::new(),
            pending_restart: Vec::new(),
        }
    }
}

impl Host {
    /// Returns the status of every configured server, including servers that are not in the catalog
    /// and, at the end, servers whose entries have errors ([`Config::invalid`]). A server is ready when
    /// calls find it.
    ///
    /// [`Config::invalid`]: crate::Config::invalid
    pub fn status(&self) -> IndexMap<Arc<str>, ServerStatus> {
        // Before the states, which the catalog follows: an older catalog can only say less.
        let catalog = self.0.registry.catalog();
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let status = server.status();
            let running = status.handle.as_ref();
            let server_status = ServerStatus {
                state: state_for_calls(&catalog, &server.name, status.state),
                pid: running.and_then(|running| running.pid),
                isolation: running.and_then(|running| running.containment),
                reason: status.unavailable_reason.as_ref().map(ToString::to_string),
                unavailable_reason: status.unavailable_reason.clone(),
                start_hint: status.next_start.last_failure.hint.clone(),
                needs_user_sign_in: status.next_start.last_failure.needs_user_sign_in,
                last_success: server.metrics.last_success().map(to_system_time),
                in_flight: status
                    .entry
                    .as_ref()
                    .map_or(0, |entry| entry.connection.session.in_flight()),
                stderr: running.map_or_else(
                    || status.next_start.last_failure.stderr.clone(),
                    |running| running.stderr.tail(4 << 10),
                ),
                excluded_tools: status.entry.as_deref().map(excluded_tools).unwrap_or_default(),
                pending_restart: status
                    .next_start
                    .pending_settings
                    .as_ref()
                    .map_or_else(Vec::new, |pending| pending.keys.clone()),
            };
            (server.name.clone(), server_status)
        });
        let invalid = self.0.registry.invalid_servers();
        let invalid = invalid
            .iter()
            .map(|(name, server)| (name.clone(), ServerStatus::for_invalid_server(server)));
        servers.chain(invalid).collect()
    }

    /// Returns the processes of each server with processes, with their resident memory.
    ///
    /// Takes the processes from `table`, so that several hosts can use one.
    pub fn process_usage(&self, table: &ProcessTable) -> IndexMap<Arc<str>, ProcessUsage> {
        let servers = self.0.registry.servers().into_iter().filter_map(|server| {
            let (pid, containment) = {
                let status = server.status();
                let running = status.handle.as_ref()?;
                (running.pid?, running.containment?)
            };
            Some((server.name.clone(), table.server_usage(pid, containment)))
        });
        servers.collect()
    }

    /// Returns the pins of every ready server, as the content for `mcp.lock`. Needs no traffic.
    pub fn pins(&self) -> Lock {
        self.0.registry.pins()
    }

    /// Returns the counts and latencies of every server since the start of the host.
    pub fn metrics(&self) -> IndexMap<Arc<str>, ServerMetrics> {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let mut counts = server.metrics.server_metrics();
            if let Some(entry) = &server.status().entry {
                (counts.cache.entries, counts.cache.bytes) =
                    entry.connection.freshness.cache.size();
            }
            (server.name.clone(), counts)
        });
        servers.collect()
    }

    /// Returns the metrics in the Prometheus text format 0.0.4. Serve the text as `text/plain;
    /// version=0.0.4`. Contains more metrics than [`Host::metrics`].
    pub fn prometheus(&self) -> String {
        self.prometheus_for(|_| true)
    }

    /// Returns the metrics of the servers that `is_shown` selects, like [`Host::prometheus`].
    pub fn prometheus_for(&self, is_shown: impl Fn(&str) -> bool) -> String {
        let servers = self.0.registry.servers().into_iter();
        let servers = servers.filter(|server| is_shown(&server.name)).map(|server| {
            let status = server.status();
            let entry = status.entry.as_ref();
            prometheus::ServerSample {
                server: server.name.clone(),
                up: status.state == ServerState::Ready,
                restarts: status.next_start.backoff.restart_count(),
                cache: entry
                    .map(|entry| entry.connection.freshness.cache.size())
                    .unwrap_or_default(),
                counts: server.metrics.snapshot(),
            }
        });
        prometheus::render(&servers.collect::<Vec<_>>())
    }
}

/// Returns the state as calls find it: the catalog shows a ready server a moment after its state.
fn state_for_calls(catalog: &Catalog, server: &str, state: ServerState) -> ServerState {
    if state == ServerState::Ready && catalog.is_starting(server) {
        ServerState::Starting
    } else {
        state
    }
}

/// Returns the excluded tools, each with the reason.
fn excluded_tools(entry: &CatalogEntry) -> Vec<(Box<str>, String)> {
    entry
        .excluded
        .tools
        .iter()
        .map(|excluded| (excluded.tool.view.name.as_str().into(), excluded.reason.clone()))
        .collect()
}

/// Converts a past instant into a time of day.
fn to_system_time(moment: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(moment.elapsed()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::CatalogServer;

    #[test]
    fn a_server_is_not_ready_before_calls_find_it() {
        let catalog_with = |state| {
            let server = CatalogServer {
                name: "a".into(),
                state,
                transport: "stdio",
                unavailable_reason: None,
                entry: None,
            };
            Catalog::build(vec![server], false)
        };
        let starting = catalog_with(ServerState::Starting);
        assert_eq!(state_for_calls(&starting, "a", ServerState::Ready), ServerState::Starting);
        assert_eq!(
            state_for_calls(&starting, "a", ServerState::Unavailable),
            ServerState::Unavailable
        );
        // A host that starts or stops has no such servers.
        for catalog in [Catalog::default(), catalog_with(ServerState::Shutdown)] {
            assert_eq!(state_for_calls(&catalog, "a", ServerState::Ready), ServerState::Ready);
        }
    }
}
