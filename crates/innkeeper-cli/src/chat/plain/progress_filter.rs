//! Selects the progress of calls that is printed as lines.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// Minimum time between two lines about the progress of one call.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// The times of the last lines about running calls, by the ids of the calls.
#[derive(Debug, Default)]
pub(super) struct ProgressFilter(HashMap<String, Instant>);

impl ProgressFilter {
    /// Returns whether a line about the progress of a call is due.
    pub(super) fn is_due(&mut self, call: &str) -> bool {
        let now = Instant::now();
        match self.0.get_mut(call) {
            Some(last) if now.duration_since(*last) < PROGRESS_INTERVAL => false,
            Some(last) => {
                *last = now;
                true
            }
            None => {
                self.0.insert(call.to_owned(), now);
                true
            }
        }
    }

    /// Forgets a call that has ended.
    pub(super) fn remove(&mut self, call: &str) {
        self.0.remove(call);
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn each_call_has_one_line_at_once_and_one_in_each_interval() {
        let mut filter = ProgressFilter::default();
        let mut count = |call: &str| (0..1_000).filter(|_| filter.is_due(call)).count();
        assert_eq!((count("a"), count("b")), (1, 1));
        advance(PROGRESS_INTERVAL - Duration::from_millis(1)).await;
        assert_eq!((count("a"), count("c")), (0, 1));
        advance(Duration::from_millis(1)).await;
        assert_eq!((count("a"), count("c")), (1, 0));
        filter.remove("c");
        assert!(filter.is_due("c"));
        assert_eq!(filter.0.len(), 3);
    }
}
