//! The end of a host: asked for, at once, or because nobody holds it any more.

use std::time::Duration;

use tokio::time::timeout;

use super::{Host, Inner};
use crate::shutdown::{self, DRAIN, ShutdownReport};

/// How long the host's own tasks may take to end after the servers are gone.
const TASKS_END: Duration = Duration::from_secs(1);

impl Host {
    /// Refuses new calls, lets those under way finish for up to a second, then stops every server
    /// (dependents first) and waits until nothing is left of it. Ends within the longest
    /// `shutdownTimeout` and three seconds. A second call gives the same report; dropping the
    /// future leaves the rest to the next call or to the drop of the host.
    pub async fn shutdown(&self) -> ShutdownReport {
        let report = self.0.shutdown.get_or_init(|| async {
            let catalog = self.catalog();
            self.0.registry.close();
            // Calls that need longer fail as the servers stop.
            drop(timeout(DRAIN, catalog.idle()).await);
            // A reload ends as soon as it sees that.
            drop(timeout(TASKS_END, self.0.reloader.turn.lock()).await);
            let config = self.0.reloader.config.load_full();
            let report = shutdown::stop_all(&self.0.registry, &config).await;
            self.0.tasks.stop();
            // A task that does not end holds nothing of a server any more.
            drop(timeout(TASKS_END, self.0.tasks.ended()).await);
            report
        });
        report.await.clone()
    }

    /// Kills every server now; needs no runtime. [`Host::shutdown`] still tells how they ended.
    pub fn kill(&self) {
        self.0.kill();
    }
}

impl Inner {
    fn kill(&self) {
        // What is killed is not to be started again.
        self.registry.close();
        for server in self.registry.servers().into_iter().chain(self.registry.leaving()) {
            let status = server.status();
            let running = status.running.as_ref().and_then(|running| running.killer.as_ref());
            for killer in running.into_iter().chain(&status.launching) {
                killer.kill();
            }
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.kill();
        self.tasks.stop();
    }
}
