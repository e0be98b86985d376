//! How many calls in a row a server has not answered in time, and when that is too many (FR6.3).

use std::fmt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// What is told how many calls it was.
type Over = Box<dyn Fn(u32) + Send + Sync>;

/// The silence of one launch of a server.
pub(crate) struct Silence {
    limit: u32,
    calls: AtomicU32,
    over: OnceLock<Over>,
}

impl fmt::Debug for Silence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Silence").field("calls", &self.calls).finish_non_exhaustive()
    }
}

impl Silence {
    /// Too many are `limit` calls.
    pub(crate) fn new(limit: u32) -> Self {
        Self { limit, calls: AtomicU32::new(0), over: OnceLock::new() }
    }

    /// Has `over` told of each call from the limit on, before its caller learns of it.
    pub(crate) fn watch(&self, over: impl Fn(u32) + Send + Sync + 'static) {
        // A launch is watched once, when it is ready.
        drop(self.over.set(Box::new(over)));
    }

    /// The server has answered, whatever it said.
    pub(crate) fn broken(&self) {
        // Nearly always there is nothing to forget, and then nobody else's cache is touched.
        if self.calls.load(Ordering::Relaxed) != 0 {
            self.calls.store(0, Ordering::Relaxed);
        }
    }

    /// A call that was sent ran into its deadline.
    pub(crate) fn kept(&self) {
        let calls = self.calls.fetch_add(1, Ordering::Relaxed).saturating_add(1);
        if let Some(over) = self.over.get().filter(|_| calls >= self.limit) {
            over(calls);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn only_calls_in_a_row_count() {
        let silence = Silence::new(2);
        let (tell, told) = mpsc::channel();
        silence.watch(move |calls| tell.send(calls).unwrap());
        silence.kept();
        silence.broken();
        silence.kept();
        assert!(told.try_recv().is_err());
        silence.kept();
        assert_eq!(told.try_recv(), Ok(2));
    }
}
