//! Where a request belongs: to this replica, or to another that it is passed on to.

mod forwarder;
pub(super) mod forwarding;
pub(super) mod place;
pub(super) mod placement;
pub(super) mod take_over;

use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use tokio::sync::mpsc;

use crate::event_stream::EventStream;
use crate::replicas::{Ownership, Replicas};
use crate::stream_log::store_streams;
use crate::tasks::GatewayTasks;
use forwarder::Forwarder;

/// Maximum number of sessions that are released at the same time.
const MAX_RELEASES: usize = 64;

/// This replica, for requests and streams.
#[derive(Debug)]
pub(super) struct Replication {
    pub(super) replicas: Replicas,
    pub(super) forwarder: Forwarder,
    /// Takes event streams with messages to store.
    pub(super) stream_queue: mpsc::UnboundedSender<Arc<EventStream>>,
    /// Takes the ownership of sessions that have ended.
    pub(super) ended: mpsc::UnboundedSender<Arc<Ownership>>,
}

impl Replication {
    pub(super) fn new(replicas: Replicas, tasks: &GatewayTasks, request_time: Duration) -> Self {
        #[expect(clippy::disallowed_methods, reason = "each stream is in the queue at most once")]
        let (stream_queue, queued) = mpsc::unbounded_channel();
        tasks.spawn(store_streams(replicas.clone(), queued));
        #[expect(
            clippy::disallowed_methods,
            reason = "each session is in the queue at most once, and none opens without Redis"
        )]
        let (ended, queued) = mpsc::unbounded_channel();
        tasks.spawn(release(replicas.clone(), queued));
        Self { replicas, forwarder: Forwarder::new(request_time), stream_queue, ended }
    }
}

/// Forgets sessions that have ended in Redis.
async fn release(replicas: Replicas, mut ended: mpsc::UnboundedReceiver<Arc<Ownership>>) {
    let ended = stream::poll_fn(move |cx| ended.poll_recv(cx));
    let releasing = ended.for_each_concurrent(MAX_RELEASES, async |ownership| {
        // Without a response, the key expires.
        let _ = replicas.release(&ownership, Some(Vec::new())).await;
    });
    releasing.await;
}
