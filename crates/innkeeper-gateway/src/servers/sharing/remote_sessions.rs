//! The state of a session in its servers, as far as another replica can continue it: sessions with remote
//! servers, which have the state.

use std::sync::Arc;

use futures_util::future::join_all;
use indexmap::IndexMap;
use innkeeper_host::{RemoteSession, ServerState};

use super::{HostCell, NewHost, Scope, Servers};
use crate::client::Client;
use crate::error::RpcError;
use crate::upstream::Upstream;

/// The state of a session in servers of its own.
#[derive(Debug)]
pub(crate) enum PrivateState {
    /// The session has no servers of its own.
    None,
    /// All state is in these sessions: another replica can continue them.
    Remote(IndexMap<String, RemoteSession>),
    /// The state ends with a process or a connection of this replica.
    Bound,
    /// The servers have ended with the session or with the gateway: nothing new is known.
    Ended,
}

/// The outcome of an attempt to continue the remote sessions of another replica.
#[derive(Debug)]
pub(crate) enum Continuation {
    /// All sessions go on. The host runs until the value is dropped, or as long as a view has it.
    Complete(ContinuedHost),
    /// A server does not know its session any more.
    Forgotten,
    /// A server does not respond: a later attempt may succeed.
    Unavailable,
}

#[derive(Debug)]
pub(crate) struct ContinuedHost(#[expect(dead_code, reason = "keeps the host")] HostCell);

impl Servers {
    /// Returns the state of a session in servers of its own.
    pub(crate) fn private_state(&self, client: &Client) -> PrivateState {
        if self.sharing.private.is_empty() {
            return PrivateState::None;
        }
        if !self.sharing.private.has_movable_state() {
            return PrivateState::Bound;
        }
        let Some(upstream) = self.client_host(client) else {
            // Before the first use of its servers, a session has no state in them.
            return match client.has_ended() || self.has_closed() {
                true => PrivateState::Ended,
                false => PrivateState::Remote(IndexMap::new()),
            };
        };
        let sessions = upstream.host.remote_sessions();
        // A server without Streamable HTTP was reached over HTTP+SSE.
        if sessions.bound.is_empty() {
            PrivateState::Remote(sessions.sessions)
        } else {
            PrivateState::Bound
        }
    }

    /// Records whether Redis has the remote sessions of a client, for another replica.
    pub(crate) fn set_can_move(&self, client: &Client, can_move: bool) {
        if let Some(upstream) = self.client_host(client) {
            upstream.set_can_move(can_move);
        }
    }

    /// Leaves the remote sessions of a client to another replica, if Redis has them.
    pub(crate) fn leave_remote_sessions(&self, client: &Client) {
        if let Some(upstream) = self.client_host(client) {
            upstream.leave_remote_sessions();
        }
    }

    /// Ends the hosts of a session, and waits for their end.
    pub(crate) async fn stop_client(&self, client: &Arc<Client>) {
        let upstream = self.client_host(client);
        self.end_client(client);
        if let Some(upstream) = upstream {
            upstream.shut_down().await;
        }
    }

    /// Starts the servers of a session that another replica had, with its remote sessions.
    pub(crate) async fn continue_client(
        self: &Arc<Self>,
        client: &Arc<Client>,
        sessions: IndexMap<String, RemoteSession>,
    ) -> Result<Continuation, RpcError> {
        let scope = Scope::Session(client.principal.clone(), Some(client.number));
        let new = NewHost {
            wider: vec![self.shared.clone()],
            continued: Some(sessions.clone()),
            session: Some(Arc::downgrade(client)),
        };
        let cell = self.scoped_host(scope, new, || client.has_ended())?;
        let upstream = cell.wait().await.clone()?;
        let names = sessions.keys().map(|name| Arc::from(name.as_str()));
        let started = names.map(async |name| self.use_server(&upstream, &name, None).await);
        // A server that does not start is not ready.
        let _in_use = join_all(started).await;
        let current = upstream.host.remote_sessions().sessions;
        let status = upstream.host.status();
        let mut is_available = true;
        for (name, session) in &sessions {
            match current.get(name) {
                Some(current) if current.is_same(session) => {}
                Some(_) => return Ok(forgotten(&upstream, name)),
                None => match status.get(&**name) {
                    Some(server) if server.state != ServerState::Ready => is_available = false,
                    Some(_) | None => return Ok(forgotten(&upstream, name)),
                },
            }
        }
        Ok(if is_available {
            Continuation::Complete(ContinuedHost(cell))
        } else {
            Continuation::Unavailable
        })
    }

    fn client_host(&self, client: &Client) -> Option<Arc<Upstream>> {
        let scopes = self.sharing.scopes();
        let scope = Scope::Session(client.principal.clone(), Some(client.number));
        scopes.hosts.get(&scope)?.get()?.clone().ok()
    }
}

/// The host ends all its sessions, the new ones and those that the other replica started.
fn forgotten(upstream: &Upstream, name: &str) -> Continuation {
    tracing::info!(server = name, "the server forgot its session of another replica");
    upstream.set_can_move(false);
    Continuation::Forgotten
}
