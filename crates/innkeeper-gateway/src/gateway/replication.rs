//! What a gateway has as one of several replicas.

use std::sync::{Arc, OnceLock, Weak};

use tokio::sync::mpsc;

use super::GatewayInner;
use crate::event_stream::EventStream;
use crate::principal::Principal;
use crate::replicas::{OwnedKey, Replicas};
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
    pub(super) fn new(replicas: Replicas, tasks: &GatewayTasks) -> Self {
        #[expect(clippy::disallowed_methods, reason = "each stream is in the queue at most once")]
        let (stream_queue, queued) = mpsc::unbounded_channel();
        replicas.start(tasks);
        tasks.spawn(store_streams(replicas.clone(), queued));
        let (forwarder, transport) = (Forwarder::new(), OnceLock::new());
        Self { replicas, forwarder, stream_queue, transport }
    }
}

impl GatewayInner {
    /// Returns what a replica must own to handle a request: the principal if it has servers of its
    /// own, else the session. A request without either can be handled by any replica.
    pub(crate) fn owned_key(
        &self,
        principal: &Principal,
        session: Option<&str>,
    ) -> Option<OwnedKey> {
        let of_principal = || OwnedKey::Principal(principal.clone());
        match session {
            _ if self.sharing.principal.is_some() => Some(of_principal()),
            Some(id) => Some(OwnedKey::Session(id.into())),
            // The requests of a principal without a session are those of one session.
            None => self.sharing.session.is_some().then(of_principal),
        }
    }

    /// Returns whether a session has servers that no other replica has.
    pub(crate) fn has_private_servers(&self) -> bool {
        self.sharing.principal.is_some() || self.sharing.session.is_some()
    }
}
