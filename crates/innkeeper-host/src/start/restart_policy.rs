//! Restarts a failed server with backoff, up to a configured number of times.

use std::pin::Pin;
use std::time::Duration;

use innkeeper_config::RestartPolicy;
use tokio::time::{Instant, sleep};

use crate::error::{RestartError, ServerFailure, UnavailableReason};
use crate::event::HostEvent;
use crate::lifecycle::ServerState;
use crate::start::{self, RestartTrigger, ServerStart};

/// Interval of the checks whether the dependencies of a server that never started are ready.
const DEPENDENCY_CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Restarts a failed server until it is ready or reaches its restart limit. Boxed, because the
/// started server can call this function again.
pub(crate) fn restart_until_ready(start: ServerStart) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        while let Some((number, delay)) = next_restart(&start) {
            let ServerStart { registry, server, .. } = &start;
            let ready_generation = server.status().next_start.backoff.ready_generation();
            let waiting = async {
                while lacks_dependency(&start) {
                    sleep(DEPENDENCY_CHECK_INTERVAL).await;
                }
                report_restart(&start, number, delay);
                sleep(delay).await;
            };
            tokio::select! {
                biased;
                () = registry.closed() => return,
                _ = server.removed.wait() => return,
                () = waiting => {}
            }
            match start::restart(start.clone(), RestartTrigger::Unavailable { ready_generation })
                .await
            {
                Err(RestartError::Failed(failure)) if is_hopeless(&start, &failure) => return,
                Err(RestartError::Failed(_)) => {}
                Ok(()) | Err(RestartError::UnknownServer(_) | RestartError::Shutdown) => return,
            }
        }
    })
}

fn report_restart(start: &ServerStart, attempt: u32, delay: Duration) {
    let ServerStart { registry, server, .. } = start;
    let reason = server.status().unavailable_reason.as_ref().map(without_server_text);
    let name = &*server.name;
    let delay_s = delay.as_secs_f64();
    tracing::warn!(server = name, attempt, delay_s, reason, "server unavailable, restarting");
    let server = server.name.clone();
    registry.events().publish(HostEvent::Restarting { server, attempt, delay });
}

fn without_server_text(reason: &UnavailableReason) -> String {
    reason.without_server_text().to_string()
}

fn next_restart(start: &ServerStart) -> Option<(u32, Duration)> {
    let server = &start.server;
    let config = server.config();
    let mut status = server.status();
    let max = match config.lifecycle.restart {
        RestartPolicy::Never => return None,
        RestartPolicy::OnFailure { max } => max,
        // The next use of a server with an idle timeout starts it, also after a crash.
        RestartPolicy::Unset
            if start.launcher.client.revives_servers
                && (config.lifecycle.idle_timeout.is_none()
                    || status.was_unresponsive()
                    || status.next_start.backoff.ready_generation() == 0) =>
        {
            u32::MAX
        }
        RestartPolicy::Unset => return None,
    };
    let next = status.next_start.backoff.next_restart(max, Instant::now(), fastrand::f64());
    if next.is_none() {
        tracing::error!(server = &*server.name, max, "restart limit reached");
    }
    next
}

/// Returns whether a server that was never ready depends on a server that is not ready.
fn lacks_dependency(start: &ServerStart) -> bool {
    let is_first = start.server.status().next_start.backoff.ready_generation() == 0;
    is_first
        && start.server.config().dependencies.iter().any(|name| {
            let dependency = start.registry.server(name);
            dependency.is_none_or(|dependency| dependency.status().state != ServerState::Ready)
        })
}

/// Returns whether a server that was never ready and has no restart policy stays unavailable.
fn is_hopeless(start: &ServerStart, failure: &ServerFailure) -> bool {
    start.server.config().lifecycle.restart == RestartPolicy::Unset
        && start.server.status().next_start.backoff.ready_generation() == 0
        && !failure.may_succeed_later()
}
