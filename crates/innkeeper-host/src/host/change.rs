//! Changes of a running host: reload, list refresh, server stop, server restart.

use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::timeout;

use super::{Host, HostInner};
use crate::error::{RestartError, StopError};
use crate::reload::{ReloadError, ReloadOptions, ReloadReport};
use crate::shutdown;
use crate::start::{self, RestartTrigger, ServerStart};
use crate::trust::TrustPolicy;

/// Maximum wait for a refresh: longer than the interval between two refreshes of a server and the
/// time to read its lists, and short beside the response time of a model, because a server can delay
/// every request of a model by this time.
const MAX_REFRESH_WAIT: Duration = Duration::from_secs(2);

impl Host {
    /// Reloads the configuration from its files and applies the differences.
    ///
    /// - Added servers start in dependency order. A server that fails is unavailable.
    /// - Removed servers accept no new calls, get one second for the calls in flight, and stop.
    /// - Servers with equal settings stay as they are, even if the text of the file changed.
    /// - Changed servers keep running. Their status lists the keys that wait for a restart.
    ///   `required`, `dependencies`, `timeout`, `initTimeout`, `shutdownTimeout`, `tools` and
    ///   `restart` apply at once.
    /// - Changed settings of the host need a new host.
    ///
    /// Only one reload runs at a time. Dropping the future does not stop the reload.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`]. After an error the previous configuration stays active.
    pub async fn reload(&self) -> Result<ReloadReport, ReloadError> {
        self.reload_with(ReloadOptions::default()).await
    }

    /// Reloads with options: applies a given configuration, or restarts the changed servers at
    /// once. Each server is unavailable only during its own restart. Dropping the future does not
    /// stop the reload.
    ///
    /// # Errors
    ///
    /// See [`Host::reload`].
    pub async fn reload_with(&self, options: ReloadOptions) -> Result<ReloadReport, ReloadError> {
        let reloader = self.0.reloader.clone();
        let (done, result) = oneshot::channel();
        self.0.tasks.spawn(async move {
            let trust = options.trust.clone().unwrap_or(TrustPolicy::AllowAll);
            let result = reloader.reload(options, &trust).await;
            // The caller may have dropped the future.
            let _ = done.send(result);
        });
        result.await.unwrap_or(Err(ReloadError::Shutdown))
    }

    /// Reads the lists of a server again, as after a `list_changed` notification; for a server that
    /// changes its lists without a notification.
    ///
    /// Returns at once: `true` if the server exists and accepts calls. The host publishes
    /// [`HostEvent::CatalogChanged`] after the read.
    ///
    /// [`HostEvent::CatalogChanged`]: crate::HostEvent::CatalogChanged
    pub fn refresh_server(&self, name: &str) -> bool {
        let catalog = self.catalog();
        let entry = catalog.server(name).and_then(|server| server.entry.as_ref());
        entry.is_some_and(|entry| {
            entry.connection.session.assume_changed();
            true
        })
    }

    /// Waits until the catalog contains the changes of tools that servers reported before this call,
    /// for at most two seconds.
    ///
    /// If a call adds a tool, and the server reports the change before the result, the tool is in the
    /// catalog after this wait. Returns at once if no change is pending. After two seconds, or if the
    /// tools cannot be read, the catalog changes later. Dropping the future ends only the wait.
    pub async fn finish_tool_refresh(&self) {
        let catalog = self.catalog();
        let wait = async {
            for entry in catalog.servers().filter_map(|(_, server)| server.entry.as_ref()) {
                entry.connection.session.tool_changes_handled().await;
            }
        };
        // The refresh continues without the wait.
        let _ = timeout(MAX_REFRESH_WAIT, wait).await;
    }

    /// Stops one server as [`Host::shutdown`] does: rejects new calls, waits up to one second for the
    /// calls in flight, then stops the server and waits until no process of the server is left.
    ///
    /// The state of the server is [`ServerState::Shutdown`] until [`Host::restart_server`] starts
    /// the server again; no restart policy and no reload starts it. Calls to a stopped server fail
    /// with [`UnavailableReason::Shutdown`]. Other servers are not affected: servers that depend on
    /// this server keep running. A stopped server, and a server without a process, is no error.
    ///
    /// Ends within the server's `shutdownTimeout` and three seconds, after a restart or another stop
    /// of the same server that is in progress. Dropping the future does not end the stop.
    ///
    /// # Errors
    ///
    /// See [`StopError`].
    ///
    /// [`ServerState::Shutdown`]: crate::ServerState::Shutdown
    /// [`UnavailableReason::Shutdown`]: crate::error::UnavailableReason::Shutdown
    pub async fn stop_server(&self, name: &str) -> Result<(), StopError> {
        let HostInner { registry, tasks, .. } = &*self.0;
        let Some(server) = registry.server(name) else {
            return Err(StopError::UnknownServer(name.into()));
        };
        let registry = registry.clone();
        let (done, result) = oneshot::channel();
        tasks.spawn(async move {
            let stopped = shutdown::stop_requested(&registry, &server).await;
            // The caller may have dropped the future.
            let _ = done.send(stopped);
        });
        result.await.unwrap_or(Err(StopError::Shutdown))
    }

    /// Stops a server in any state and starts the server again, with the pending settings of a
    /// reload if there are any.
    ///
    /// Calls in flight to this server fail; other servers are not affected. The restart ends within
    /// the server's `shutdownTimeout`, the host's `startTimeout`, `installTimeout` for a server
    /// whose package is installed, the wait for other starts (`concurrentStarts`), and two seconds,
    /// even if a person must sign in: the sign-in continues, and a later restart uses its token. A second restart of
    /// the same server waits for the first. Dropping the future does not stop the restart.
    ///
    /// # Errors
    ///
    /// See [`RestartError`]. A server that does not become ready again is unavailable.
    pub async fn restart_server(&self, name: &str) -> Result<(), RestartError> {
        let HostInner { registry, launcher, tasks, .. } = &*self.0;
        let Some(server) = registry.server(name) else {
            return Err(RestartError::UnknownServer(name.into()));
        };
        let start = ServerStart::new(registry, launcher, &server);
        let restart = start::restart(start, RestartTrigger::Requested);
        let (done, result) = oneshot::channel();
        // The caller may have dropped the future.
        tasks.spawn(async move {
            let _ = done.send(restart.await);
        });
        result.await.unwrap_or(Err(RestartError::Shutdown))
    }
}
