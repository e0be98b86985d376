//! Ends sessions, and gives them up for other replicas.

use futures_util::{StreamExt as _, stream};

use super::HttpTransport;
use super::replication::placement::store_session;
use super::session::Session;
use crate::replicas::{OwnedKey, Replicas, session_names};
use crate::store_error::StoreError;

/// Maximum number of sessions that are handed over at the same time.
const MAX_HAND_OVERS: usize = 64;

impl HttpTransport {
    /// Ends a session: its requests, its streams and its subscriptions.
    pub(crate) fn end_session(&self, id: &str) {
        if let Some(session) = self.sessions.remove(id) {
            self.close_and_release(&session);
        }
    }

    fn close_and_release(&self, session: &Session) {
        self.close_session(session);
        if let Some(releasing) = self.release(session) {
            self.gateway.tasks.spawn(async move {
                if let Err(error) = releasing.await {
                    tracing::debug!(%error, "the record of an ended session stays until it expires");
                }
            });
        }
    }

    /// Forgets a session of this replica in Redis.
    pub(super) fn release(
        &self,
        session: &Session,
    ) -> Option<impl Future<Output = Result<(), StoreError>> + Send + 'static> {
        let ownership = session.ownership().cloned()?;
        let replicas = self.replication.as_ref()?.replicas.clone();
        let names = session_names(&session.id);
        let is_own = matches!(ownership.key, OwnedKey::Session(_)) && !ownership.is_lost();
        if !is_own {
            return None;
        }
        Some(async move { replicas.release(&ownership, Some(names)).await })
    }

    /// Ends the sessions without activity, and keeps the others for the other replicas.
    pub(crate) fn end_idle_sessions(&self) {
        let idle_time = self.gateway.options.idle_session;
        for session in self.sessions.remove_idle(idle_time) {
            self.close_and_release(&session);
        }
        self.finished_streams.remove_ended();
        if let Some(replication) = &self.replication {
            let sessions = self.sessions.to_keep(idle_time / 8);
            let replicas = replication.replicas.clone();
            let mut keys = self.gateway.servers.keys_with_servers();
            let is_ending = self.gateway.servers.has_ending_hosts();
            keys.extend(self.sessions.keys());
            self.gateway.tasks.spawn(async move {
                for session in sessions {
                    session.keep(&replicas).await;
                }
                replicas.keep_used(|key| is_ending || keys.contains(key)).await;
            });
        }
    }

    /// Gives up the sessions without a request in flight, so that other replicas continue them.
    pub(crate) async fn hand_over_inactive(&self) {
        let Some(replication) = &self.replication else { return };
        let _handing_over = self.pause_hand_over().await;
        let sessions = stream::iter(self.sessions.remove_inactive());
        let handing_over = sessions.for_each_concurrent(MAX_HAND_OVERS, async |session| {
            self.hand_over(&replication.replicas, &session).await;
        });
        handing_over.await;
    }

    /// Waits until the sessions that are handed over have been given up. No further one is handed over
    /// until the guard is dropped.
    pub(crate) async fn pause_hand_over(&self) -> tokio::sync::MutexGuard<'_, ()> {
        self.handing_over.lock().await
    }

    async fn hand_over(&self, replicas: &Replicas, session: &Session) {
        let ownership = session.ownership();
        let ownership =
            ownership.filter(|owned| matches!(owned.key, OwnedKey::Session(_)) && !owned.is_lost());
        if let Some(ownership) = ownership {
            if self.gateway.servers.private().has_movable_state() {
                // The next owner connects to the servers only when this replica has disconnected.
                self.gateway.servers.leave_remote_sessions(&session.client);
                store_session(self, session).await;
                self.gateway.servers.stop_client(&session.client).await;
            }
            if let Err(error) = replicas.release(ownership, None).await {
                tracing::warn!(%error, "session not handed over");
            }
        }
        self.close_session(session);
    }

    /// Ends the sessions that other replicas can own.
    pub(crate) fn end_lost_sessions(&self) {
        for session in self.sessions.remove_lost() {
            self.close_session(&session);
        }
    }

    /// Closes a session that this replica gives up before its time. Another replica, or the next request,
    /// continues with the remote sessions.
    pub(super) fn leave_session(&self, session: &Session) {
        self.gateway.servers.leave_remote_sessions(&session.client);
        self.end_parts(session);
    }

    /// Closes a session. Its remote sessions end unless another replica can own the session.
    pub(super) fn close_session(&self, session: &Session) {
        let is_owner = match (session.ownership(), &self.replication) {
            (Some(ownership), Some(replication)) => replication.replicas.owns(ownership),
            (None, _) | (_, None) => true,
        };
        if is_owner { self.end_parts(session) } else { self.leave_session(session) }
    }

    fn end_parts(&self, session: &Session) {
        session.client.disconnect();
        session.streams.general.close();
        if let Some(subscription) = session.subscription.get() {
            self.gateway.methods.subscriptions.end(subscription);
        }
        self.gateway.servers.end_client(&session.client);
    }
}
