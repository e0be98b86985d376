//! How the servers are: their states, counts and pins, told without traffic.

use std::sync::Arc;
use std::time::SystemTime;

use indexmap::IndexMap;
use tokio::time::Instant;

use super::Host;
use crate::catalog::{Hidden, Shelf};
use crate::lifecycle::ServerState;
use crate::lock::Lock;
use crate::measure::{ServerMetrics, prometheus};
use crate::server::process::Isolation;

/// One server as the host sees it.
#[derive(Clone, Debug)]
pub struct ServerStatus {
    /// Where it is in its life.
    pub state: ServerState,
    /// The process id of the server itself, while it runs.
    pub pid: Option<u32>,
    /// What holds its process tree together, while it runs.
    pub isolation: Option<Isolation>,
    /// Why it is unavailable.
    pub reason: Option<String>,
    /// When a call last had a result that is not an error; moves with nothing else.
    pub last_success: Option<SystemTime>,
    /// Requests that wait for its answer.
    pub in_flight: usize,
    /// The last it wrote to stderr, escaped for display; at most 4 KiB.
    pub stderr: String,
    /// Tools it has that are not offered, with the reason.
    pub hidden: Vec<(Box<str>, String)>,
    /// Keys of its configuration that have changed and wait until it is started again.
    pub pending_restart: Vec<&'static str>,
}

impl Host {
    /// Every server of the configuration with its state, also those that are not in the catalog.
    pub fn status(&self) -> IndexMap<Arc<str>, ServerStatus> {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let status = server.status();
            let running = status.running.as_ref();
            let told = ServerStatus {
                state: status.state,
                pid: running.and_then(|running| running.pid),
                isolation: running.and_then(|running| running.isolation),
                reason: status.lost.as_ref().map(ToString::to_string),
                last_success: server.meter.last_success().map(by_the_wall),
                in_flight: status
                    .shelf
                    .as_ref()
                    .map_or(0, |shelf| shelf.connection.session.in_flight()),
                stderr: running.map(|running| running.stderr.tail(4 << 10)).unwrap_or_default(),
                hidden: status.shelf.as_deref().map(hidden).unwrap_or_default(),
                pending_restart: status
                    .pending
                    .as_ref()
                    .map_or_else(Vec::new, |pending| pending.keys.clone()),
            };
            (server.name.clone(), told)
        });
        servers.collect()
    }

    /// The pins of every server that is ready now: what `mcp.lock` would hold. No traffic.
    pub fn pins(&self) -> Lock {
        self.0.registry.pins()
    }

    /// Counts and latencies of every server since the start.
    pub fn metrics(&self) -> IndexMap<Arc<str>, ServerMetrics> {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let mut told = server.meter.snapshot();
            if let Some(shelf) = &server.status().shelf {
                (told.cache_entries, told.cache_bytes) = shelf.connection.cache.size();
            }
            (server.name.clone(), told)
        });
        servers.collect()
    }

    /// The same and more as text for Prometheus (format 0.0.4), to be served as
    /// `text/plain; version=0.0.4`.
    pub fn prometheus(&self) -> String {
        let servers = self.0.registry.servers().into_iter().map(|server| {
            let status = server.status();
            let shelf = status.shelf.as_ref();
            prometheus::Sample {
                server: server.name.clone(),
                up: status.state == ServerState::Ready,
                restarts: status.falls.returns(),
                cache: shelf.map(|shelf| shelf.connection.cache.size()).unwrap_or_default(),
                counts: server.meter.counts(),
            }
        });
        prometheus::text(&servers.collect::<Vec<_>>())
    }
}

/// The tools that are kept out, with the reason.
fn hidden(shelf: &Shelf) -> Vec<(Box<str>, String)> {
    let told = |hidden: &Hidden| (hidden.tool.view.name.as_str().into(), hidden.reason.clone());
    shelf.hidden.iter().map(told).collect()
}

/// The time of day of a moment that is over.
fn by_the_wall(moment: Instant) -> SystemTime {
    let now = SystemTime::now();
    now.checked_sub(moment.elapsed()).unwrap_or(now)
}
