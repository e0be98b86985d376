//! Ends the hosts of clients, principals and replicas.

use std::sync::Arc;

use futures_util::future::join_all;
use innkeeper_host::ShutdownReport;
use tokio::time::Instant;

use super::super::Servers;
use super::lock;
use super::scopes::{HostCell, Scope, ViewKey};
use crate::client::Client;
use crate::principal::Principal;
use crate::upstream::Upstream;

impl Servers {
    /// Ends the hosts of a session.
    pub(crate) fn end_client(&self, client: &Arc<Client>) {
        if self.sharing.private.session.is_none() {
            return;
        }
        let key = Some(client.number);
        let ended = {
            let mut scopes = self.sharing.scopes();
            // A request of the client that is still under way starts no other host.
            client.end();
            scopes.views.retain(|(_, client, _), _| *client != key);
            let scope = Scope::Session(client.principal.clone(), key);
            // A start that is in progress ends the host.
            let cell = scopes.hosts.remove(&scope);
            cell.and_then(|cell| cell.get()?.clone().ok())
        };
        self.shut_down_hosts(ended.into_iter().collect());
    }

    /// Kills the singleton servers: another replica may start them now.
    pub(crate) fn end_singletons(&self) {
        let ended = {
            let mut scopes = self.sharing.scopes();
            scopes.views.retain(|(_, _, has_singletons), _| !has_singletons);
            // A start that is in progress ends its host.
            let cell = scopes.hosts.remove(&Scope::Singleton);
            cell.and_then(|cell| cell.get()?.clone().ok())
        };
        if let Some(upstream) = &ended {
            tracing::warn!("servers with `share: singleton` killed: this replica lost its lease");
            upstream.host.kill();
        }
        self.shut_down_hosts(ended.into_iter().collect());
    }

    /// Ends the hosts of a principal, and of its sessions that have no owner of their own.
    pub(crate) fn end_principal(&self, principal: &Principal) {
        let ended = {
            let mut scopes = self.sharing.scopes();
            let is_ended = |of: &Principal, client: Option<u64>| {
                of == principal && (client.is_none() || self.sharing.private.principal.is_some())
            };
            scopes.views.retain(|(of, client, _), _| !is_ended(of, *client));
            // A start that is in progress ends its host.
            let hosts = scopes.hosts.extract_if(|scope, _| match scope {
                Scope::Principal(of) => of == principal,
                Scope::Session(of, client) => is_ended(of, *client),
                Scope::Singleton => false,
            });
            hosts.filter_map(|(_, cell)| cell.get()?.clone().ok()).collect()
        };
        self.shut_down_hosts(ended);
    }

    /// Returns whether hosts shut down: their processes still run.
    pub(crate) fn has_ending_hosts(&self) -> bool {
        !lock(&self.sharing.ending).is_empty()
    }

    /// Ends the hosts of the clients that sent no request for the idle time of a session.
    pub(in super::super) fn end_unused_hosts(&self) {
        let Some(before) = Instant::now().checked_sub(self.sharing.idle_time) else { return };
        let ended = {
            let mut scopes = self.sharing.scopes();
            let unused = scopes.unused_views().filter(|(_, last_used)| *last_used < before);
            let unused: Vec<ViewKey> = unused.map(|(key, _)| key.clone()).collect();
            for key in unused {
                scopes.views.remove(&key);
            }
            scopes.take_unviewed(before, |_| true)
        };
        self.shut_down_hosts(ended);
    }

    fn shut_down_hosts(&self, hosts: Vec<Arc<Upstream>>) {
        for upstream in hosts {
            let ending = self.sharing.ending.clone();
            lock(&ending).push(upstream.clone());
            self.tasks.spawn(async move {
                upstream.shut_down().await;
                lock(&ending).retain(|other| !Arc::ptr_eq(other, &upstream));
            });
        }
    }

    /// Waits for the end of a host that shuts down, of the owners that `is_of` selects. Returns whether
    /// there was one.
    pub(in super::super) async fn wait_for_ending_host(
        &self,
        is_of: impl Fn(&Principal) -> bool,
    ) -> bool {
        let found =
            lock(&self.sharing.ending).iter().rev().find(|host| is_of(&host.users.owner)).cloned();
        let Some(upstream) = found else { return false };
        upstream.shut_down().await;
        lock(&self.sharing.ending).retain(|other| !Arc::ptr_eq(other, &upstream));
        true
    }

    /// Returns the last use of the client that needs its hosts least, of the principals that `is_of`
    /// selects, if no request, connection or session uses them.
    pub(in super::super) fn least_recent_view(
        &self,
        is_of: impl Fn(&Principal) -> bool,
    ) -> Option<(ViewKey, Instant)> {
        let scopes = self.sharing.scopes();
        let unused = scopes.unused_views().filter(|((principal, ..), _)| is_of(principal));
        let least = unused.min_by_key(|(_, last_used)| *last_used);
        least.map(|(key, last_used)| (key.clone(), last_used))
    }

    /// Ends the hosts that no client has, because the client left, of the owners that `is_of` selects.
    /// Returns whether there were any.
    pub(in super::super) fn end_unviewed_hosts(&self, is_of: impl Fn(&Principal) -> bool) -> bool {
        let ended = self.sharing.scopes().take_unviewed(Instant::now(), is_of);
        let has_ended = !ended.is_empty();
        self.shut_down_hosts(ended);
        has_ended
    }

    /// Ends the hosts of a client that no other client uses.
    pub(in super::super) fn end_view(&self, key: &ViewKey) {
        let ended = {
            let mut scopes = self.sharing.scopes();
            if !scopes.unused_views().any(|(unused, _)| unused == key) {
                return;
            }
            scopes.views.remove(key);
            scopes.take_unviewed(Instant::now(), |_| true)
        };
        self.shut_down_hosts(ended);
    }

    /// Ends the hosts of all principals and sessions. No further host starts.
    pub(crate) async fn shut_down_private_hosts(&self) -> Vec<ShutdownReport> {
        // A second call finds the cell set.
        let _ = self.sharing.closed.set(());
        let cells: Vec<HostCell> = {
            let mut scopes = self.sharing.scopes();
            scopes.views.clear();
            scopes.hosts.drain().map(|(_, cell)| cell).collect()
        };
        let mut hosts = lock(&self.sharing.ending).clone();
        for cell in cells {
            if let Ok(upstream) = cell.wait().await {
                upstream.leave_remote_sessions();
                hosts.push(upstream.clone());
            }
        }
        join_all(hosts.iter().map(|upstream| upstream.shut_down())).await
    }
}
