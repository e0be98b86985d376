//! The remote client of a call, as far as messages of the server about the call need it.

use tokio::sync::mpsc;

use super::CallNotification;

/// The remote client on whose behalf the application calls.
#[derive(Debug)]
pub(crate) struct Caller {
    /// Receives the notifications that belong to the call.
    pub(crate) notifications: Option<mpsc::Sender<CallNotification>>,
}
