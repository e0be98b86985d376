//! Counts consecutive timeouts of a server (FR6.3).

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// A callback that receives the number of consecutive timeouts.
type TimeoutCallback = Box<dyn Fn(u32) + Send + Sync>;

/// The consecutive timeouts since one launch of a server.
pub(crate) struct TimeoutStreak {
    limit: u32,
    calls: AtomicU32,
    on_limit: OnceLock<TimeoutCallback>,
}

impl fmt::Debug for TimeoutStreak {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silence").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl TimeoutStreak {
    /// Creates a streak that reports from `limit` timeouts on.
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, calls: AtomicU32::new(0), on_limit: OnceLock::new() }
    }

    /// Sets the callback for each timeout from the limit on; runs before the caller gets the error.
    pub(crate) fn set_callback(&self, callback: impl Fn(u32) + Send + Sync + 'static) {
        // The callback is set once per launch, when the server is ready.
        let _ = self.on_limit.set(Box::new(callback));
    }

    /// Resets the count after any response of the server.
    pub(crate) fn reset(&self) {
        // The count is nearly always zero; skipping the store then avoids cache line contention.
        if self.calls.load(Ordering::Relaxed) != 0 {
            self.calls.store(0, Ordering::Relaxed);
        }
    }

    /// Records the timeout of a sent call.
    pub(crate) fn record_timeout(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(callback) = self.on_limit.get().filter(|_| calls >= self.limit) {
            callback(calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_calls_in_a_row_count() {
        let silence = TimeoutStreak::new(2);
        let (sender, receiver) = mpsc::channel();
        silence.set_callback(move |calls| sender.send(calls).unwrap());
        silence.record_timeout();
        silence.reset();
        silence.record_timeout();
        assert!(receiver.try_recv().is_err());
        silence.record_timeout();
        assert_eq!(receiver.try_recv(), Ok(2));
    }
}
