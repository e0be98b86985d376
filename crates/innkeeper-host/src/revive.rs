//! Starts a server again that was lost, if its configuration says so: later each time, and so often only.

use std::pin::Pin;
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::config::Restart;
use crate::error::{Lost, RestartError};
use crate::event::Event;
use crate::start::{self, Start, Wish};

/// The first pause; each next one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause: a server that comes back by itself is not waited for much longer than that.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// The share by which a pause is moved to either side, so that servers that were lost together do
/// not come back together.
const SPREAD: f64 = 0.1;

/// How long a server has to be ready until its earlier failures are forgotten: twice the longest
/// pause, so that one that only just comes up runs out of restarts.
const STABLE: Duration = Duration::from_secs(60);

/// How often a server was lost and started again.
#[derive(Debug, Default)]
pub(crate) struct Falls {
    /// Restarts since it last was ready for long.
    restarts: u32,
    ready_since: Option<Instant>,
    /// How often it has become ready.
    readies: u32,
}

impl Falls {
    pub(crate) fn ready(&mut self, now: Instant) {
        self.ready_since = Some(now);
        self.readies += 1;
    }

    /// How often it has become ready: tells whether it is still the same loss.
    pub(crate) fn readies(&self) -> u32 {
        self.readies
    }

    /// How often it has become ready again.
    pub(crate) fn returns(&self) -> u32 {
        self.readies.saturating_sub(1)
    }

    /// The number of the next restart and the pause before it; `None` after `max` of them. `luck` is
    /// from 0 to 1.
    fn next(&mut self, max: u32, now: Instant, luck: f64) -> Option<(u32, Duration)> {
        let ready_since = self.ready_since.take();
        if ready_since.is_some_and(|since| now.duration_since(since) >= STABLE) {
            self.restarts = 0;
        }
        if self.restarts >= max {
            return None;
        }
        self.restarts += 1;
        let doubled = 2_u32.saturating_pow(self.restarts - 1);
        let pause = FIRST_PAUSE.saturating_mul(doubled).min(LONGEST_PAUSE);
        let spread = pause.mul_f64(1.0 - SPREAD + 2.0 * SPREAD * luck);
        Some((self.restarts, spread.min(LONGEST_PAUSE)))
    }
}

/// Whether a server that was lost for this reason may be better off after a start.
pub(crate) fn is_failure(lost: &Lost) -> bool {
    match lost {
        Lost::Exited(_)
        | Lost::ClosedOutput
        | Lost::ClosedInput
        | Lost::Noise
        | Lost::Unreachable(_)
        | Lost::Broken(_)
        | Lost::Refused(_)
        | Lost::Busy { .. } => true,
        // It may still be at work, or it is not its fault.
        Lost::Silent { .. }
        | Lost::NotStarted(_)
        | Lost::Starting
        | Lost::Shutdown
        | Lost::NotSignedIn(_)
        | Lost::ResultsNotTaken => false,
    }
}

/// Starts a lost server again until it is ready or may not be started again; boxed, since what it
/// starts may come here.
pub(crate) fn revive(start: Start) -> Pin<Box<dyn Future<Output = ()> + Send>> {
    Box::pin(async move {
        while let Some((number, delay)) = next(&start) {
            let Start { registry, server, .. } = &start;
            let readies = server.status().falls.readies();
            let (name, delay_s) = (&*server.name, delay.as_secs_f64());
            tracing::warn!(server = name, attempt = number, delay_s, "lost, starting it again");
            registry.events().publish(Event::Restarting {
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
            match start::restart(start.clone(), Wish::Lost { readies }).await {
                Err(RestartError::Failed(_)) => {}
                Ok(()) | Err(RestartError::Unknown(_) | RestartError::Shutdown) => return,
            }
        }
    })
}

fn next(start: &Start) -> Option<(u32, Duration)> {
    let server = &start.server;
    let Restart::OnFailure { max } = server.config().restart else { return None };
    let next = server.status().falls.next(max, Instant::now(), fastrand::f64());
    if next.is_none() {
        tracing::error!(server = &*server.name, max, "started again too often, stays down");
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
    fn each_pause_is_twice_the_one_before_up_to_half_a_minute_and_then_it_is_over() {
        let (mut falls, now) = (Falls::default(), Instant::now());
        let pauses: Vec<_> = std::iter::from_fn(|| falls.next(7, now, 0.5)).collect();
        let expected = [1, 2, 4, 8, 16, 30, 30].map(seconds);
        let expected = (1..).zip(expected).collect::<Vec<_>>();
        assert_eq!(pauses, expected);
        assert_eq!(falls.next(7, now, 0.5), None);
    }

    #[test]
    fn luck_moves_a_pause_by_a_tenth_and_never_past_the_longest() {
        let pause = |luck, earlier| {
            let mut falls = Falls { restarts: earlier, ..Falls::default() };
            falls.next(100, Instant::now(), luck).unwrap().1
        };
        assert_eq!((pause(0.0, 0), pause(1.0, 0)), (seconds(1) * 9 / 10, seconds(1) * 11 / 10));
        assert_eq!((pause(1.0, 8), pause(1.0, 99)), (LONGEST_PAUSE, LONGEST_PAUSE));
    }

    #[test]
    fn a_minute_of_being_ready_and_not_less_lets_the_count_start_anew() {
        for (ready_for, expected) in [(STABLE - seconds(1), None), (STABLE, Some(1))] {
            let (mut falls, start) = (Falls::default(), Instant::now());
            falls.ready(start);
            assert_eq!(falls.next(1, start, 0.5).map(|(number, _)| number), Some(1));
            falls.ready(start);
            let next = falls.next(1, start + ready_for, 0.5).map(|(number, _)| number);
            assert_eq!(next, expected, "after {ready_for:?}");
        }
    }
}
