//! Changes of a running host: reload, list refresh, server restart.

use tokio::sync::oneshot;

use super::{Host, HostInner};
use crate::error::RestartError;
use crate::reload::{ReloadError, ReloadOptions, ReloadReport};
use crate::start::{self, RestartTrigger, ServerStart};
use crate::trust::TrustPolicy;

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
            // The application requested the reload, so the application trusts the configuration.
            let result = reloader.reload(options, &TrustPolicy::AllowAll).await;
            // The caller may have dropped the future.
            drop(done.send(result));
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

    /// Stops a server in any state and starts the server again, with the pending settings of a
    /// reload if there are any.
    ///
    /// Calls in flight to this server fail; other servers are not affected. The restart ends within
    /// the server's `shutdownTimeout`, the host's `startTimeout`, `installTimeout` for a server
    /// whose package is installed, and two seconds, even if a person
    /// must sign in: the sign-in continues, and a later restart uses its token. A second restart of
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
        tasks.spawn(async move { drop(done.send(restart.await)) });
        result.await.unwrap_or(Err(RestartError::Shutdown))
    }
}
