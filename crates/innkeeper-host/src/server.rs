//! One configured server: its settings, its status and its supervising task.

pub(crate) mod connection;
pub(crate) mod endpoint_resolution;
pub(crate) mod handshake;
pub(crate) mod instance;
pub(crate) mod launch;
mod list_refresh;
pub(crate) mod list_ttls;
pub(crate) mod listen;
pub(crate) mod listing;
pub(crate) mod meta;
pub(crate) mod process;
pub(crate) mod round_trips;
pub(crate) mod session;
pub(crate) mod stderr;
pub(crate) mod subscriptions;
pub(crate) mod task_poll;
pub(crate) mod timeout_streak;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{SetOnce, mpsc, oneshot};
use tokio::time::{Instant, timeout};

use crate::catalog::CatalogEntry;
use crate::config::ServerConfig;
use crate::error::{StartFailureReason, UnavailableReason};
use crate::lifecycle::ServerState;
use crate::metrics::MetricsRecorder;
use crate::registry::Registry;
use crate::reload::difference::{self, ConfigDifference};
use crate::restart::{self, RestartBackoff};
use crate::shutdown::{ServerStopReport, StopStage};
use endpoint_resolution::EndpointResolution;
use instance::ServerInstance;
use launch::{Endpoint, StartedServer};
pub(crate) use list_refresh::follow_changes;
use process::{KillHandle, ProcessContainment};

/// Time to wait for the last output of an exited server, or for the exit of a server that closed
/// its output, before pending calls fail.
const OUTPUT_GRACE: Duration = Duration::from_millis(80);

/// Time for a remote server to receive the cancellation of its tasks: one or two round trips.
const TASK_CANCEL_TIMEOUT: Duration = Duration::from_millis(500);

/// Time for a killed process tree to exit.
const EXIT_GRACE: Duration = Duration::from_secs(1);

/// A server of the configuration.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    settings: ArcSwap<ServerSettings>,
    pub(crate) metrics: Arc<MetricsRecorder>,
    status: Mutex<LiveStatus>,
    /// Held during a restart, so that only one restart runs at a time.
    pub(crate) restart_lock: tokio::sync::Mutex<()>,
    /// Set when the server is removed from the configuration.
    pub(crate) removed: SetOnce<()>,
}

/// The settings a server is started with.
#[derive(Clone, Debug)]
pub(crate) struct ServerSettings {
    pub(crate) config: Arc<ServerConfig>,
    pub(crate) endpoint: EndpointResolution,
}

/// Settings that take effect at the next start.
#[derive(Clone, Debug)]
pub(crate) struct PendingSettings {
    pub(crate) settings: ServerSettings,
    /// Configuration keys that take effect only at the next start.
    pub(crate) keys: Vec<&'static str>,
}

/// The status of a server that changes at run time.
#[derive(Debug)]
pub(crate) struct LiveStatus {
    pub(crate) state: ServerState,
    pub(crate) entry: Option<Arc<CatalogEntry>>,
    pub(crate) unavailable_reason: Option<UnavailableReason>,
    pub(crate) handle: Option<ServerHandle>,
    /// Kills the process of a start in progress.
    pub(crate) launch_kill_handle: Option<KillHandle>,
    pub(crate) stop_report: Option<ServerStopReport>,
    pub(crate) pending_settings: Option<PendingSettings>,
    pub(crate) restart_backoff: RestartBackoff,
}

impl LiveStatus {
    /// Returns whether the server was removed from the catalog because it stopped responding; its
    /// process may still be working.
    pub(crate) fn was_unresponsive(&self) -> bool {
        self.state == ServerState::Unavailable
            && matches!(self.unavailable_reason, Some(UnavailableReason::Unresponsive { .. }))
    }
}

/// A handle to a running server.
#[derive(Clone, Debug)]
pub(crate) struct ServerHandle {
    pub(crate) pid: Option<u32>,
    pub(crate) containment: Option<ProcessContainment>,
    pub(crate) kill_handle: Option<KillHandle>,
    pub(crate) stop: mpsc::Sender<StopRequest>,
    pub(crate) stderr: stderr::StderrTail,
}

/// A request to stop a server within `grace`.
#[derive(Debug)]
pub(crate) struct StopRequest {
    pub(crate) grace: Duration,
    pub(crate) done: oneshot::Sender<ServerStopReport>,
}

impl Server {
    pub(crate) fn new(settings: ServerSettings) -> Self {
        let status = LiveStatus {
            state: ServerState::Starting,
            entry: None,
            unavailable_reason: None,
            handle: None,
            launch_kill_handle: None,
            stop_report: None,
            pending_settings: None,
            restart_backoff: RestartBackoff::default(),
        };
        Self {
            name: settings.config.name.as_str().into(),
            settings: ArcSwap::from_pointee(settings),
            metrics: Arc::new(MetricsRecorder::new()),
            status: Mutex::new(status),
            restart_lock: tokio::sync::Mutex::default(),
            removed: SetOnce::new(),
        }
    }

    pub(crate) fn config(&self) -> Arc<ServerConfig> {
        self.settings.load().config.clone()
    }

    /// Returns the endpoint of the server, if known.
    pub(crate) fn endpoint(&self) -> Result<Arc<Endpoint>, StartFailureReason> {
        self.settings.load().endpoint.endpoint()
    }

