//! Stops the servers of a host in dependency order within a bounded time.

mod limits;

use std::sync::Arc;
use std::time::Duration;

use innkeeper_config::Config;
use innkeeper_process::ExitStatus;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout};

use crate::error::StopError;
use crate::registry::Registry;
use crate::server::{Server, StopRequest};
use crate::tasks::TaskGroup;

pub use crate::server::{ServerStopReport, StopStage};
pub(crate) use limits::{AwaitedShutdowns, ShutdownLimits};

/// Time for running calls to finish after the stop of their server or of the host.
pub(crate) const DRAIN_TIMEOUT: Duration = Duration::from_secs(1);

/// Time in addition to the grace periods of all waves, for kills and the reaping.
const KILL_GRACE: Duration = Duration::from_secs(2);

/// The report of a shutdown, in the order of the configuration.
#[derive(Clone, Debug, Default)]
pub struct ShutdownReport {
    /// Reports of every server that had been started.
    pub servers: Vec<ServerStopReport>,
    /// Time from the call until the last server was gone.
    pub took: Duration,
}

impl ShutdownReport {
    /// Returns whether every server exited by itself with code 0 and no process remains.
    pub fn is_clean(&self) -> bool {
        self.servers.iter().all(|server| {
            let exited_cleanly =
                server.stage == StopStage::OnEof && server.exit.is_some_and(ExitStatus::success);
            (exited_cleanly || server.stage == StopStage::Disconnected) && !server.leftovers
        })
    }
}

/// Stops every running server in waves, dependents first. The waves share the longest
/// `shutdownTimeout` and end before the deadline, so the shutdown takes at most this time and two
/// seconds.
pub(crate) async fn stop_all(
    registry: &Arc<Registry>,
    config: &Config,
    deadline: Option<Instant>,
) -> ShutdownReport {
    let started = Instant::now();
    registry.close();
    // The task that was stopping these servers was cancelled.
    let mut leaving = TaskGroup::new();
    for server in registry.draining() {
        let grace = limited(server.config().lifecycle.shutdown_timeout, deadline);
        leaving.spawn(stop_one(server, grace));
    }
    let mut stopped = stop_waves(config, deadline, |name| registry.server(name)).await;
    while let Some(report) = leaving.next().await {
        stopped.extend(report);
    }
    registry.shut_down_unstarted();
    stopped.sort_by_key(|report| config.servers.get_index_of(&*report.server));
    ShutdownReport { servers: stopped, took: started.elapsed() }
}

/// Stops the servers of a configuration that `find` returns, in waves, dependents first, within the
/// longest `shutdownTimeout` and two seconds.
pub(crate) async fn stop_waves(
    config: &Config,
    deadline: Option<Instant>,
    find: impl Fn(&str) -> Option<Arc<Server>>,
) -> Vec<ServerStopReport> {
    let waves = config.waves();
    let waves = waves.iter().map(|wave| wave.iter().filter_map(|name| find(name)).collect());
    let mut waves: Vec<Vec<Arc<Server>>> = waves.collect();
    waves.retain(|wave| !wave.is_empty());
    let count = u32::try_from(waves.len()).unwrap_or(1).max(1);
    let mut stopped = Vec::new();
    let mut kill_time = KILL_GRACE;
    for (index, wave) in (0..count).rev().zip(waves.into_iter().rev()) {
        // The waves after this one may need time for kills too.
        let wave_kill_time = if index == 0 { kill_time } else { kill_time / 2 };
        let started = Instant::now();
        let mut longest = Duration::ZERO;
        let mut group = TaskGroup::new();
        for server in wave {
            let grace = limited(server.config().lifecycle.shutdown_timeout, deadline) / count;
            longest = longest.max(grace);
            group.spawn(stop_within(server, grace, wave_kill_time));
        }
        while let Some(report) = group.next().await {
            stopped.extend(report);
        }
        kill_time = kill_time.saturating_sub(started.elapsed().saturating_sub(longest));
    }
    stopped
}

/// Returns a grace period that ends before the deadline.
fn limited(grace: Duration, deadline: Option<Instant>) -> Duration {
    deadline.map_or(grace, |deadline| grace.min(deadline.saturating_duration_since(Instant::now())))
}

/// Stops one server. If it is already stopped, returns the earlier report, because the earlier
/// requester may have stopped waiting.
pub(crate) async fn stop_one(server: Arc<Server>, grace: Duration) -> Option<ServerStopReport> {
    stop_within(server, grace, KILL_GRACE).await
}

/// Stops one server for the application: rejects new calls, drains the calls in flight, then stops
/// the server. A stopped server stays stopped. Other servers are not affected, not even dependents.
pub(crate) async fn stop_requested(
    registry: &Registry,
    server: &Arc<Server>,
) -> Result<(), StopError> {
    let _turn = server.restart_lock.lock().await;
    let stopping = async {
        if let Some(last_entry) = registry.mark_stopping(server) {
            // Longer calls fail when the server stops.
            let _ = timeout(DRAIN_TIMEOUT, last_entry.connection.session.idle()).await;
        }
        let report = stop_one(server.clone(), server.config().lifecycle.shutdown_timeout).await;
        // The task of a server that ran has done this, unless its stop timed out.
        registry.mark_stopped(server, report.as_ref());
        Ok(())
    };
    tokio::select! {
        biased;
        // The shutdown of the host, or the reload that removed the server, stops the server.
        () = registry.closed() => Err(StopError::Shutdown),
        _ = server.removed.wait() => Err(StopError::UnknownServer((&*server.name).into())),
        result = stopping => result,
    }
}

/// Stops one server within `grace` and `kill_time`.
async fn stop_within(
    server: Arc<Server>,
    grace: Duration,
    kill_time: Duration,
) -> Option<ServerStopReport> {
    let running = server.status().handle.clone();
    let Some(handle) = running else { return server.status().stop_report.clone() };
    let started = Instant::now();
    let (done, report) = oneshot::channel();
    // A task that no longer exists has dropped its process, which kills the tree.
    let stopped = async {
        // The supervising task reports before this wait ends.
        let exit_grace = kill_time / 2;
        handle.stop.send(StopRequest { grace, exit_grace, done }).await.ok()?;
        report.await.ok()
    };
    let report = match timeout(grace + kill_time, stopped).await {
        Ok(report) => report.or_else(|| server.status().stop_report.clone()),
        Err(_) => {
            if let Some(killer) = &handle.kill_handle {
                killer.kill();
            }
            Some(ServerStopReport {
                server: server.name.clone(),
                stage: StopStage::OnKill,
                exit: handle.pid.map(|_| ExitStatus::Unknown),
                took: started.elapsed(),
                leftovers: true,
            })
        }
    };
    if report.as_ref().is_some_and(|report| report.leftovers) {
        let server = &*server.name;
        tracing::error!(severity = "critical", server, "processes left after stop");
    }
    report
}
