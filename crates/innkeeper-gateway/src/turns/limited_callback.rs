//! A callback whose client keeps no other client waiting for long.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use innkeeper_host::{Callback, CallbackError, CallbackFuture, ServerRequest};
use innkeeper_protocol::envelope::code;
use tokio::time::sleep;

use super::MAX_ANSWER_TIME_WHILE_AWAITED;

/// Interval of the search for waiting calls after the time of the client.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// Passes requests to a callback. A request has an error if calls wait for the turn of the client
/// after [`MAX_ANSWER_TIME_WHILE_AWAITED`].
#[derive(Debug)]
pub(super) struct LimitedCallback {
    pub(super) callback: Arc<dyn Callback>,
    /// The number of calls that wait.
    pub(super) waiting: Arc<AtomicUsize>,
}

impl Callback for LimitedCallback {
    fn respond(&self, request: ServerRequest) -> CallbackFuture {
        let (answer, waiting) = (self.callback.respond(request), self.waiting.clone());
        Box::pin(async move {
            let awaited = async {
                sleep(MAX_ANSWER_TIME_WHILE_AWAITED).await;
                while waiting.load(Ordering::Relaxed) == 0 {
                    sleep(CHECK_INTERVAL).await;
                }
            };
            tokio::select! {
                biased;
                answer = answer => answer,
                () = awaited => {
                    let message = "the client did not respond while other clients wait";
                    Err(CallbackError::new(code::INTERNAL_ERROR, message))
                }
            }
        })
    }
}
