//! Which clients share a server: the hosts of one principal and of one session beside the host of
//! all clients.

mod end;
mod host_start;
mod remote_sessions;
mod scopes;

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_host::config::Share;
use innkeeper_protocol::envelope::code;
use innkeeper_protocol::method;
use tokio::sync::SetOnce;

use super::Servers;
use super::first_use::FirstUser;
use super::private_servers::PrivateServers;
use crate::client::Client;
use crate::error::RpcError;
use crate::principal::Principal;
use crate::replicas::OwnedKey;
use crate::upstream::Upstream;
use crate::view::View;

use host_start::{NewHost, session_ended};
pub(crate) use remote_sessions::{Continuation, PrivateState};
pub(super) use scopes::ViewKey;
use scopes::{HostCell, Scope, Scopes};

/// A host that runs, with the clients that share it.
#[derive(Debug)]
pub(crate) struct SharedHost {
    pub(crate) share: Share,
    /// The principal of a private host.
    pub(crate) client: Option<Principal>,
    pub(crate) upstream: Arc<Upstream>,
}

/// The hosts of a gateway beside the host of all clients.
#[derive(Debug)]
pub(crate) struct Sharing {
    pub(super) private: PrivateServers,
    names: Arc<HashSet<String>>,
    /// What a client without hosts of its own sees.
    pub(super) shared_view: Arc<View>,
    /// Time without a request after which the hosts of a client end.
    idle_time: Duration,
    scopes: Mutex<Scopes>,
    /// The hosts that shut down: their processes count until the end.
    ending: Arc<Mutex<Vec<Arc<Upstream>>>>,
    /// Set when no host may start: a start that is in progress ends.
    closed: SetOnce<()>,
}

impl Sharing {
    pub(super) fn new(
        private: PrivateServers,
        shared_view: Arc<View>,
        idle_time: Duration,
    ) -> Self {
        let names = Arc::new(private.names());
        Self {
            private,
            names,
            shared_view,
            idle_time,
            scopes: Mutex::default(),
            ending: Arc::default(),
            closed: SetOnce::new(),
        }
    }

