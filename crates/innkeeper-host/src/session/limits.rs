//! The limits of one session.

use std::time::Duration;

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

impl SessionLimits {
    /// The limits of a session whose messages may have this size.
    pub(crate) fn for_messages(max_line_bytes: usize) -> Self {
        Self {
            max_line_bytes,
            max_discarded_bytes: (max_line_bytes as u64).saturating_mul(16),
            max_write_queue_bytes: 8 << 20,
            max_result_bytes: max_line_bytes.saturating_mul(4),
            callback_timeout: Duration::from_mins(10),
        }
    }
}

impl Default for SessionLimits {
    fn default() -> Self {
        Self::for_messages(16 << 20)
    }
}
