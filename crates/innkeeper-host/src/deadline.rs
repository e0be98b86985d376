//! The deadlines of a request: without activity, and in total.

use std::time::Duration;

use tokio::time::Instant;

/// Maximum timeout of a request; some systems cannot represent longer durations.
pub(crate) const MAX_REQUEST_TIMEOUT: Duration = Duration::from_secs(365 * 24 * 3600);

#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestDeadlines {
    pub(crate) started: Instant,
    /// Deadline without activity of the server.
    pub(crate) idle_deadline: Instant,
    /// Absolute deadline.
    pub(crate) deadline: Instant,
}

impl RequestDeadlines {
    pub(crate) fn new(start: Instant, silence: Duration, max_total: Duration) -> Self {
        let silence = silence.min(MAX_REQUEST_TIMEOUT);
        Self {
            started: start,
            idle_deadline: start + silence,
            deadline: start + max_total.min(MAX_REQUEST_TIMEOUT).max(silence),
        }
    }
}
