//! What changes while the host runs: another configuration, lists read again, a restart.

use tokio::sync::oneshot;

use super::{Host, Inner};
use crate::error::RestartError;
use crate::reload::{ReloadError, ReloadOptions, ReloadReport};
use crate::start::{self, Start, Wish};
use crate::trust::Trust;

impl Host {
    /// Reads the configuration from its files again and takes up what is different. New servers are
    /// started, those others depend on first; one that fails is unavailable. Those that are gone get
    /// no new calls, have a second for those under way, and are stopped. Those with the same settings
    /// are not touched, however the text has changed. Changed ones run on, and their status tells
    /// which settings wait until they are started again; `required`, `dependencies`, `timeout`,
    /// `initTimeout`, `shutdownTimeout`, `tools` and `restart` wait for nothing. Settings of the host
    /// need a new one. One reload at a time; dropping the future leaves it going on.
    ///
    /// # Errors
    ///
    /// See [`ReloadError`]: everything is as it was.
    pub async fn reload(&self) -> Result<ReloadReport, ReloadError> {
        self.reload_with(ReloadOptions::default()).await
    }

    /// Takes up a given configuration, or starts the servers that changed again at once; each is away
    /// only while it is started.
    ///
    /// # Errors
    ///
    /// As [`Host::reload`].
    pub async fn reload_with(&self, options: ReloadOptions) -> Result<ReloadReport, ReloadError> {
        let reloader = self.0.reloader.clone();
        let (done, result) = oneshot::channel();
        self.0.tasks.spawn(async move {
            // What the application asks for, it has decided on.
            let result = reloader.reload(options, &Trust::Everything).await;
            // Whoever asked for it may have stopped waiting.
            drop(done.send(result));
        });
        result.await.unwrap_or(Err(ReloadError::Shutdown))
    }

    /// Has the lists of a server read again, as if it had said that they changed; for one that may
    /// change them without a word. Ends at once: [`Event::CatalogChanged`] tells when they were
    /// read. Whether there is such a server and it takes calls.
    ///
    /// [`Event::CatalogChanged`]: crate::Event::CatalogChanged
    pub fn refresh_server(&self, name: &str) -> bool {
        let catalog = self.catalog();
        let shelf = catalog.server(name).and_then(|server| server.shelf.as_ref());
        shelf.is_some_and(|shelf| {
            shelf.connection.session.assume_changed();
            true
        })
    }

    /// Stops a server, whatever state it is in, and starts it again with the settings it had, or
    /// those that wait for that since a reload. Its calls under way fail, those to others go on. Ends
    /// within its `shutdownTimeout`, the host's `startTimeout` and two seconds, also where a person
    /// has to sign in: that goes on, and a later restart makes use of it. A second restart of the
    /// same server waits for the first. Dropping the future leaves the restart going on.
    ///
    /// # Errors
    ///
    /// See [`RestartError`]; a server that does not become ready again is unavailable.
    pub async fn restart_server(&self, name: &str) -> Result<(), RestartError> {
        let Inner { registry, launcher, tasks, .. } = &*self.0;
        let Some(server) = registry.server(name) else {
            return Err(RestartError::Unknown(name.into()));
        };
        let start = Start::of(registry, launcher, &server);
        let restart = start::restart(start, Wish::Asked);
        let (done, result) = oneshot::channel();
        // Whoever asked for it may have stopped waiting.
        tasks.spawn(async move { drop(done.send(restart.await)) });
        result.await.unwrap_or(Err(RestartError::Shutdown))
    }
}
