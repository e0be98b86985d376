//! The limits of one session.

use std::time::Duration;

/// The limits of one session.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SessionLimits {
    /// Maximum size of one line from the server in bytes. Default: 16 MiB, as in other hosts.
    pub(crate) max_line_bytes: usize,
    /// Maximum number of discarded bytes of oversized lines. Default: sixteen maximum lines.
    pub(crate) max_discarded_bytes: u64,
    /// Maximum number of queued outgoing bytes. Default: two of the largest expected model
    /// requests.
    pub(crate) max_write_queue_bytes: usize,
    /// Maximum number of bytes in results that callers have not consumed. Default: four maximum
    /// lines.
    pub(crate) max_result_bytes: usize,
    /// Timeout of a callback for a server request. Default: the timeout of a call.
    pub(crate) callback_timeout: Duration,
}

impl Default for SessionLimits {
    fn default() -> Self {
        let callback_timeout = Duration::from_mins(10);
        Self {
            max_line_bytes: 16 << 20,
            max_discarded_bytes: 256 << 20,
            max_write_queue_bytes: 8 << 20,
            max_result_bytes: 64 << 20,
            callback_timeout,
        }
    }
}
