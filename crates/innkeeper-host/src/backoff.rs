//! Growing delays between attempts, with an upper limit and jitter.

use std::time::Duration;

/// First backoff of a restart or of a stream that is opened again; each further backoff is twice as
/// long.
pub(crate) const INITIAL_BACKOFF: Duration = Duration::from_secs(1);

/// Maximum backoff; limits the wait for a server whose problem disappears by itself.
pub(crate) const MAX_BACKOFF: Duration = Duration::from_secs(30);

/// Time after which an attempt counts as successful and its earlier failures are forgotten: twice
/// the maximum backoff, so that a server that succeeds only briefly is not tried at a high rate.
pub(crate) const BACKOFF_RESET: Duration = Duration::from_secs(60);

/// Relative jitter of a backoff (±10 %), so that attempts that failed together are not repeated
/// together.
const JITTER: f64 = 0.1;

/// Returns `initial`, doubled this number of times, at most `max`.
pub(crate) fn doubled(initial: Duration, doublings: u32, max: Duration) -> Duration {
    initial.saturating_mul(2_u32.saturating_pow(doublings)).min(max)
}

/// Varies a delay by the jitter; `chance`, from 0 to 1, selects the variation.
pub(crate) fn with_jitter(delay: Duration, chance: f64) -> Duration {
    delay.mul_f64(1.0 - JITTER + 2.0 * JITTER * chance)
}

/// The backoff of a stream or a session that is opened again whenever it ends.
#[derive(Debug)]
pub(crate) struct ReopenBackoff(Duration);

impl Default for ReopenBackoff {
    fn default() -> Self {
        Self(INITIAL_BACKOFF)
    }
}

impl ReopenBackoff {
    pub(crate) fn delay(&self) -> Duration {
        self.0
    }

    pub(crate) fn reset(&mut self) {
        self.0 = INITIAL_BACKOFF;
    }

    pub(crate) fn double(&mut self) {
        self.0 = doubled(self.0, 1, MAX_BACKOFF);
    }

    /// Resets the backoff after an attempt of at least [`BACKOFF_RESET`], else doubles the backoff.
    pub(crate) fn record_attempt(&mut self, duration: Duration) {
        if duration >= BACKOFF_RESET { self.reset() } else { self.double() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_backoff_doubles_up_to_the_maximum_and_never_overflows() {
        let delays: Vec<u64> =
            (0..7).map(|n| doubled(INITIAL_BACKOFF, n, MAX_BACKOFF).as_secs()).collect();
        assert_eq!(delays, [1, 2, 4, 8, 16, 30, 30]);
        assert_eq!(doubled(Duration::MAX, u32::MAX, Duration::MAX), Duration::MAX);
    }

    #[test]
    fn jitter_varies_a_delay_by_a_tenth() {
        let varied = [0.0, 0.5, 1.0].map(|chance| with_jitter(INITIAL_BACKOFF, chance).as_millis());
        assert_eq!(varied, [900, 1_000, 1_100]);
    }

    #[test]
    fn only_a_long_attempt_resets_the_backoff() {
        let mut backoff = ReopenBackoff::default();
        for expected in [2, 4, 8, 16, 30, 30] {
            backoff.record_attempt(BACKOFF_RESET - Duration::from_millis(1));
            assert_eq!(backoff.delay(), Duration::from_secs(expected));
        }
        backoff.record_attempt(BACKOFF_RESET);
        assert_eq!(backoff.delay(), INITIAL_BACKOFF);
    }
}
