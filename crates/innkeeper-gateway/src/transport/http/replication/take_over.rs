//! Takes over a session whose last owner was another replica.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::response::IntoResponse as _;
use http::StatusCode;
use indexmap::IndexMap;
use innkeeper_host::{LogLevel, RemoteSession};
use innkeeper_protocol::Revision;

use super::Replication;
use super::forwarding::unavailable;
use super::place::{Found, Place, no_session};
use crate::client::ClientIdentity;
use crate::event_stream::EventStream;
use crate::replicas::{EntryKind, Ownership, SealedFor, SessionRecord};
use crate::servers::Continuation;
use crate::store_error::StoreError;
use crate::transport::http::response::rpc_error_response;
use crate::transport::http::session::{NewSession, Session};
use crate::transport::http::{HttpRequest, HttpTransport};

/// One lock for each session that is taken over.
#[derive(Debug, Default)]
pub(in crate::transport::http) struct TakeOverLocks(
    Mutex<HashMap<Box<str>, Arc<tokio::sync::Mutex<()>>>>,
);

impl TakeOverLocks {
    fn by_id(&self) -> MutexGuard<'_, HashMap<Box<str>, Arc<tokio::sync::Mutex<()>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn get(&self, id: &str) -> TakeOverLock<'_> {
        let lock = self.by_id().entry(id.into()).or_default().clone();
        TakeOverLock { locks: self, id: id.into(), lock }
    }
}

/// The lock of a session, which is removed with its last user.
struct TakeOverLock<'a> {
    locks: &'a TakeOverLocks,
    id: Box<str>,
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl Drop for TakeOverLock<'_> {
    fn drop(&mut self) {
        let mut by_id = self.locks.by_id();
        // This one and that of the map.
        if Arc::strong_count(&self.lock) == 2 {
            by_id.remove(&self.id);
        }
    }
}

/// A session that no request finds yet. Dropping the value leaves the session to the next request.
struct RestoredSession<'a> {
    transport: &'a HttpTransport,
    session: &'a Session,
    is_open: bool,
}

impl Drop for RestoredSession<'_> {
    fn drop(&mut self) {
        if !self.is_open {
            self.transport.leave_session(self.session);
        }
    }
}

/// Returns a session that this replica owns now.
pub(in crate::transport::http) async fn take_over(
    from: &HttpRequest<'_>,
    replication: &Replication,
    id: &str,
    ownership: Arc<Ownership>,
) -> Found<Place> {
    let HttpRequest { transport, endpoint, principal, .. } = from;
    // Requests at the same time take the session over once.
    let lock = transport.taking_over.get(id);
    let _one = lock.lock.lock().await;
    if let Some(session) = transport.sessions.find(id, principal, *endpoint)
        && session.ownership().is_some_and(|owned| Arc::ptr_eq(owned, &ownership))
    {
        return Ok(Place::Here(session));
    }
    let record = replication.replicas.find_session(id).await;
    let record = record.map_err(|error| Box::new(unavailable(&error)))?;
    let label = transport.gateway.replica_label(*endpoint);
    let record = record
        .filter(|record| record.principal == **principal.id() && record.endpoint == label)
        .ok_or_else(|| Box::new(no_session()))?;
    let ended = || Place::Ended { id: id.into(), ownership: ownership.clone() };
    let remote_sessions = open_remote_sessions(transport, replication, id, &record);
    if record.has_state && remote_sessions.is_none() {
        return Ok(ended());
    }
    let Some(identity) = identity(&record) else { return Ok(ended()) };
    let session = restore(from, replication, id, ownership.clone()).await?;
    let mut restored = RestoredSession { transport, session: &session, is_open: false };
    let client = &session.client;
    // The client is new.
    client.settings.initialize(identity);
    let _ = client.settings.initialized.set(());
    let level = record.log_level.as_deref();
    if let Some(level) = LogLevel::ALL.into_iter().find(|known| Some(known.as_str()) == level) {
        client.settings.set_log_level(level);
    }
    let failed =
        |error| Box::new(rpc_error_response(StatusCode::SERVICE_UNAVAILABLE, None, &error));
    let mut continued = None;
    if let Some(sessions) = remote_sessions {
        match transport.gateway.servers.continue_client(client, sessions).await.map_err(failed)? {
            Continuation::Complete(host) => continued = Some(host),
            Continuation::Forgotten => {
                let record = SessionRecord { remote_sessions: None, ..record };
                if let Err(error) =
                    replication.replicas.store_session(&ownership, id, &record).await
                {
                    // The next replica finds it out again.
                    tracing::warn!(%error, "session not stored");
                }
                return Ok(ended());
            }
            Continuation::Unavailable => {
                let reason = "a server of the session does not respond".to_owned();
                return Err(Box::new(unavailable(&StoreError { reason })));
            }
        }
    }
    let subscription =
        transport.gateway.methods.subscriptions.add_legacy(client).map_err(failed)?;
    let subscription = Arc::new(subscription);
    session.subscription.get_or_init(|| subscription);
    // The view has the host.
    drop(continued);
    if ownership.is_lost() {
        let reason = "another replica can own the session".to_owned();
        return Err(Box::new(unavailable(&StoreError { reason })));
    }
    transport.sessions.insert(&session);
    restored.is_open = true;
    transport.gateway.traffic.metrics.count_taken_over();
    tracing::info!(moves = session.moves(), "session of another replica continues here");
    Ok(Place::Here(session.clone()))
}

/// Returns the remote sessions that are all state of a session.
fn open_remote_sessions(
    transport: &HttpTransport,
    replication: &Replication,
    id: &str,
    record: &SessionRecord,
) -> Option<IndexMap<String, RemoteSession>> {
    let sealed = record.remote_sessions.as_ref();
    // The configuration can have changed.
    let sealed = sealed.filter(|_| transport.gateway.servers.private().has_movable_state())?;
    let SessionRecord { principal, endpoint, .. } = record;
    replication.replicas.open_sessions(SealedFor { session: id, principal, endpoint }, sealed)
}

/// Creates the session with the stream for messages that belong to no request.
async fn restore(
    from: &HttpRequest<'_>,
    replication: &Replication,
    id: &str,
    ownership: Arc<Ownership>,
) -> Found<Arc<Session>> {
    let general = replication.replicas.read_log(id, 0).await;
    let mut general = general.map_err(|error| Box::new(unavailable(&error)))?;
    // The stream of the last owner has ended, that of the session has not.
    general.entries.retain(|entry| entry.kind != EntryKind::Closed);
    let new = NewSession {
        id: id.into(),
        principal: from.principal.clone(),
        endpoint: from.endpoint,
        ownership: Some((ownership, replication.stream_queue.clone())),
        general: EventStream::restored(0, general),
    };
    let session = from.transport.sessions.restore(new);
    session.map_err(|rejection| Box::new(rejection.into_response()))
}

fn identity(record: &SessionRecord) -> Option<ClientIdentity> {
    let revision = record.revision.parse::<Revision>().ok()?;
    Some(ClientIdentity { revision, capabilities: record.capabilities.clone().into() })
}
