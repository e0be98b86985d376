//! What this process must own, as one of several replicas, before servers start here.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};

use innkeeper_protocol::envelope::code;
use tokio::sync::Notify;
use tokio::time::sleep;

use super::Servers;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::replicas::{Claim, OwnedKey, Replicas};
use crate::store_error::StoreError;

#[derive(Debug)]
pub(super) struct ReplicatedServers {
    replicas: Replicas,
    watch: SessionWatch,
}

impl ReplicatedServers {
    pub(super) fn new(replicas: Replicas) -> Self {
        Self { replicas, watch: SessionWatch::default() }
    }
}

/// Gives changed sessions to the first transport that asks: it is the one other replicas reach.
#[derive(Debug, Default)]
struct SessionWatch(OnceLock<Arc<ChangedSessions>>);

impl SessionWatch {
    fn start(&self) -> Option<Arc<ChangedSessions>> {
        let changed = Arc::new(ChangedSessions::default());
        self.0.set(changed.clone()).is_ok().then_some(changed)
    }

    fn record(&self, client: u64) {
        if let Some(changed) = self.0.get() {
            changed.add(client);
        }
    }
}

/// The clients whose sessions with remote servers changed since the last look.
#[derive(Debug, Default)]
pub(crate) struct ChangedSessions {
    clients: Mutex<HashSet<u64>>,
    added: Notify,
}

impl ChangedSessions {
    fn clients(&self) -> MutexGuard<'_, HashSet<u64>> {
        self.clients.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, client: u64) {
        self.clients().insert(client);
        self.added.notify_one();
    }

    /// Returns the numbers of the clients, each once, when there are any. Only one task may wait.
    pub(crate) async fn take(&self) -> HashSet<u64> {
        loop {
            let clients = std::mem::take(&mut *self.clients());
            if !clients.is_empty() {
                return clients;
            }
            self.added.notified().await;
        }
    }
}

impl Servers {
    /// Returns what a replica must own to handle a request at an endpoint: the singleton servers, if the
    /// endpoint has one; the principal, if it has servers of its own; else the session. Any replica can
    /// handle a request without any of them.
    pub(crate) fn owned_key(
        &self,
        principal: &Principal,
        session: Option<&str>,
        endpoint: usize,
    ) -> Option<OwnedKey> {
        if self.has_singletons(endpoint) {
            return Some(OwnedKey::Singletons);
        }
        let private = &self.sharing.private;
        match session {
            _ if private.principal.is_some() => Some(self.principal_key(principal)),
            Some(id) => Some(OwnedKey::Session(id.into())),
            // The requests of a principal without a session are those of one session.
            None => private.session.is_some().then(|| self.principal_key(principal)),
        }
    }

    /// Returns the key of the servers of a principal. They run at one replica, whatever endpoint the
    /// principal uses.
    pub(super) fn principal_key(&self, principal: &Principal) -> OwnedKey {
        match self.sharing.private.singleton {
            Some(_) => OwnedKey::Singletons,
            None => OwnedKey::Principal(principal.clone()),
        }
    }

    /// Claims a key for this replica; `None` without replicas.
    pub(crate) async fn claim(&self, key: &OwnedKey) -> Result<Option<Claim>, StoreError> {
        match &self.replicated {
            None => Ok(None),
            Some(ReplicatedServers { replicas, .. }) => replicas.claim(key, true).await.map(Some),
        }
    }

    /// Makes sure that no other replica has the servers of a key.
    pub(super) async fn own_key(&self, key: OwnedKey) -> Result<(), RpcError> {
        match self.claim(&key).await {
            Ok(None | Some(Claim::Owned(_))) => Ok(()),
            Ok(Some(Claim::Elsewhere(_) | Claim::Unknown)) => Err(RpcError::new(
                code::INTERNAL_ERROR,
                "the servers of this client run at another replica",
            )),
            Err(error) => {
                tracing::warn!(%error, %key, "servers not started");
                Err(RpcError::new(
                    code::INTERNAL_ERROR,
                    "the state of the replicas is not available now; try again later",
                ))
            }
        }
    }

    /// Returns the clients whose sessions with remote servers change from now on. `None` without
    /// replicas, and for all callers but the first.
    pub(crate) fn watch_sessions(&self) -> Option<Arc<ChangedSessions>> {
        self.replicated.as_ref()?.watch.start()
    }

    /// Records that the remote sessions of a client changed, so that Redis gets them.
    pub(super) fn record_changed_session(&self, client: u64) {
        if let Some(replicated) = &self.replicated {
            replicated.watch.record(client);
        }
    }
}

/// Kills the singleton servers as soon as this replica has no lease: before
/// another replica may start them.
pub(super) async fn end_singletons_in_time(servers: Weak<Servers>, replicas: Replicas) {
    loop {
        // The lease ends here a fifth of its time earlier than in Redis.
        sleep(replicas.lease_time() / 20).await;
        let Some(servers) = servers.upgrade() else { return };
        if !replicas.has_lease() {
            servers.end_singletons();
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    #[test]
    fn each_changed_client_is_taken_once_and_wakes_the_task_that_waits() {
        let changed = ChangedSessions::default();
        for client in [7, 8, 7] {
            changed.add(client);
        }
        assert_eq!(changed.take().now_or_never(), Some(HashSet::from([7, 8])));
        let mut waiting = Box::pin(changed.take());
        assert_eq!(waiting.as_mut().now_or_never(), None);
        changed.add(9);
        assert_eq!(waiting.now_or_never(), Some(HashSet::from([9])));
    }

    #[test]
    fn only_the_first_transport_takes_changed_sessions() {
        let watch = SessionWatch::default();
        watch.record(6);
        let first = watch.start().unwrap();
        assert!(watch.start().is_none());
        watch.record(7);
        assert_eq!(first.take().now_or_never(), Some(HashSet::from([7])));
    }
}
