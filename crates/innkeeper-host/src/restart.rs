//! Restarts a failed server with backoff, up to a configured number of times.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::backoff::{BACKOFF_RESET, INITIAL_BACKOFF, MAX_BACKOFF, doubled, with_jitter};
use crate::config::RestartPolicy;
use crate::error::{RestartError, UnavailableReason};
use crate::event::HostEvent;
use crate::start::{self, RestartTrigger, ServerStart};

/// The restart history of a server.
#[derive(Debug, Default)]
pub(crate) struct RestartBackoff {
    /// Restarts since the server was last ready for [`BACKOFF_RESET`].
    consecutive_restarts: u32,
    ready_since: Option<Instant>,
    /// Number of times the server became ready.
    ready_generation: u32,
}

impl RestartBackoff {
    pub(crate) fn record_ready(&mut self, now: Instant) {
        self.ready_since = Some(now);
        self.ready_generation += 1;
    }

    /// Returns how often the server became ready; identifies the run that failed.
    pub(crate) fn ready_generation(&self) -> u32 {
        self.ready_generation
    }

    /// Returns how often the server became ready again.
    pub(crate) fn restart_count(&self) -> u32 {
        self.ready_generation.saturating_sub(1)
    }

    /// Returns the number of the next restart and the backoff before it; `None` after `max`
    /// restarts. The last argument selects the jitter, from 0 to 1.
    fn next_restart(&mut self, max: u32, now: Instant, jitter: f64) -> Option<(u32, Duration)> {
        let ready_since = self.ready_since.take();
        if ready_since.is_some_and(|since| now.duration_since(since) >= BACKOFF_RESET) {
            self.consecutive_restarts = 0;
        }
        if self.consecutive_restarts >= max {
            return None;
        }
        self.consecutive_restarts += 1;
        let delay = doubled(INITIAL_BACKOFF, self.consecutive_restarts - 1, MAX_BACKOFF);
        Some((self.consecutive_restarts, with_jitter(delay, jitter).min(MAX_BACKOFF)))
    }
}

/// Returns whether a restart can help after this failure.
pub(crate) fn is_failure(reason: &UnavailableReason) -> bool {
    match reason {
        UnavailableReason::Exited(_)
        | UnavailableReason::ClosedOutput
        | UnavailableReason::ClosedInput
        | UnavailableReason::InvalidMessages
        | UnavailableReason::Unreachable(_)
        | UnavailableReason::ConnectionLost(_)
        | UnavailableReason::ConnectionRejected(_)
        | UnavailableReason::Busy { .. } => true,
        // The server may still be working, or is not the cause.
        UnavailableReason::Unresponsive { .. }
        | UnavailableReason::NotStarted(_)
        | UnavailableReason::Starting
        | UnavailableReason::Shutdown
        | UnavailableReason::Unauthorized(_)
        | UnavailableReason::ResultBufferFull => false,
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(number: u64) -> Duration {
        Duration::from_secs(number)
    }

    #[test]
    fn each_backoff_is_twice_the_one_before_up_to_half_a_minute_until_the_restart_limit() {
        let (mut falls, now) = (RestartBackoff::default(), Instant::now());
        let delays: Vec<_> = std::iter::from_fn(|| falls.next_restart(7, now, 0.5)).collect();
        let expected = [1, 2, 4, 8, 16, 30, 30].map(seconds);
        let expected = (1..).zip(expected).collect::<Vec<_>>();
        assert_eq!(delays, expected);
        assert_eq!(falls.next_restart(7, now, 0.5), None);
    }

    #[test]
    fn jitter_moves_a_backoff_by_a_tenth_and_never_past_the_maximum() {
        let first_delay = |jitter, earlier| {
            let mut falls =
                RestartBackoff { consecutive_restarts: earlier, ..RestartBackoff::default() };
            falls.next_restart(100, Instant::now(), jitter).unwrap().1
        };
        assert_eq!(
            (first_delay(0.0, 0), first_delay(1.0, 0)),
            (seconds(1) * 9 / 10, seconds(1) * 11 / 10)
        );
        assert_eq!((first_delay(1.0, 8), first_delay(1.0, 99)), (MAX_BACKOFF, MAX_BACKOFF));
    }

    #[test]
    fn a_minute_of_being_ready_and_not_less_resets_the_count() {
        for (ready_for, expected) in [(BACKOFF_RESET - seconds(1), None), (BACKOFF_RESET, Some(1))]
        {
            let (mut falls, start) = (RestartBackoff::default(), Instant::now());
            falls.record_ready(start);
            assert_eq!(falls.next_restart(1, start, 0.5).map(|(number, _)| number), Some(1));
            falls.record_ready(start);
            let next = falls.next_restart(1, start + ready_for, 0.5).map(|(number, _)| number);
            assert_eq!(next, expected, "after {ready_for:?}");
        }
    }
}
