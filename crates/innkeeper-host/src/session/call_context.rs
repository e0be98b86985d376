//! The call that a request belongs to, with its callback, for messages of the server about the
//! call.

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{SetOnce, mpsc};

use super::{CallNotification, Caller};
use crate::callback::Callback;
use crate::event::CallReference;

#[derive(Debug)]
struct CallbackState {
    callback: Arc<dyn Callback>,
    used: AtomicBool,
    call_ended: SetOnce<()>,
}

/// The callback of one call. Dropping the value cancels the callback's running futures.
#[derive(Debug)]
pub(crate) struct CallCallback(CallCallbackHandle);

impl CallCallback {
    pub(crate) fn new(callback: &Arc<dyn Callback>) -> Self {
        let used = AtomicBool::new(false);
        let call_ended = SetOnce::new();
        Self(CallCallbackHandle(Arc::new(CallbackState {
            callback: callback.clone(),
            used,
            call_ended,
        })))
    }

    /// Returns the callback for a request of the server.
    pub(crate) fn use_callback(&self) -> &Arc<dyn Callback> {
        self.0.use_callback()
    }

    /// Returns whether the server has sent a request to the callback.
    pub(crate) fn is_used(&self) -> bool {
        self.0.0.used.load(Ordering::Relaxed)
    }
}

impl Drop for CallCallback {
    fn drop(&mut self) {
        // Only this value sets the cell.
        let _ = self.0.0.call_ended.set(());
    }
}

/// A handle to the callback of a call that may have ended.
#[derive(Clone, Debug)]
pub(super) struct CallCallbackHandle(Arc<CallbackState>);

impl CallCallbackHandle {
    /// Returns the callback for a request of the server.
    pub(super) fn use_callback(&self) -> &Arc<dyn Callback> {
        self.0.used.store(true, Ordering::Relaxed);
        &self.0.callback
    }

    /// Waits until the call ends.
    pub(super) async fn call_ended(&self) {
        self.0.call_ended.wait().await;
    }
}

/// The call that an outgoing request belongs to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CallContext<'a> {
    /// The id of the call: of the request itself, or of the request that created the task.
    pub(crate) id: u64,
    pub(crate) method: &'a Cow<'static, str>,
    /// The tool, the prompt or the URI.
    pub(crate) item: &'a str,
    pub(crate) callback: Option<&'a CallCallback>,
    pub(crate) caller: Option<&'a Arc<Caller>>,
}

impl CallContext<'_> {
    pub(crate) fn reference(&self) -> CallReference {
        CallReference::Call { id: self.id, method: self.method.clone(), item: self.item.into() }
    }
}

/// The call of a pending request.
#[derive(Clone, Debug)]
pub(super) struct PendingCall {
    pub(super) id: u64,
    method: Cow<'static, str>,
    item: Arc<str>,
    pub(super) callback: Option<CallCallbackHandle>,
    pub(super) caller: Option<Arc<Caller>>,
}

impl From<CallContext<'_>> for PendingCall {
    fn from(call: CallContext<'_>) -> Self {
        let callback = call.callback.map(|callback| callback.0.clone());
        let method = call.method.clone();
        let caller = call.caller.cloned();
        Self { id: call.id, method, item: call.item.into(), callback, caller }
    }
}

impl PendingCall {
    /// Returns the channel for the notifications that belong to the call.
    pub(super) fn notifications(&self) -> Option<&mpsc::Sender<CallNotification>> {
        self.caller.as_ref()?.notifications.as_ref()
    }

    pub(super) fn into_reference(self) -> CallReference {
        CallReference::Call { id: self.id, method: self.method, item: self.item }
    }
}

#[cfg(test)]
mod tests;
