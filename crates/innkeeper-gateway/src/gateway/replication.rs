//! What a gateway has as one of several replicas.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use tokio::sync::mpsc;

use crate::event_stream::EventStream;
use crate::replicas::Replicas;
use crate::stream_log::store_streams;
use crate::tasks::GatewayTasks;
use crate::transport::http::{Forwarder, HttpTransport};

/// The replica of a gateway.
#[derive(Debug)]
pub(crate) struct Replication {
    pub(crate) replicas: Replicas,
    pub(crate) forwarder: Forwarder,
    /// Takes event streams with messages to store.
    pub(crate) stream_queue: mpsc::UnboundedSender<Arc<EventStream>>,
    /// The routes of clients, for requests that other replicas pass on.
    pub(crate) transport: OnceLock<Weak<HttpTransport>>,
}

impl Replication {
    pub(super) fn new(replicas: Replicas, tasks: &GatewayTasks, request_time: Duration) -> Self {
        #[expect(clippy::disallowed_methods, reason = "each stream is in the queue at most once")]
        let (stream_queue, queued) = mpsc::unbounded_channel();
        replicas.start(tasks);
        tasks.spawn(store_streams(replicas.clone(), queued));
        let (forwarder, transport) = (Forwarder::new(request_time), OnceLock::new());
        Self { replicas, forwarder, stream_queue, transport }
    }
}

#[cfg(test)]
mod tests;
