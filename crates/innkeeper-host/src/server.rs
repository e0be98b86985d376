//! One configured server: its settings and its status.

pub(crate) mod connector;
pub(crate) mod endpoint_opener;
pub(crate) mod endpoint_resolution;
mod in_process;
pub(crate) mod instance;
pub(crate) mod launch;
mod restart_backoff;
mod stop_report;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwap;
use tokio::sync::{SetOnce, mpsc, oneshot};

use crate::catalog::CatalogEntry;
use crate::error::{StartFailureReason, UnavailableReason};
use crate::lifecycle::ServerState;
use crate::metrics::MetricsRecorder;
use crate::remote_session::RemoteSession;
use crate::stderr::StderrTail;
use crate::transport::HttpSessionState;
pub use connector::{ConnectFuture, Connector, ServerStream};
use endpoint_resolution::EndpointResolution;
use innkeeper_config::difference::ConfigDifference;
use innkeeper_config::{ServerConfig, difference};
use innkeeper_process::{KillHandle, ProcessContainment};
use launch::Endpoint;
pub(crate) use restart_backoff::RestartBackoff;
pub use stop_report::{ServerStopReport, StopStage};

#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) name: Arc<str>,
    settings: ArcSwap<ServerSettings>,
    pub(crate) metrics: Arc<MetricsRecorder>,
    status: Mutex<LiveStatus>,
    /// Held during a stop or a restart, so that only one of them runs at a time.
    pub(crate) restart_lock: tokio::sync::Mutex<()>,
    /// Set when the server is removed from the configuration.
    pub(crate) removed: SetOnce<()>,
}

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
    /// Whether the application stops or stopped the server; only the application starts it again.
    pub(crate) is_stop_requested: bool,
    pub(crate) next_start: NextStart,
}

/// What matters for the next start of a server.
#[derive(Debug, Default)]
pub(crate) struct NextStart {
    /// What is known of the failure of the last start.
    pub(crate) last_failure: FailedStart,
    /// The session of another host that the next launch continues.
    pub(crate) continued_session: Option<RemoteSession>,
    pub(crate) pending_settings: Option<PendingSettings>,
    pub(crate) backoff: RestartBackoff,
}

/// What is known of a failed start.
#[derive(Clone, Debug, Default)]
pub(crate) struct FailedStart {
    /// What a user can change.
    pub(crate) hint: Option<String>,
    pub(crate) needs_user_sign_in: bool,
    /// The last lines on stderr.
    pub(crate) stderr: String,
}

impl LiveStatus {
    /// Returns whether the server was removed from the catalog because it stopped responding; its
    /// process may still be working.
    pub(crate) fn was_unresponsive(&self) -> bool {
        self.state == ServerState::Unavailable
            && matches!(self.unavailable_reason, Some(UnavailableReason::Unresponsive { .. }))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct ServerHandle {
    pub(crate) pid: Option<u32>,
    pub(crate) containment: Option<ProcessContainment>,
    pub(crate) kill_handle: Option<KillHandle>,
    pub(crate) stop: mpsc::Sender<StopRequest>,
    pub(crate) stderr: StderrTail,
    /// The state of a session over Streamable HTTP.
    pub(crate) http_session: Option<Arc<HttpSessionState>>,
}

/// A request to stop a server within `grace` and `exit_grace`.
#[derive(Debug)]
pub(crate) struct StopRequest {
    /// Time for the server to stop by itself.
    pub(crate) grace: Duration,
    /// Time for a killed process tree, or for a closed connection, to end.
    pub(crate) exit_grace: Duration,
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
            is_stop_requested: false,
            next_start: NextStart::default(),
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
        status.next_start.pending_settings =
            waits.map(|settings| PendingSettings { settings, keys: change.deferred.clone() });
        change
    }

    /// Applies the pending settings. The server must not be running.
    pub(crate) fn apply_pending(&self) {
        let mut status = self.status();
        if let Some(pending) = status.next_start.pending_settings.take() {
            self.settings.store(Arc::new(pending.settings));
        }
    }

    /// Records that the process was reaped: the system may reuse its id.
    pub(crate) fn mark_exited(&self) {
        if let Some(running) = &mut self.status().handle {
            (running.pid, running.containment) = (None, None);
        }
    }

    pub(crate) fn status(&self) -> MutexGuard<'_, LiveStatus> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
