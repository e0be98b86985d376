//! What the fixture server has put off: actions by the moment they are due.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Actions waiting for their time; those due at the same moment keep their order.
#[derive(Debug)]
pub(super) struct Timers<A> {
    due: BTreeMap<(Instant, u64), A>,
    next: u64,
}

impl<A> Timers<A> {
    pub(super) fn new() -> Self {
        Self { due: BTreeMap::new(), next: 0 }
    }

    /// Puts `action` off by `delay`.
    pub(super) fn after(&mut self, delay: Duration, action: A) {
        self.due.insert((now() + delay, self.next), action);
        self.next += 1;
    }

    /// How long until the next action is due; `None` when there is none.
    pub(super) fn wait(&self) -> Option<Duration> {
        let ((at, _), _) = self.due.first_key_value()?;
        Some(at.saturating_duration_since(now()))
    }

    /// Takes the next action whose time has come.
    pub(super) fn pop(&mut self) -> Option<A> {
        let entry = self.due.first_entry()?;
        (entry.key().0 <= now()).then(|| entry.remove())
    }

    /// Drops what was put off and no longer wanted.
    pub(super) fn retain(&mut self, wanted: impl Fn(&A) -> bool) {
        self.due.retain(|_, action| wanted(action));
    }
}

#[expect(clippy::disallowed_methods, reason = "a process of its own, without a tokio clock")]
fn now() -> Instant {
    Instant::now()
}
