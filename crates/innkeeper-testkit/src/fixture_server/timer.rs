//! Timers of the fixture server: actions by due time.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Scheduled actions; actions with the same due time keep their order.
#[derive(Debug)]
pub(super) struct TimerQueue<A> {
    due: BTreeMap<(Instant, u64), A>,
    next: u64,
}

impl<A> TimerQueue<A> {
    pub(super) fn new() -> Self {
        Self { due: BTreeMap::new(), next: 0 }
    }

    /// Schedules `action` after `delay`.
    pub(super) fn schedule(&mut self, delay: Duration, action: A) {
        self.due.insert((now() + delay, self.next), action);
        self.next += 1;
    }

    /// Returns the time until the next action; `None` without an action.
    pub(super) fn time_until_next(&self) -> Option<Duration> {
        let ((at, _), _) = self.due.first_key_value()?;
        Some(at.saturating_duration_since(now()))
    }

    /// Removes and returns the next due action.
    pub(super) fn pop(&mut self) -> Option<A> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now()).then(|| entry.remove())
    }

    /// Keeps the actions for which `predicate` returns true.
    pub(super) fn retain(&mut self, predicate: impl Fn(&A) -> bool) {
        self.due.retain(|_, action| predicate(action));
    }
}

#[expect(clippy::disallowed_methods, reason = "a separate process without tokio's clock")]
fn now() -> Instant {
    Instant::now()
}