    fn scopes(&self) -> MutexGuard<'_, Scopes> {
        lock(&self.scopes)
    }

    /// Waits until no host may start.
    async fn closed(&self) {
        self.closed.wait().await;
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Servers {
    /// Returns what a client sees of its hosts. Starts nothing.
    pub(crate) fn view(
        &self,
        principal: &Principal,
        client: Option<&Arc<Client>>,
        endpoint: usize,
    ) -> Result<Arc<View>, RpcError> {
        self.shared.users.record_principal(principal);
        let Some((key, client)) = self.view_key(principal, client, endpoint) else {
            return Ok(self.sharing.shared_view.clone());
        };
        let mut scopes = self.sharing.scopes();
        if let Some(view) = scopes.views.get(&key) {
            view.touch();
            return Ok(view.clone());
        }
        if self.has_closed() {
            return Err(RpcError::closing());
        }
        if client.is_some_and(|client| client.has_ended()) {
            return Err(session_ended());
        }
        let names = self.sharing.names.clone();
        let view = View::private(self.shared.clone(), names, self.endpoints.all().len());
        for (scope, cell) in &scopes.hosts {
            if let Some(Ok(upstream)) = cell.get()
                && scope.is_of(&key)
            {
                view.attach(upstream);
            }
        }
        let view = Arc::new(view);
        scopes.views.insert(key, view.clone());
        Ok(view)
    }

    /// Returns the key of the view of a client with servers of its own, and the client if sessions have
    /// servers of their own.
    fn view_key<'a>(
        &self,
        principal: &Principal,
        client: Option<&'a Arc<Client>>,
        endpoint: usize,
    ) -> Option<(ViewKey, Option<&'a Arc<Client>>)> {
        let private = &self.sharing.private;
        let has_singletons = self.has_singletons(endpoint);
        if !has_singletons && private.principal.is_none() && private.session.is_none() {
            return None;
        }
        let client = client.filter(|_| private.session.is_some());
        Some(((principal.clone(), client.map(|client| client.number), has_singletons), client))
    }

    /// Returns the host of a client's servers with a sharing policy, with clones of the cells that keep it
    /// and the hosts of its dependencies. Creates the hosts that do not run yet, without their servers.
    pub(super) async fn private_host(
        self: &Arc<Self>,
        user: FirstUser<'_>,
        share: Share,
    ) -> Result<(Arc<Upstream>, Vec<HostCell>), RpcError> {
        let none = || RpcError::new(code::INTERNAL_ERROR, "no server has this sharing policy");
        let FirstUser { principal, client, endpoint } = user;
        let (key, client) = self.view_key(principal, client, endpoint).ok_or_else(none)?;
        let mut upstreams = vec![self.shared.clone()];
        let mut cells = Vec::new();
        for scope in Scope::all_of(&key) {
            let scope_share = scope.share();
            if self.sharing.private.group(scope_share).is_none() {
                continue;
            }
            let session = client.filter(|_| scope_share == Share::Session).map(Arc::downgrade);
            let new = NewHost { wider: upstreams.clone(), continued: None, session };
            let cell =
                self.scoped_host(scope, new, || client.is_some_and(|client| client.has_ended()))?;
            let upstream = cell.wait().await.clone()?;
            cells.push(cell);
            if scope_share == share {
                return Ok((upstream, cells));
            }
            upstreams.push(upstream);
        }
        Err(none())
    }

    /// Returns whether no further private server starts.
    pub(super) fn has_closed(&self) -> bool {
        self.sharing.closed.initialized()
    }

    pub(super) fn has_singletons(&self, endpoint: usize) -> bool {
        let Some(singleton) = &self.sharing.private.singleton else { return false };
        let mut names = singleton.config.servers.keys();
        names.any(|name| self.endpoints.options(endpoint).has_server(name))
    }

    /// Tells the servers that a client has for itself that its roots changed.
    pub(crate) fn forward_roots_changed(&self, client: &Client) {
        let scope = Scope::Session(client.principal.clone(), Some(client.number));
        let own = self.sharing.scopes().hosts.get(&scope).and_then(|cell| cell.get()?.clone().ok());
        let sole = self.sole_client().map(|_| self.shared.clone());
        for upstream in own.iter().chain(&sole) {
            for name in &*upstream.servers.names() {
                let told = upstream.host.notify(name, method::ROOTS_LIST_CHANGED, None);
                if let Err(error) = told {
                    tracing::debug!(server = &**name, %error, "change of roots not forwarded");
                }
            }
        }
    }

    /// Returns the keys of replicas whose servers run or start here.
    pub(crate) fn keys_with_servers(&self) -> HashSet<OwnedKey> {
        let scopes = self.sharing.scopes();
        let of_hosts = scopes.hosts.keys().map(|scope| match scope {
            Scope::Singleton => OwnedKey::Singletons,
            Scope::Principal(principal) | Scope::Session(principal, _) => {
                self.principal_key(principal)
            }
        });
        of_hosts.collect()
    }

    /// Returns all hosts that run, with the clients that share each of them.
    pub(crate) fn shared_hosts(&self) -> Vec<SharedHost> {
        let all = SharedHost { share: Share::Process, client: None, upstream: self.shared.clone() };
        let scopes = self.sharing.scopes();
        let private = scopes.hosts.iter().filter_map(|(scope, cell)| {
            let upstream = cell.get()?.clone().ok()?;
            let client = match scope {
                Scope::Singleton => None,
                Scope::Principal(principal) | Scope::Session(principal, _) => {
                    Some(principal.clone())
                }
            };
            Some(SharedHost { share: scope.share(), client, upstream })
        });
        let mut hosts: Vec<_> = std::iter::once(all).chain(private).collect();
        hosts.sort_by_key(|host| host.upstream.number);
        hosts
    }

    /// Returns the servers that not all clients share.
    pub(crate) fn private(&self) -> &PrivateServers {
        &self.sharing.private
    }

    /// Returns all hosts that run.
    pub(super) fn upstreams(&self) -> Vec<Arc<Upstream>> {
        let scopes = self.sharing.scopes();
        std::iter::once(&self.shared).chain(scopes.running()).cloned().collect()
    }
}

#[cfg(test)]
mod tests;
