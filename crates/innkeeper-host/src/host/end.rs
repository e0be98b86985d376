//! The end of a host: shutdown, kill and drop.

use std::time::Duration;

use tokio::time::{Instant, timeout};

use super::{Host, HostInner};
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::shutdown::{self, DRAIN_TIMEOUT, ShutdownLimits, ShutdownReport};

/// Timeout for the host's own tasks after all servers stopped.
const TASK_SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

impl Host {
    /// Shuts the host down: rejects new calls, waits up to one second for the calls in flight, then
    /// stops every server (dependents first) and waits until no process of the server is left.
    ///
    /// A server process gets a termination request after half of its `shutdownTimeout`, or after at
    /// most half a second if it may still process a cancelled call, and is killed at the end.
    ///
    /// Ends within the longest `shutdownTimeout` and five seconds. [`Host::shutdown_within`] sets
    /// another time for the calls in flight. A second call returns the same report. After the future
    /// is dropped, the next call or the drop of the host completes the shutdown.
    pub async fn shutdown(&self) -> ShutdownReport {
        self.shut_down(DRAIN_TIMEOUT, None).await
    }

    /// Works like [`Host::shutdown`] within a budget: the calls in flight may use the budget except
    /// the longest `shutdownTimeout`, or except half of the budget if that is shorter. The servers
    /// get the time that is left, then the host kills them.
    ///
    /// Ends within the budget and four seconds, also if a shutdown with a longer limit has already
    /// started: of all shutdowns that the application awaits, the shortest limits apply. A dropped
    /// future has the same effect as for [`Host::shutdown`].
    pub async fn shutdown_within(&self, budget: Duration) -> ShutdownReport {
        let budget = budget.min(MAX_REQUEST_TIMEOUT);
        let config = self.0.reloader.config.load_full();
        let servers = config.servers.values().map(|server| server.lifecycle.shutdown_timeout);
        let stop_time = servers.max().unwrap_or_default().min(budget / 2);
        self.shut_down(budget - stop_time, Some(Instant::now() + budget)).await
    }

    async fn shut_down(&self, drain: Duration, deadline: Option<Instant>) -> ShutdownReport {
        let awaited = &self.0.awaited_shutdowns;
        let _limits = awaited.add(ShutdownLimits { drain_end: Instant::now() + drain, deadline });
        let report = self.0.shutdown.get_or_init(|| async {
            let catalog = self.catalog();
            self.0.registry.close();
            tokio::select! {
                biased;
                () = catalog.wait_idle() => {}
                // Longer calls fail when the servers stop.
                () = awaited.drain_ended() => {}
            }
            // A reload ends when it detects the closed registry.
            let _ = timeout(TASK_SHUTDOWN_TIMEOUT, self.0.reloader.reload_lock.lock()).await;
            let report = self.stop_servers().await;
            self.0.tasks.stop();
            // A task that is still running holds no resource of a server.
            let _ = timeout(TASK_SHUTDOWN_TIMEOUT, self.0.tasks.join()).await;
            report
        });
        report.await.clone()
    }

    /// Stops all servers before the deadline; an earlier deadline of a further shutdown shortens
    /// the grace periods.
    async fn stop_servers(&self) -> ShutdownReport {
        let awaited = &self.0.awaited_shutdowns;
        let started = Instant::now();
        let config = self.0.reloader.config.load_full();
        loop {
            let deadline = awaited.deadline();
            tokio::select! {
                biased;
                report = shutdown::stop_all(&self.0.registry, &config, deadline) => {
                    return ShutdownReport { took: started.elapsed(), ..report };
                }
                () = awaited.earlier_deadline(deadline) => {}
            }
        }
    }

    /// Kills every server process immediately. Needs no runtime. [`Host::shutdown`] still returns the
    /// exit status of the servers. The connections to remote and in-process servers end with the
    /// shutdown or with the drop of the host.
    pub fn kill(&self) {
        self.0.kill();
    }
}

impl HostInner {
    fn kill(&self) {
        // A closed registry prevents a restart of the killed servers.
        self.registry.close();
        for server in self.registry.servers().into_iter().chain(self.registry.draining()) {
            let status = server.status();
            let running = status.handle.as_ref().and_then(|running| running.kill_handle.as_ref());
            for killer in running.into_iter().chain(&status.launch_kill_handle) {
                killer.kill();
            }
        }
    }
}

impl Drop for HostInner {
    fn drop(&mut self) {
        self.kill();
        self.tasks.stop();
    }
}
