//! So many requests a minute, and no more.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The time the limit is about.
const MINUTE: Duration = Duration::from_secs(60);

/// The highest limit: that many times are kept.
const MOST: u32 = 100_000;

/// Counts requests within the last minute.
#[derive(Debug)]
pub struct RateLimit {
    per_minute: u32,
    begun: Mutex<VecDeque<Instant>>,
}

impl RateLimit {
    /// So many in any 60 seconds, 100,000 at most; 0 lets none through.
    pub fn per_minute(requests: u32) -> Self {
        Self { per_minute: requests.min(MOST), begun: Mutex::default() }
    }

    /// Whether waiting may help.
    pub(crate) fn lets_any_through(&self) -> bool {
        self.per_minute > 0
    }

    /// Counts one that begins now.
    ///
    /// # Errors
    ///
    /// It would be one too many, and is not counted: after how long it may be tried again.
    pub fn begin(&self) -> Result<(), Duration> {
        let now = Instant::now();
        let mut begun = self.begun.lock().unwrap_or_else(PoisonError::into_inner);
        while begun.front().is_some_and(|first| now.duration_since(*first) >= MINUTE) {
            begun.pop_front();
        }
        if begun.len() < self.per_minute as usize {
            begun.push_back(now);
            return Ok(());
        }
        let first = begun.front().map_or(MINUTE, |first| MINUTE - now.duration_since(*first));
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
            assert_eq!(limit.begin(), Ok(()));
            tokio::time::advance(Duration::from_secs(1)).await;
        }
        assert_eq!(limit.begin(), Err(Duration::from_secs(30)));
        tokio::time::advance(Duration::from_secs(29)).await;
        assert_eq!(limit.begin(), Err(Duration::from_secs(1)));
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(limit.begin(), Ok(()));
        assert_eq!(limit.begin(), Err(Duration::from_secs(1)));
        assert_eq!(RateLimit::per_minute(0).begin(), Err(MINUTE));
    }
}
