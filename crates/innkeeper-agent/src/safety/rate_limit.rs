//! Limits the number of requests per minute.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

const WINDOW: Duration = Duration::from_secs(60);

/// Upper bound of the limit, because each counted request stores a timestamp.
const MAX_PER_MINUTE: u32 = 100_000;

/// A limit on the requests in a sliding window of 60 seconds.
#[derive(Debug)]
pub struct RateLimit {
    per_minute: u32,
    request_times: Mutex<VecDeque<Instant>>,
}

impl RateLimit {
    /// Creates a limit for any 60 seconds, at most 100,000. With 0, no request is allowed.
    pub fn per_minute(requests: u32) -> Self {
        Self { per_minute: requests.min(MAX_PER_MINUTE), request_times: Mutex::default() }
    }

    /// Returns whether the limit allows requests at all, so that waiting can help.
    pub(crate) fn allows_any(&self) -> bool {
        self.per_minute > 0
    }

    /// Counts a request that starts now.
    ///
    /// # Errors
    ///
    /// The delay until the next request is allowed. The rejected request is not counted.
    pub fn try_acquire(&self) -> Result<(), Duration> {
        self.try_acquire_at(Instant::now())
    }

    /// Counts a request that starts at `now`. Errors as for [`Self::try_acquire`].
    pub(crate) fn try_acquire_at(&self, now: Instant) -> Result<(), Duration> {
        let mut request_times = self.request_times.lock().unwrap_or_else(PoisonError::into_inner);
        while request_times.front().is_some_and(|first| now.duration_since(*first) >= WINDOW) {
            request_times.pop_front();
        }
        if request_times.len() < self.per_minute as usize {
            request_times.push_back(now);
            return Ok(());
        }
        let first =
            request_times.front().map_or(WINDOW, |first| WINDOW - now.duration_since(*first));
        Err(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves: P8
    #[tokio::test(start_paused = true)]
    async fn the_thirty_first_request_in_a_minute_is_refused_until_the_first_is_a_minute_old() {
        let limit = RateLimit::per_minute(30);
        for _ in 0..30 {
            assert_eq!(limit.try_acquire(), Ok(()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(limit.try_acquire(), Err(Duration::from_secs(30)));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(limit.try_acquire(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limit.try_acquire(), Ok(()));
        assert_eq!(limit.try_acquire(), Err(Duration::from_secs(1)));
        assert_eq!(RateLimit::per_minute(0).try_acquire(), Err(WINDOW));
    }

    #[test]
    fn only_a_limit_of_zero_allows_no_request() {
        let allowed = [0, 1, u32::MAX].map(|requests| RateLimit::per_minute(requests).allows_any());
        assert_eq!(allowed, [false, true, true]);
    }
}
