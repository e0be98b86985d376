//! What a gateway has as one of several replicas.

use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use innkeeper_protocol::envelope::code;
use tokio::sync::mpsc;

use super::GatewayInner;
use super::sharing::Sharing;
use crate::error::RpcError;
use crate::event_stream::EventStream;
use crate::principal::Principal;
use crate::replicas::{Claim, OwnedKey, Replicas};
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

impl GatewayInner {
    /// Returns what a replica must own to handle a request at an endpoint: the servers of which all
    /// replicas have one process, if the endpoint has one; the principal, if it has servers of its own;
    /// else the session. A request without any of them can be handled by any replica.
    pub(crate) fn owned_key(
        &self,
        principal: &Principal,
        session: Option<&str>,
        endpoint: usize,
    ) -> Option<OwnedKey> {
        if self.has_singletons(endpoint) {
            return Some(OwnedKey::Singletons);
        }
        let of_principal = || self.principal_key(principal);
        match session {
            _ if self.sharing.principal.is_some() => Some(of_principal()),
            Some(id) => Some(OwnedKey::Session(id.into())),
            // The requests of a principal without a session are those of one session.
            None => self.sharing.session.is_some().then(of_principal),
        }
    }

    /// Returns the key of the servers of a principal. They run at one replica, whatever endpoint the
    /// principal uses.
    pub(super) fn principal_key(&self, principal: &Principal) -> OwnedKey {
        match self.sharing.singleton {
            Some(_) => OwnedKey::Singletons,
            None => OwnedKey::Principal(principal.clone()),
        }
    }

    /// Makes sure that no other replica has the servers of a key.
    pub(super) async fn own_key(&self, key: OwnedKey) -> Result<(), RpcError> {
        let Some(replication) = &self.replication else { return Ok(()) };
        let failed = |message: String| Err(RpcError::new(code::INTERNAL_ERROR, message));
        match replication.replicas.claim(&key, true).await {
            Ok(Claim::Owned(_)) => Ok(()),
            Ok(Claim::Elsewhere(_) | Claim::Unknown) => {
                failed("the servers of this client run at another replica".to_owned())
            }
            Err(error) => {
                tracing::warn!(%error, %key, "servers not started");
                failed("the state of the replicas is not available now; try again later".to_owned())
            }
        }
    }

    /// Stores the session of a client again, because its remote sessions changed.
    pub(super) fn store_session_of(&self, client: u64) {
        // A gateway that closes stores each session before it gives the session up.
        if self.closing.initialized() {
            return;
        }
        let transport = self.replication.as_ref().and_then(|one| one.transport.get()?.upgrade());
        if let Some(transport) = transport {
            self.tasks.spawn(async move { transport.store_session_of(client).await });
        }
    }

    /// Returns whether a session has servers that no other replica has.
    pub(crate) fn has_private_servers(&self) -> bool {
        let Sharing { singleton, principal, session, .. } = &self.sharing;
        singleton.is_some() || principal.is_some() || session.is_some()
    }
}

#[cfg(test)]
mod tests;
