//! The memory budget for results that callers have not consumed yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Minimum size in bytes of a counted result; the number of concurrent calls limits smaller
/// results.
const MIN_COUNTED_BYTES: usize = 16 << 10;

/// Time that reading pauses for callers to consume results before further results are rejected;
/// longer than the poll interval of any active caller.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct BudgetState {
    limit: usize,
    held_bytes: AtomicUsize,
    freed: Notify,
}

#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<BudgetState>);

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(BudgetState { limit, held_bytes: AtomicUsize::new(0), freed: Notify::new() }))
    }

    pub(super) fn is_full(&self) -> bool {
        self.0.held_bytes.load(Ordering::Relaxed) >= self.0.limit
    }

    #[cfg(test)]
    pub(super) fn held_bytes(&self) -> usize {
        self.0.held_bytes.load(Ordering::Relaxed)
    }

    /// Waits until capacity is available, at most [`CAPACITY_TIMEOUT`].
    pub(super) async fn wait_for_capacity(&self) {
        let wait = async {
            loop {
                let freed = self.0.freed.notified();
                if !self.is_full() {
                    return;
                }
                freed.await;
            }
        };
        // After a timeout, `try_reserve` rejects further results.
        let _ = tokio::time::timeout(CAPACITY_TIMEOUT, wait).await;
    }

    /// Reserves memory for a value until it is consumed or dropped; `None` if the budget is
    /// exhausted.
    pub(super) fn try_reserve<T>(
        &self,
        bytes: usize,
        value: impl FnOnce() -> T,
    ) -> Option<Budgeted<T>> {
        if bytes < MIN_COUNTED_BYTES {
            return Some(Budgeted { value: value(), reservation: None });
        }
        if self.is_full() {
            return None;
        }
        self.0.held_bytes.fetch_add(bytes, Ordering::Relaxed);
        Some(Budgeted {
            value: value(),
            reservation: Some(Reservation { budget: self.0.clone(), bytes }),
        })
    }
}

#[derive(Debug)]
struct Reservation {
    budget: Arc<BudgetState>,
    bytes: usize,
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
        self.budget.freed.notify_one();
    }
}

/// A value with a memory reservation in a session's budget.
#[derive(Debug)]
pub(crate) struct Budgeted<T> {
    value: T,
    reservation: Option<Reservation>,
}

impl<T> Budgeted<T> {
    /// Returns the value and releases its reservation.
    pub(crate) fn into_inner(self) -> T {
        drop(self.reservation);
        self.value
    }
}
