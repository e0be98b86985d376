//! Starts the host of a principal or a session, once for all requests that wait for it.

use std::sync::{Arc, Weak};

use indexmap::IndexMap;
use innkeeper_host::{Host, RemoteSession};
use innkeeper_protocol::envelope::code;

use super::scopes::{HostCell, Scope};
use crate::client::Client;
use crate::error::RpcError;
use crate::replicas::OwnedKey;
use crate::servers::callbacks::UpstreamCell;
use crate::servers::private_servers::ServerGroup;
use crate::servers::{Servers, events};
use crate::upstream::Upstream;

/// What the host of a scope starts with.
pub(super) struct NewHost {
    pub(super) wider: Vec<Arc<Upstream>>,
    /// The remote sessions of another replica, by the name of the server.
    pub(super) continued: Option<IndexMap<String, RemoteSession>>,
    pub(super) session: Option<Weak<Client>>,
}

impl Servers {
    /// Returns the host of a scope. Creates the host if it does not run, with the remote sessions of another
    /// replica if there are any; that continues without the request that it is for. The host runs on until
    /// the clone of the cell is dropped.
    ///
    /// # Errors
    ///
    /// The client has ended: nothing would end the host.
    pub(super) fn scoped_host(
        self: &Arc<Self>,
        scope: Scope,
        new: NewHost,
        is_ended: impl Fn() -> bool,
    ) -> Result<HostCell, RpcError> {
        let mut scopes = self.sharing.scopes();
        if is_ended() {
            return Err(session_ended());
        }
        if let Some(known) = scopes.hosts.get(&scope) {
            return Ok(known.clone());
        }
        let cell = HostCell::default();
        scopes.hosts.insert(scope.clone(), cell.clone());
        let servers = self.clone();
        let starting = cell.clone();
        self.tasks.spawn(async move {
            servers.create_scoped_host(scope, new, starting).await;
        });
        Ok(cell)
    }

    async fn create_scoped_host(self: &Arc<Self>, scope: Scope, new: NewHost, cell: HostCell) {
        let started = tokio::select! {
            biased;
            () = self.sharing.closed() => Err(RpcError::closing()),
            started = async {
                self.own_scope(&scope).await?;
                self.create_private_host(&scope, new).await
            } => started,
        };
        let ended = {
            let mut scopes = self.sharing.scopes();
            let is_current =
                scopes.hosts.get(&scope).is_some_and(|current| Arc::ptr_eq(current, &cell));
            if is_current && started.is_err() {
                scopes.hosts.remove(&scope);
            }
            if is_current && let Ok(upstream) = &started {
                let views = scopes.views.iter().filter(|(key, _)| scope.is_of(key));
                views.for_each(|(_, view)| view.attach(upstream));
                // Under the lock: a view that another request creates has the host.
                let _ = cell.set(Ok(upstream.clone()));
            }
            !is_current
        };
        let result = match started {
            // The session ended in the meantime.
            Ok(upstream) if ended => {
                // The next request of a session of another replica continues with them.
                upstream.leave_remote_sessions();
                upstream.shut_down().await;
                Err(session_ended())
            }
            started => started,
        };
        // Only this task sets the cell.
        let _ = cell.set(result);
    }

    /// Makes sure that no other replica has the servers of a scope.
    async fn own_scope(&self, scope: &Scope) -> Result<(), RpcError> {
        match scope {
            Scope::Singleton => self.own_key(OwnedKey::Singletons).await,
            // The requests of a principal without a session are those of one session.
            Scope::Principal(principal) | Scope::Session(principal, None) => {
                self.own_key(self.principal_key(principal)).await
            }
            // The session, or the connection, is here.
            Scope::Session(_, Some(_)) => Ok(()),
        }
    }

    /// Creates the host of a principal or a session, whose servers start at their first use.
    async fn create_private_host(
        self: &Arc<Self>,
        scope: &Scope,
        NewHost { wider, continued, session }: NewHost,
    ) -> Result<Arc<Upstream>, RpcError> {
        let share = scope.share();
        let Some(ServerGroup { config, prepare }) = self.sharing.private.group(share) else {
            return Err(RpcError::new(code::INTERNAL_ERROR, "no server has this sharing policy"));
        };
        let cell = UpstreamCell::default();
        let can_move = continued.is_some();
        let builder = prepare(Host::builder(config.clone()));
        let builder = self.callbacks.register(builder, &cell, session.as_ref());
        let builder = builder.leave_stopped().start_slots(self.starts.turns.slots());
        let builder = continued.into_iter().flatten().fold(builder, |builder, (name, session)| {
            builder.continue_remote_session(name, session)
        });
        let host = builder.start().await.map_err(|error| {
            tracing::error!(%error, share = share.as_str(), "servers not started");
            RpcError::new(code::INTERNAL_ERROR, "the servers of this client did not start")
        })?;
        let stoppable = self.settings().stoppable();
        let upstream = Arc::new(Upstream::unstarted(host, scope.owner(), wider, stoppable));
        upstream.set_can_move(can_move);
        // The cell is new.
        let _ = cell.set(Arc::downgrade(&upstream));
        let client = scope.client();
        self.tasks.spawn(events::forward_events(Arc::downgrade(self), &upstream, client));
        Ok(upstream)
    }
}

pub(super) fn session_ended() -> RpcError {
    RpcError::new(code::INTERNAL_ERROR, "the session has ended")
}
