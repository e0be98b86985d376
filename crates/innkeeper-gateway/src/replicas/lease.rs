//! The lease of this replica: how long it may act for what it owns.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use super::Replicas;
use super::scripts;
use crate::redis_client::Reply;
use crate::store_error::StoreError;

/// The start of the names of leases.
pub(super) const LEASE_PREFIX: &str = "mcp:replica:";

/// Time before a new attempt after a renewal that failed.
const RETRY_DELAY: Duration = Duration::from_millis(250);

/// A lease by the clock of this process. It ends a fifth of its duration before the lease in Redis, so
/// that no other replica acts before this one stops.
#[derive(Debug)]
pub(super) struct Lease {
    duration: Duration,
    created: Instant,
    /// Milliseconds since `created`.
    valid_until: AtomicU64,
    /// Counts how often the lease began anew: another replica may own what this one owned before.
    epoch: AtomicU64,
}

impl Lease {
    pub(super) fn new(duration: Duration) -> Self {
        let valid_until = AtomicU64::new(0);
        let epoch = AtomicU64::new(0);
        Self { duration, created: Instant::now(), valid_until, epoch }
    }

    pub(super) fn is_valid(&self) -> bool {
        self.created + Duration::from_millis(self.valid_until.load(Ordering::Acquire))
            > Instant::now()
    }

    pub(super) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// Records a renewal that Redis received after `sent`.
    fn record(&self, sent: Instant, is_new: bool) {
        if is_new {
            self.epoch.fetch_add(1, Ordering::AcqRel);
        }
        let until = sent + self.duration * 4 / 5 - self.created;
        let until = u64::try_from(until.as_millis()).unwrap_or(u64::MAX);
        self.valid_until.fetch_max(until, Ordering::AcqRel);
    }
}

impl Replicas {
    /// Extends the lease. Returns whether it had ended.
    pub(super) async fn renew_lease(&self) -> Result<bool, StoreError> {
        let shared = &*self.0;
        let sent = Instant::now();
        let mut call = scripts::RENEW.prepare_invoke();
        call.key(format!("{LEASE_PREFIX}{}", shared.id));
        call.arg(&shared.options.url).arg(milliseconds(shared.options.lease));
        let reply: Reply = shared.redis.run(&call).await?;
        let is_new = match reply.name() {
            "renewed" => false,
            "new" => true,
            _ => return Err(reply.unexpected()),
        };
        shared.lease.record(sent, is_new);
        Ok(is_new)
    }

    /// Renews the lease until the future is dropped.
    pub(super) async fn keep_lease(self) {
        loop {
            let delay = match self.renew_lease().await {
                Ok(is_new) => {
                    if is_new {
                        tracing::warn!("the lease of this replica had ended");
                        self.verify_owned().await;
                    }
                    self.0.options.lease / 4
                }
                Err(error) => {
                    tracing::warn!(%error, "the lease of this replica was not renewed");
                    RETRY_DELAY
                }
            };
            sleep(delay).await;
        }
    }

    /// Returns whether this replica may act for what it owns.
    pub(crate) fn has_lease(&self) -> bool {
        self.0.lease.is_valid()
    }
}

/// Returns whole milliseconds.
pub(super) fn milliseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_lease_ends_here_before_it_ends_in_redis() {
        let lease = Lease::new(Duration::from_secs(10));
        assert!(!lease.is_valid(), "nothing renewed it");
        let sent = Instant::now();
        // The response arrives late.
        tokio::time::advance(Duration::from_secs(2)).await;
        lease.record(sent, true);
        assert_eq!(lease.epoch(), 1);
        tokio::time::advance(Duration::from_millis(5_999)).await;
        assert!(lease.is_valid());
        tokio::time::advance(Duration::from_millis(1)).await;
        assert!(!lease.is_valid());
        lease.record(sent, false);
        assert!(!lease.is_valid(), "an old response extends nothing");
        assert_eq!(lease.epoch(), 1);
    }
}
