//! The state that only a replicated transport needs.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::mpsc;

use super::forwarder::Forwarder;
use crate::event_stream::EventStream;
use crate::replicas::Replicas;
use crate::stream_log::store_streams;
use crate::tasks::GatewayTasks;

/// This replica, for requests and streams.
#[derive(Debug)]
pub(super) struct Replication {
    pub(super) replicas: Replicas,
    pub(super) forwarder: Forwarder,
    /// Takes event streams with messages to store.
    pub(super) stream_queue: mpsc::UnboundedSender<Arc<EventStream>>,
}

impl Replication {
    pub(super) fn new(replicas: Replicas, tasks: &GatewayTasks, request_time: Duration) -> Self {
        #[expect(clippy::disallowed_methods, reason = "each stream is in the queue at most once")]
        let (stream_queue, queued) = mpsc::unbounded_channel();
        tasks.spawn(store_streams(replicas.clone(), queued));
        Self { replicas, forwarder: Forwarder::new(request_time), stream_queue }
    }
}
