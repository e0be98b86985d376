//! Notifications of a server that belong to a call.

use std::sync::Arc;

use serde_json::value::RawValue;

/// A notification of a server that belongs to a call.
#[derive(Clone, Debug)]
pub struct CallNotification {
    /// The method, for example `notifications/message`.
    pub method: Arc<str>,
    /// The parameters as the server sent them. The parameters of `notifications/progress` contain
    /// the progress token of the host.
    pub params: Option<Arc<RawValue>>,
    /// Whether only the absence of other requests in flight ties the notification to the call: a log
    /// message over a pipe. It may also be about a call that has ended.
    pub is_assumed: bool,
}
