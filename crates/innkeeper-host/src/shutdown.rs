//! How a host stops its servers: dependents first, each in stages, all within one bounded time.

use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::config::Config;
use crate::registry::Registry;
use crate::server::process::{Exit, Stopped};
use crate::server::{Server, StopOrder};
use crate::tasks::Group;

/// How long calls under way may finish once their server, or the host, is told to stop.
pub(crate) const DRAIN: Duration = Duration::from_secs(1);

/// What is added to the grace of a wave before its servers are given up: the kill and the reaping.
const AFTER_GRACE: Duration = Duration::from_secs(2);

/// What it took to stop a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// It left when its input was closed.
    OnEof,
    /// It left when it was sent SIGTERM.
    OnTerm,
    /// It had to be killed.
    OnKill,
    /// The connection to it was closed; its process is somebody else's.
    Disconnected,
    /// It was gone before.
    AlreadyGone,
}

impl Stage {
    /// The word used in JSON and logs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OnEof => "on-eof",
            Self::OnTerm => "on-term",
            Self::OnKill => "on-kill",
            Self::Disconnected => "disconnected",
            Self::AlreadyGone => "already-gone",
        }
    }
}

impl From<Stopped> for Stage {
    fn from(stopped: Stopped) -> Self {
        match stopped {
            Stopped::OnEof => Self::OnEof,
            Stopped::OnTerm => Self::OnTerm,
            Stopped::OnKill => Self::OnKill,
        }
    }
}

/// How one server was stopped.
#[derive(Clone, Debug)]
pub struct ServerStopped {
    /// The server.
    pub server: Arc<str>,
    /// What it took.
    pub stage: Stage,
    /// How its process ended; a remote server has none of ours.
    pub exit: Option<Exit>,
    /// From the closing of its input until nothing of it was left.
    pub took: Duration,
    /// Whether something of its process tree could not be ended in time.
    pub leftovers: bool,
}

/// Who stopped how, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ShutdownReport {
    /// Every server that had been started.
    pub servers: Vec<ServerStopped>,
    /// From the call until the last one was gone.
    pub took: Duration,
}

impl ShutdownReport {
    /// Whether every server left by itself with exit code 0 and nothing is left of any.
    pub fn is_clean(&self) -> bool {
        self.servers.iter().all(|server| {
            let left = server.stage == Stage::OnEof && server.exit.is_some_and(Exit::success);
            (left || server.stage == Stage::Disconnected) && !server.leftovers
        })
    }
}

/// Stops every running server, waves of dependents first. The waves share the longest
/// `shutdownTimeout`, so the whole ends within it and two seconds.
pub(crate) async fn stop_all(registry: &Arc<Registry>, config: &Config) -> ShutdownReport {
    let began = Instant::now();
    registry.close();
    // Whoever was stopping these has given up.
    let mut leaving = Group::new();
    for server in registry.leaving() {
        let grace = server.config().shutdown_timeout;
        leaving.spawn(stop_one(server, grace));
    }
    let mut stopped = stop_waves(config, |name| registry.server(name)).await;
    while let Some(report) = leaving.next().await {
        stopped.extend(report);
    }
    registry.settle();
    let order = |report: &ServerStopped| config.servers.get_index_of(&*report.server);
    stopped.sort_by_key(order);
    ShutdownReport { servers: stopped, took: began.elapsed() }
}

/// Stops those servers of a configuration that `find` finds, waves of dependents first, within the
/// longest `shutdownTimeout` and two seconds.
pub(crate) async fn stop_waves(
    config: &Config,
    find: impl Fn(&str) -> Option<Arc<Server>>,
) -> Vec<ServerStopped> {
    let waves = config.waves();
    let waves = waves.iter().map(|wave| wave.iter().filter_map(|name| find(name)).collect());
    let mut waves: Vec<Vec<Arc<Server>>> = waves.collect();
    waves.retain(|wave| !wave.is_empty());
    let count = u32::try_from(waves.len()).unwrap_or(1).max(1);
    let mut stopped = Vec::new();
    for wave in waves.into_iter().rev() {
        let mut group = Group::new();
        for server in wave {
            let grace = server.config().shutdown_timeout / count;
            group.spawn(stop_one(server, grace));
        }
        while let Some(report) = group.next().await {
            stopped.extend(report);
        }
    }
    stopped
}

/// The report of a server that is stopped already is the one from then: whoever asked for it may
/// have stopped waiting.
pub(crate) async fn stop_one(server: Arc<Server>, grace: Duration) -> Option<ServerStopped> {
    let running = server.status().running.clone();
    let Some(handle) = running else { return server.status().stopped.clone() };
    let began = Instant::now();
    let (done, report) = oneshot::channel();
    // A task that is gone has dropped its process, which kills the tree.
    let stopped = async {
        handle.stop.send(StopOrder { grace, done }).await.ok()?;
        report.await.ok()
    };
    let report = match timeout(grace + AFTER_GRACE, stopped).await {
        Ok(report) => report.or_else(|| server.status().stopped.clone()),
        Err(_) => {
            if let Some(killer) = &handle.killer {
                killer.kill();
            }
            Some(ServerStopped {
                server: server.name.clone(),
                stage: Stage::OnKill,
                exit: handle.pid.map(|_| Exit::Unknown),
                took: began.elapsed(),
                leftovers: true,
            })
        }
    };
    if report.as_ref().is_some_and(|report| report.leftovers) {
        let server = &*server.name;
        tracing::error!(severity = "critical", server, "something of it could not be ended");
    }
    report
}
