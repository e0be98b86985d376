//! The restart history of a server, and the delay before its next restart.

use std::time::Duration;

use tokio::time::Instant;

use crate::backoff::{BACKOFF_RESET, INITIAL_BACKOFF, MAX_BACKOFF, doubled, with_jitter};

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
    pub(crate) fn next_restart(
        &mut self,
        max: u32,
        now: Instant,
        jitter: f64,
    ) -> Option<(u32, Duration)> {
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
    fn a_start_is_no_restart_and_each_further_one_is() {
        let mut starts = RestartBackoff::default();
        let counts = [(); 3].map(|()| {
            let before = starts.restart_count();
            starts.record_ready(Instant::now());
            (before, starts.restart_count(), starts.ready_generation())
        });
        assert_eq!(counts, [(0, 0, 1), (0, 1, 2), (1, 2, 3)]);
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
