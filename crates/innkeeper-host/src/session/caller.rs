//! The remote client of a call, as far as messages of the server about the call need it.

use std::sync::Arc;

use tokio::sync::mpsc;

use super::CallNotification;
use super::call_hold::CallHold;
use super::send_check::SendCheck;
use crate::callback::{CallbackError, ClientCapabilities, ServerRequest};

/// The remote client on whose behalf the application calls.
#[derive(Debug, Default)]
pub(crate) struct Caller {
    /// Receives the notifications that belong to the call.
    pub(crate) notifications: Option<mpsc::Sender<CallNotification>>,
    /// The requests of the server that the client can respond to; `None` for all.
    pub(crate) capabilities: Option<ClientCapabilities>,
    /// The client, whose open requests of the server have limits of their own.
    pub(crate) principal: Option<Arc<str>>,
    /// Whether the calls of the principal leave permits for other principals.
    pub(crate) has_limited_share: bool,
    /// Decides before each attempt whether the request is sent.
    pub(crate) send_check: Option<Arc<dyn SendCheck>>,
    /// Held while the server may process the call.
    pub(crate) hold: Option<Arc<dyn CallHold>>,
}

impl Caller {
    /// Returns the error for a request of the server that the client cannot respond to.
    pub(crate) fn rejection(&self, request: &ServerRequest) -> Option<CallbackError> {
        self.capabilities.as_ref()?.rejection(request)
    }
}
