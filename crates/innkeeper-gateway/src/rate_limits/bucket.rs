//! A token bucket.

use std::time::Duration;

use innkeeper_host::config::Rate;
use tokio::time::Instant;

/// The time that a rate counts in.
const MINUTE: Duration = Duration::from_mins(1);

/// A token bucket as the time when the bucket is full (the generic cell rate algorithm). A new bucket
/// is full.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    full_at: Option<Instant>,
}

impl Bucket {
    /// Takes one token, or returns the time until there is a token.
    pub(super) fn take(&mut self, rate: Rate, now: Instant) -> Result<(), Duration> {
        let token = token_time(rate);
        let capacity = token.saturating_mul(rate.burst.max(1));
        let needed = self.full_in(now) + token;
        if needed > capacity {
            return Err(needed - capacity);
        }
        self.full_at = Some(now + needed);
        Ok(())
    }

    /// Returns the time until the bucket is full.
    pub(super) fn full_in(&self, now: Instant) -> Duration {
        self.full_at.map_or(Duration::ZERO, |at| at.saturating_duration_since(now))
    }

    /// Sets the time until the bucket is full.
    pub(super) fn set_full_in(&mut self, time: Duration, now: Instant) {
        self.full_at = Some(now + time);
    }

    /// Returns whether the bucket is full, like a new bucket.
    pub(super) fn is_full(&self, now: Instant) -> bool {
        self.full_at.is_none_or(|at| at <= now)
    }
}

/// Returns the time in which a bucket gets one token. In the rate, zero counts as one.
pub(super) fn token_time(rate: Rate) -> Duration {
    MINUTE / rate.per_minute.max(1)
}
