//! Restarts one server.

use std::time::Duration;

use tokio::time::Instant;

use super::ServerStart;
use crate::error::{RestartError, UnavailableReason};
use crate::lifecycle::ServerState;
use crate::server::launch::StartDeadline;
use crate::shutdown;

#[derive(Clone, Copy, Debug)]
pub(crate) enum RestartTrigger {
    /// The application: restarts in any state, with the pending settings.
    Requested,
    /// The restart policy after a failure: keeps the settings, and is skipped if the server has
    /// become ready again since, or if the application stopped the server.
    Unavailable {
        /// Number of times the server had become ready.
        ready_generation: u32,
    },
}

/// Stops one server and starts it again. Its dependencies are not restarted: they have their own
/// state.
pub(crate) async fn restart(
    start: ServerStart,
    trigger: RestartTrigger,
) -> Result<(), RestartError> {
    let ServerStart { registry, server, .. } = &start;
    let timeout = start.launcher.start_limits.start_timeout;
    let _turn = server.restart_lock.lock().await;
    let mut lost = None;
    if let RestartTrigger::Unavailable { ready_generation } = trigger {
        let mut status = server.status();
        let has_other_run = status.next_start.backoff.ready_generation() != ready_generation;
        if status.is_stop_requested || has_other_run || status.state == ServerState::Ready {
            return Ok(());
        }
        let recovered = status
            .entry
            .clone()
            .filter(|entry| status.was_unresponsive() && entry.connection.session.has_responded());
        if let Some(entry) = recovered {
            drop(status);
            registry.mark_responsive(server, &entry.connection, Duration::ZERO);
            return Ok(());
        }
        lost.clone_from(&status.unavailable_reason);
        if status.was_unresponsive() {
            // From here on, a late response no longer makes the server ready.
            status.unavailable_reason = Some(UnavailableReason::Shutdown);
        }
    }
    let restarting = async {
        let last_entry = server.status().entry.clone();
        let _ =
            shutdown::stop_one(server.clone(), server.config().lifecycle.shutdown_timeout).await;
        if matches!(trigger, RestartTrigger::Requested) {
            server.apply_pending();
        }
        registry.mark_restarting(server, last_entry, lost);
        // The requester needs a bounded wait. A sign-in continues for the next restart.
        let mut limit = StartDeadline { deadline: Instant::now() + timeout, timeout };
        let result = start.start(&mut limit, false).await;
        result.map_err(|failure| {
            start.report_failure(&failure);
            RestartError::Failed(Box::new(failure))
        })
    };
    tokio::select! {
        biased;
        () = registry.closed() => {
            // A server started in the meantime is killed; a stopped server stays stopped.
            let stopped = server.status().stop_report.clone();
            if let Some(report) = stopped {
                registry.mark_stopped(server, Some(&report));
            }
            Err(RestartError::Shutdown)
        }
        _ = server.removed.wait() => Err(RestartError::UnknownServer((&*server.name).into())),
        result = restarting => result,
    }
}
