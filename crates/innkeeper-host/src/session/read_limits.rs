//! What limits how much of a server's output the host reads.

use super::budget::Budget;
use super::neighbours::Neighbours;
use super::{RateLimiter, SessionLimits};

#[derive(Debug)]
pub(super) struct ReadLimits {
    pub(super) max_line_bytes: usize,
    pub(super) max_discarded_bytes: u64,
    /// Memory for results that callers have not consumed yet.
    pub(super) results: Budget,
    pub(super) rate: RateLimiter,
    neighbours: Neighbours,
}

impl ReadLimits {
    pub(super) fn new(limits: SessionLimits, neighbours: Neighbours) -> Self {
        Self {
            max_line_bytes: limits.max_line_bytes,
            max_discarded_bytes: limits.max_discarded_bytes,
            results: Budget::new(limits.max_result_bytes),
            rate: RateLimiter::new(),
            neighbours,
        }
    }

    /// Waits until more may be read; the wait is bounded.
    pub(super) async fn wait_for_capacity(&self, server: &str) {
        if self.results.is_full() {
            self.results.wait_for_capacity().await;
        }
        if self.rate.should_throttle() {
            if self.neighbours.are_idle(server) {
                return self.rate.forgive();
            }
            if self.rate.take_first_report() {
                tracing::warn!(server, "too many unsolicited messages; reading throttled");
            }
            self.rate.throttle().await;
        }
    }
}
