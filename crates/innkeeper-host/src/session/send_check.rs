//! A check of the application immediately before a request is sent.

use std::fmt;

use futures_util::future::BoxFuture;

/// Decides immediately before each attempt of a call whether the host sends the request, after the
/// wait for a permit. For a gateway whose right to call the server can end while a call waits.
pub trait SendCheck: fmt::Debug + Send + Sync {
    /// Returns `Ok` if the request may be sent. The host waits at most until the call's timeout.
    ///
    /// # Errors
    ///
    /// The reason why the host does not send the request. The call fails with
    /// [`CallError::Unavailable`](crate::CallError::Unavailable) and has not run.
    fn check(&self) -> BoxFuture<'_, Result<(), String>>;
}
