//! The scopes of private servers, with their hosts and the views of their clients.

use std::collections::HashMap;
use std::sync::Arc;

use innkeeper_host::config::Share;
use tokio::sync::SetOnce;
use tokio::time::Instant;

use crate::error::RpcError;
use crate::principal::Principal;
use crate::upstream::Upstream;
use crate::view::View;

/// The clients that share a host. A session has the number of its client; the requests of a
/// principal without a connection or session are those of one session.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Scope {
    Singleton,
    Principal(Principal),
    Session(Principal, Option<u64>),
}

impl Scope {
    pub(super) fn share(&self) -> Share {
        match self {
            Self::Singleton => Share::Singleton,
            Self::Principal(_) => Share::Principal,
            Self::Session(..) => Share::Session,
        }
    }

    /// Returns the scopes of a view, those of more clients first.
    pub(super) fn all_of(
        (principal, client, has_singletons): &ViewKey,
    ) -> impl Iterator<Item = Self> + use<> {
        let singleton = has_singletons.then_some(Self::Singleton);
        let session = Self::Session(principal.clone(), *client);
        singleton.into_iter().chain([Self::Principal(principal.clone()), session])
    }

    /// Returns whether the host of the scope belongs to a view.
    pub(super) fn is_of(&self, (of, number, has_singletons): &ViewKey) -> bool {
        match self {
            Self::Singleton => *has_singletons,
            Self::Principal(principal) => principal == of,
            Self::Session(principal, client) => principal == of && client == number,
        }
    }

    /// Returns the principal whose share the processes use.
    pub(super) fn owner(&self) -> Principal {
        match self {
            Self::Singleton => Principal::local_user(),
            Self::Principal(principal) | Self::Session(principal, _) => principal.clone(),
        }
    }

    /// Returns the number of the client of a session.
    pub(super) fn client(&self) -> Option<u64> {
        match self {
            Self::Session(_, client) => *client,
            Self::Singleton | Self::Principal(_) => None,
        }
    }
}

/// The principal of a client, the number of the client if sessions have hosts of their own, and whether
/// the client sees the servers of which all replicas have one process.
pub(in crate::servers) type ViewKey = (Principal, Option<u64>, bool);

/// A host that is created, or runs.
pub(in crate::servers) type HostCell = Arc<SetOnce<Result<Arc<Upstream>, RpcError>>>;

/// The hosts and the views of the principals and sessions.
#[derive(Debug, Default)]
pub(super) struct Scopes {
    pub(super) hosts: HashMap<Scope, HostCell>,
    pub(super) views: HashMap<ViewKey, Arc<View>>,
}

impl Scopes {
    /// Returns the hosts that run.
    pub(super) fn running(&self) -> impl Iterator<Item = &Arc<Upstream>> {
        self.hosts.values().filter_map(|cell| cell.get()?.as_ref().ok())
    }

    /// Removes and returns the running hosts that `is_ended` selects.
    pub(super) fn take_hosts(
        &mut self,
        is_ended: impl Fn(&HostCell, &Arc<Upstream>) -> bool,
    ) -> Vec<Arc<Upstream>> {
        let ended = self.hosts.extract_if(|_, cell| match cell.get() {
            Some(Ok(upstream)) => is_ended(cell, upstream),
            // A host that fails to start, or that ended during its start, is removed by its start.
            Some(Err(_)) | None => false,
        });
        ended.filter_map(|(_, cell)| cell.get()?.clone().ok()).collect()
    }

    /// Removes and returns the hosts that no view has, no call or task uses and no request waits for,
    /// if they started before a time.
    pub(super) fn take_unviewed(
        &mut self,
        before: Instant,
        is_of: impl Fn(&Principal) -> bool,
    ) -> Vec<Arc<Upstream>> {
        let views: Vec<_> = self.views.values().cloned().collect();
        self.take_hosts(|cell, upstream| {
            // A request that waits for a host has a clone of its cell until the host is in a view.
            Arc::strong_count(cell) == 1
                && is_of(&upstream.users.owner)
                // A task of a session that has ended may run on.
                && upstream.users.is_unused_since(before)
                && !views.iter().any(|view| view.contains(upstream))
        })
    }

    /// Returns the views that no request, connection or session uses, with the time of their last
    /// use.
    pub(super) fn unused_views(&self) -> impl Iterator<Item = (&ViewKey, Instant)> {
        let unused = self
            .views
            .iter()
            .filter(|(_, view)| Arc::strong_count(view) == 1 && !view.has_used_private_host());
        unused.map(|(key, view)| (key, view.last_used()))
    }
}
