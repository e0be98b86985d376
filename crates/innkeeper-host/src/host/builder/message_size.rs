//! The size of messages that servers may send.

use super::HostBuilder;
use crate::session::SessionLimits;

impl HostBuilder {
    /// Sets the maximum size of one message of a server in bytes, for servers with large results. A
    /// longer response is a protocol error of its call. The results of one server that callers have not
    /// consumed may have four times this size. Default: 16 MiB.
    #[must_use]
    pub fn max_message_bytes(mut self, bytes: usize) -> Self {
        self.client.limits = SessionLimits::for_messages(bytes);
        self
    }
}