    /// Applies a configuration: settings that need no restart take effect at once, all others, with
    /// the endpoint in `start`, at the next start.
    pub(crate) fn apply_config(
        &self,
        config: &ServerConfig,
        start: Option<ServerSettings>,
    ) -> ConfigDifference {
        let mut status = self.status();
        let ServerSettings { config: old, endpoint: old_endpoint } = &**self.settings.load();
        let change = difference::compare_servers(old, config);
        if !change.immediate.is_empty() {
            let config = Arc::new(difference::with_immediate(old, config));
            self.settings
                .store(Arc::new(ServerSettings { config, endpoint: old_endpoint.clone() }));
        }
        let waits = start.filter(|_| !change.deferred.is_empty());
        status.pending_settings =
            waits.map(|settings| PendingSettings { settings, keys: change.deferred.clone() });
        change
    }

    /// Applies the pending settings. The server must not be running.
    pub(crate) fn apply_pending(&self) {
        let mut status = self.status();
        if let Some(pending) = status.pending_settings.take() {
            self.settings.store(Arc::new(pending.settings));
        }
    }

    /// Records that the process was reaped: the system may reuse its id.
    fn mark_exited(&self) {
        if let Some(running) = &mut self.status().handle {
            (running.pid, running.containment) = (None, None);
        }
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, LiveStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Supervises a ready server until it fails or is stopped; calls `fallen` after a failure.
pub(crate) async fn supervise(
    registry: Arc<Registry>,
    server: Arc<Server>,
    mut running: StartedServer,
    mut stop_requests: mpsc::Receiver<StopRequest>,
    fallen: impl FnOnce() + Send,
) {
    let mut is_unavailable = false;
    let ready = server.status().entry.clone();
    let reporter = ready.and_then(|catalog_entry| catalog_entry.connection.telemetry.clone());
    let mut session = reporter.map(|reporter| reporter.start_session());
    let stop_request = tokio::select! {
        biased;
        order = stop_requests.recv() => order,
        lost = wait_until_unavailable(&mut running) => {
            is_unavailable = true;
            if let Some(session) = session.take() {
                session.fail(&lost);
            }
            running.session.close(lost.clone());
            if matches!(lost, UnavailableReason::Exited(_)) {
                server.mark_exited();
            }
            let failed = restart::is_failure(&lost);
            if registry.mark_unavailable(&server, lost) && failed {
                fallen();
            }
            running.instance.kill();
            // A tree that survives the kill is reported when the server is stopped.
            if timeout(EXIT_GRACE, running.instance.wait_tree()).await.is_ok() {
                server.mark_exited();
            }
            stop_requests.recv().await
        }
    };
    let Some(StopRequest { grace, done }) = stop_request else { return };
    let report = stop(&server, &mut running, is_unavailable, grace).await;
    registry.mark_stopped(&server, &report);
    // The requester may have stopped waiting; the server is stopped anyway.
    drop(done.send(report));
}

/// Waits until the server becomes unavailable and returns the most specific reason.
async fn wait_until_unavailable(running: &mut StartedServer) -> UnavailableReason {
    let StartedServer { instance, session, .. } = running;
    tokio::select! {
        // A closed session knows the reason; the end of the output follows from it.
        biased;
        exit = instance.wait() => {
            session.stop_throttling();
            drop(timeout(OUTPUT_GRACE, session.output_ended()).await);
            UnavailableReason::Exited(exit)
        }
        lost = session.closed() => {
            timeout(OUTPUT_GRACE, instance.wait()).await.map_or(lost, UnavailableReason::Exited)
        }
        () = session.output_ended() => {
            timeout(OUTPUT_GRACE, instance.wait()).await.map_or(UnavailableReason::ClosedOutput, UnavailableReason::Exited)
        }
    }
}

async fn stop(
    server: &Server,
    running: &mut StartedServer,
    is_unavailable: bool,
    grace: Duration,
) -> ServerStopReport {
    let session = running.session.clone();
    let close = move || {
        session.close(UnavailableReason::Shutdown);
        session.close_input();
    };
    let process = match &mut running.instance {
        ServerInstance::Child(process) => process,
        ServerInstance::Connection(_) => {
            if !is_unavailable {
                // Tasks of a child process end with it; tasks of a remote server continue unless
                // cancelled.
                running.session.cancel_tasks(TASK_CANCEL_TIMEOUT.min(grace)).await;
            }
            return disconnect(server, close, &mut running.instance, is_unavailable, grace).await;
        }
    };
    let report = process::stop(process, close, grace).await;
    ServerStopReport {
        server: server.name.clone(),
        stage: if is_unavailable { StopStage::AlreadyGone } else { StopStage::from(report.stage) },
        exit: Some(report.exit),
        took: report.took,
        leftovers: report.leftovers,
    }
}

/// Disconnects from a remote server within the grace period.
async fn disconnect(
    server: &Server,
    close: impl FnOnce(),
    connection: &mut ServerInstance,
    is_unavailable: bool,
    grace: Duration,
) -> ServerStopReport {
    let started = Instant::now();
    close();
    let leftovers = timeout(grace.max(EXIT_GRACE), connection.wait_tree()).await.is_err();
    ServerStopReport {
        server: server.name.clone(),
        stage: if is_unavailable { StopStage::AlreadyGone } else { StopStage::Disconnected },
        exit: None,
        took: started.elapsed(),
        leftovers,
    }
}
