//! Requests whose response nobody waits for: what a dropped call still has to tell its server.
//!
//! A call can be dropped anywhere, also outside of a runtime. So its destructor only queues what it
//! prepared before, and one task of the session sends it. The end of the host waits for the queue,
//! within its time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use super::active_task_guard::ActiveTaskGuard;
use super::{HeaderValues, OutgoingRequest, Session, SessionState};

/// Maximum number of queued requests; further ones are dropped. `maxConcurrent` permits fewer calls
/// (10,000), so a host that drops all of them at once loses none.
const MAX_QUEUED: usize = 1 << 14;

/// A request that is ready to be sent.
#[derive(Debug)]
pub(crate) struct DetachedRequest {
    pub(crate) method: &'static str,
    /// The name for transports that repeat it in a header.
    pub(crate) name: String,
    pub(crate) params: Box<RawValue>,
    /// Time after which the request is abandoned.
    pub(crate) limit: Duration,
}

/// A queued request, which counts as an active task of its session until it has ended.
#[derive(Debug)]
struct QueuedRequest {
    request: DetachedRequest,
    active: ActiveTaskGuard,
}

/// The entrance of the queue.
#[derive(Debug)]
pub(super) struct DetachedRequests(mpsc::Sender<QueuedRequest>);

/// The exit of the queue.
pub(super) struct DetachedReceiver(mpsc::Receiver<QueuedRequest>);

pub(super) fn channel() -> (DetachedRequests, DetachedReceiver) {
    let (sender, receiver) = mpsc::channel(MAX_QUEUED);
    (DetachedRequests(sender), DetachedReceiver(receiver))
}

impl DetachedRequests {
    pub(super) fn add(&self, session: &Arc<SessionState>, request: DetachedRequest) {
        let queued = QueuedRequest { request, active: ActiveTaskGuard::new(session.clone()) };
        if self.0.try_send(queued).is_err() {
            tracing::debug!(server = &*session.server, "background request dropped");
        }
    }
}

impl DetachedReceiver {
    /// Sends the requests, without waiting for one before the next, until the session is dropped.
    pub(super) async fn send_all(mut self) {
        let mut sending = FuturesUnordered::new();
        loop {
            tokio::select! {
                queued = self.0.recv() => match queued {
                    Some(queued) => sending.push(queued.send()),
                    None => return,
                },
                Some(()) = sending.next() => {}
            }
        }
    }
}

impl QueuedRequest {
    async fn send(self) {
        let Self { request: DetachedRequest { method, name, params, limit }, active } = self;
        let session = Session(active.session().clone());
        let headers = HeaderValues { name: Some(&name), arguments: &[] };
        let deadline = Instant::now() + limit;
        let outgoing = OutgoingRequest::new(session.next_id(), method, &params, deadline);
        let outgoing =
            OutgoingRequest { headers, cancellable: false, background: true, ..outgoing };
        if let Err(error) = session.request(outgoing).await {
            let server = &*session.0.server;
            let outcome = error.kind().as_str();
            tracing::debug!(server, method, outcome, "background request failed");
        }
    }
}

#[cfg(test)]
mod tests {
    use innkeeper_protocol::method;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::session::SessionLimits;
    use crate::session::tests::open_session;

    #[tokio::test]
    async fn a_full_queue_drops_the_next_request() {
        let (_peer, session, _tasks) = open_session(SessionLimits::default());
        // Nothing is sent before the test waits.
        for _ in 0..=MAX_QUEUED {
            session.send_detached(DetachedRequest {
                method: method::TASKS_CANCEL,
                name: "t".to_owned(),
                params: to_raw_value(&()).unwrap(),
                limit: Duration::from_secs(1),
            });
        }
        assert_eq!(session.0.active_tasks.count(), MAX_QUEUED);
    }
}
