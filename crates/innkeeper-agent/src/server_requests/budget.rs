//! The number of requests that a server may send in a minute.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::safety::RateLimit;

/// A limit on the requests of one kind, counted for each server in a sliding window of 60 seconds.
/// The number of servers is the number of servers in the configuration.
#[derive(Debug)]
pub(super) struct RequestBudget {
    pub(super) per_minute: u32,
    servers: Mutex<HashMap<Arc<str>, RateLimit>>,
}

impl RequestBudget {
    pub(super) fn per_minute(requests: u32) -> Self {
        Self { per_minute: requests, servers: Mutex::default() }
    }

    /// Counts a request of a server.
    ///
    /// # Errors
    ///
    /// The delay until the next request is allowed. The rejected request is not counted.
    pub(super) fn try_acquire(&self, server: &Arc<str>, now: Instant) -> Result<(), Duration> {
        let mut servers = self.servers.lock().unwrap_or_else(PoisonError::into_inner);
        let limit = servers.entry(server.clone());
        limit.or_insert_with(|| RateLimit::per_minute(self.per_minute)).try_acquire_at(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_server_has_its_own_budget_which_a_minute_restores() {
        let budget = RequestBudget::per_minute(2);
        let (a, b) = (Arc::from("a"), Arc::from("b"));
        let start = Instant::now();
        for server in [&a, &a, &b] {
            assert_eq!(budget.try_acquire(server, start), Ok(()));
        }
        let later = start + Duration::from_secs(20);
        assert_eq!(budget.try_acquire(&a, later), Err(Duration::from_secs(40)));
        assert_eq!(budget.try_acquire(&b, later), Ok(()));
        let next_minute = start + Duration::from_secs(60);
        assert_eq!(budget.try_acquire(&a, next_minute), Ok(()));
    }
}
