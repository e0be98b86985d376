//! Restarts a failed server with backoff, up to a configured number of times.

use std::pin::Pin;
use std::time::Duration;

use innkeeper_config::RestartPolicy;
use tokio::time::{Instant, sleep};

use crate::error::RestartError;
use crate::event::HostEvent;
use crate::start::{self, RestartTrigger, ServerStart};

/// Restarts a failed server until it is ready or reaches its restart limit. Boxed, because the
/// started server can call this function again.
pub(crate) fn restart_until_ready(start: ServerStart) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        while let Some((number, delay)) = next_restart(&start) {
            let ServerStart { registry, server, .. } = &start;
            let ready_generation = server.status().restart_backoff.ready_generation();
            let (name, delay_s) = (&*server.name, delay.as_secs_f64());
            tracing::warn!(server = name, attempt = number, delay_s, "server lost, restarting");
            registry.events().publish(HostEvent::Restarting {
                server: server.name.clone(),
                attempt: number,
                delay,
            });
            tokio::select! {
                biased;
                () = registry.closed() => return,
                _ = server.removed.wait() => return,
                () = sleep(delay) => {}
            }
            match start::restart(start.clone(), RestartTrigger::Unavailable { ready_generation })
                .await
            {
                Err(RestartError::Failed(_)) => {}
                Ok(()) | Err(RestartError::UnknownServer(_) | RestartError::Shutdown) => return,
            }
        }
    })
}

fn next_restart(start: &ServerStart) -> Option<(u32, Duration)> {
    let server = &start.server;
    let RestartPolicy::OnFailure { max } = server.config().restart else { return None };
    let next = server.status().restart_backoff.next_restart(max, Instant::now(), fastrand::f64());
    if next.is_none() {
        tracing::error!(server = &*server.name, max, "restart limit reached");
    }
    next
}
