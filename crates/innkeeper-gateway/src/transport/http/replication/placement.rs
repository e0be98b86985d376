//! Finds a session: at this replica, at another, or without its process.

use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use innkeeper_protocol::http::SESSION_ID;
use innkeeper_protocol::{RequestId, skim};
use serde_json::value::RawValue;

use super::Replication;
use super::forwarding::{NamedReplica, forward_to_named, own_or_forward, unavailable};
use super::place::{Found, Place, events_gone, no_session};
use super::take_over::take_over;
use crate::error::RpcError;
use crate::event_stream::EventStream;
use crate::owned_calls::{OwnedCalls, OwnedRequest};
use crate::replicas::{
    EntryKind, LogEntry, OwnedKey, Ownership, SealedFor, SessionRecord, StreamLog,
};
use crate::sealed_state::replica_of;
use crate::servers::PrivateState;
use crate::stored_results;
use crate::transport::http::response::rpc_error_response;
use crate::transport::http::session::Session;
use crate::transport::http::{
    HttpRequest, HttpTransport, header_text, incoming, unexpected_message,
};

/// Returns the session of a request.
///
/// # Errors
///
/// Returns the response of another replica, or the response to a request without a session.
pub(in crate::transport::http) async fn find_session(
    from: &HttpRequest<'_>,
    requests: &[RequestId],
) -> Found<Arc<Session>> {
    match find_place(from, requests).await? {
        Place::Here(session) => Ok(session),
        Place::Ended { .. } => Err(Box::new(no_session())),
    }
}

/// Returns where the session of a request is.
///
/// # Errors
///
/// Like [`find_session`].
pub(in crate::transport::http) async fn find_place(
    from: &HttpRequest<'_>,
    requests: &[RequestId],
) -> Found<Place> {
    let Some(id) = header_text(&from.parts.headers, SESSION_ID) else {
        let error = unexpected_message(
            "request without a session: send `initialize` first, then its `Mcp-Session-Id` header",
        );
        let id = if let [id] = requests { Some(id) } else { None };
        return Err(Box::new(rpc_error_response(StatusCode::BAD_REQUEST, id, &error)));
    };
    let HttpRequest { transport, endpoint, principal, .. } = from;
    let find_here = || transport.sessions.find(id, principal, *endpoint);
    let Some(replication) = &transport.replication else {
        return find_here().map(Place::Here).ok_or_else(|| Box::new(no_session()));
    };
    if let Some(session) = find_here()
        && session.ownership().is_some_and(|ownership| replication.replicas.owns(ownership))
    {
        return Ok(Place::Here(session));
    }
    let Some(key) = transport.gateway.servers.owned_key(principal, Some(id), *endpoint) else {
        return Err(Box::new(no_session()));
    };
    // Boxed, because a session that is here needs none of it.
    Box::pin(async {
        let create = !matches!(key, OwnedKey::Session(_));
        let ownership = own_or_forward(from, replication, &key, create, requests).await?;
        let ownership = ownership.ok_or_else(|| Box::new(no_session()))?;
        take_over(from, replication, id, ownership).await
    })
    .await
}

/// Stores what the next owner of a session needs. Returns whether this replica still owns the
/// session; a store that does not respond has the last stored state.
pub(in crate::transport::http) async fn store_session(
    transport: &HttpTransport,
    session: &Session,
) -> bool {
    let (Some(replication), Some(replicated), Some(identity)) =
        (&transport.replication, &session.replicated, session.client.settings.identity())
    else {
        return true;
    };
    let _one = replicated.storing.lock().await;
    let has_subscriptions =
        session.subscription.get().is_some_and(|one| one.subscriber.has_resources());
    let private = transport.gateway.servers.private_state(&session.client);
    let principal = session.client.principal.id().to_string();
    let endpoint = transport.gateway.replica_label(session.client.endpoint);
    let owner = SealedFor { session: &session.id, principal: &principal, endpoint: &endpoint };
    let remote_sessions = match &private {
        PrivateState::Remote(sessions) if !has_subscriptions => {
            replication.replicas.seal_sessions(owner, sessions)
        }
        // The record of the running servers stays.
        PrivateState::Ended => return false,
        PrivateState::Remote(_) | PrivateState::Bound | PrivateState::None => None,
    };
    let can_move = remote_sessions.is_some();
    let record = SessionRecord {
        principal,
        endpoint,
        revision: identity.revision.as_str().to_owned(),
        capabilities: (*identity.capabilities).to_owned(),
        log_level: session.client.settings.log_level().map(|level| level.as_str().to_owned()),
        has_state: !matches!(private, PrivateState::None) || has_subscriptions,
        remote_sessions,
    };
    match replication.replicas.store_session(&replicated.ownership, &session.id, &record).await {
        Ok(is_owner) => {
            if is_owner {
                transport.gateway.servers.set_can_move(&session.client, can_move);
            }
            is_owner
        }
        Err(error) => {
            tracing::warn!(%error, "session not stored");
            false
        }
    }
}

impl HttpTransport {
    /// Stores the session of a client again.
    pub(in crate::transport::http) async fn store_session_of(&self, client: u64) {
        if let Some(session) = self.sessions.of_client(client) {
            store_session(self, &session).await;
        }
    }
}

/// Returns a stream of a session whose owner was another replica, for a client that has its events up
/// to a position. Requests without a response get an error that says whether they may have run.
///
/// # Errors
///
/// The store does not respond, or knows neither the stream nor a call of it.
pub(in crate::transport::http) async fn resume(
    replication: &Replication,
    ownership: &Ownership,
    session: &str,
    stream: u64,
    position: u64,
) -> Found<Arc<EventStream>> {
    let unavailable = |error| Box::new(unavailable(&error));
    let replicas = &replication.replicas;
    let mut log = replicas.read_log(session, stream).await.map_err(unavailable)?;
    if log.entries.last().is_none_or(|last| last.kind != EntryKind::Closed) {
        let mut calls = replicas.calls(&ownership.key).await.map_err(unavailable)?;
        calls.retain(|(_, call)| call.session.as_deref() == Some(session) && call.stream == stream);
        let mut found = None;
        if log.requests.is_empty() {
            // The last owner could not store the stream: Redis did not respond.
            log.requests = calls.iter().map(|(_, call)| call.request.clone()).collect();
            found = serde_json::to_string(&log.requests).ok();
        }
        let known = log.entries.len();
        for request in unanswered(&log) {
            let sent = calls.iter().find(|(_, call)| call.request.get() == request.get());
            let error = match sent {
                Some((id, _)) => RpcError::outcome_unknown(id),
                None => RpcError::not_run(),
            };
            let id = RequestId::from_raw(request.get());
            let message = incoming::error_line(id.as_ref(), &error);
            push(&mut log, EntryKind::Message, message, position);
        }
        if log.requests.is_empty() {
            return Err(Box::new(events_gone()));
        }
        push(&mut log, EntryKind::Closed, Bytes::new(), position);
        let added = log.entries.get(known..).unwrap_or_default();
        let is_owner =
            replicas.append(ownership, session, stream, found.as_deref(), 0, added).await;
        if !is_owner.map_err(unavailable)? {
            return Err(Box::new(no_session()));
        }
    }
    Ok(Arc::new(EventStream::restored(stream, log)))
}

/// Adds an entry after the last one, and after what the client has.
fn push(log: &mut StreamLog, kind: EntryKind, message: Bytes, position: u64) {
    let last = log.entries.last().map_or(0, |entry| entry.position).max(position);
    let position = if kind == EntryKind::Closed { last } else { last + 1 };
    log.entries.push(LogEntry { position, kind, message });
}

/// Returns the ids of the requests of a stream without a response.
fn unanswered(log: &StreamLog) -> Vec<Box<RawValue>> {
    let responses: Vec<&str> = log
        .entries
        .iter()
        .filter_map(|entry| std::str::from_utf8(&entry.message).ok())
        .flat_map(|text| {
            let items = serde_json::from_str::<Vec<&RawValue>>(text).unwrap_or_default();
            let items: Vec<&str> = items.into_iter().map(RawValue::get).collect();
            if items.is_empty() { vec![text.trim_ascii()] } else { items }
        })
        .filter(|message| skim::member(message, "method").is_none())
        .filter_map(|message| skim::member(message, "id"))
        .collect();
    let open = log.requests.iter().filter(|request| !responses.contains(&request.get()));
    open.cloned().collect()
}

/// Returns the replica that the parameters of a request name.
fn named_replica(params: &RawValue) -> Option<NamedReplica> {
    let text = |key: &str| skim::member(params.get(), key).and_then(skim::decode_string);
    let state = text("requestState");
    let has_sent_call = state.is_some();
    let token = state.or_else(|| text("taskId")).or_else(|| {
        let uri = text("uri")?;
        uri.strip_prefix(stored_results::URI_PREFIX).map(|id| id.to_owned().into())
    })?;
    Some(NamedReplica { id: replica_of(&token)?.to_owned(), has_sent_call })
}

/// Returns what this replica owns to handle a request without a session; `None` if every replica
/// can handle it.
///
/// # Errors
///
/// Like [`find_session`].
pub(in crate::transport::http) async fn place_stateless(
    from: &HttpRequest<'_>,
    request: &RequestId,
    params: Option<&RawValue>,
) -> Found<Option<Arc<Ownership>>> {
    let gateway = &from.transport.gateway;
    let Some(replication) = &from.transport.replication else { return Ok(None) };
    if let Some(replica) = params.and_then(named_replica) {
        Box::pin(forward_to_named(from, replication, &replica, request)).await?;
    }
    let Some(key) = gateway.servers.owned_key(&from.principal, None, from.endpoint) else {
        return Ok(None);
    };
    let requests = std::slice::from_ref(request);
    Box::pin(own_or_forward(from, replication, &key, true, requests)).await
}

impl HttpRequest<'_> {
    /// Returns the calls of the request; `None` without replicas. `stream` has the id of the session
    /// and the number of the stream for the response.
    pub(in crate::transport::http) fn owned_calls(
        &self,
        ownership: Option<Arc<Ownership>>,
        stream: Option<(&str, u64)>,
    ) -> Option<Arc<OwnedCalls>> {
        let replication = self.transport.replication.as_ref()?;
        let (session, stream) = stream.map_or((None, 0), |(id, stream)| (Some(id.into()), stream));
        let replicas = replication.replicas.clone();
        let Self { id, is_forwarded, .. } = self;
        let request = OwnedRequest { id: id.clone(), is_forwarded: *is_forwarded, session, stream };
        Some(Arc::new(OwnedCalls::new(replicas, ownership?, request)))
    }

    /// Leaves the records of calls to the replica that passes the response on, if there is one.
    pub(in crate::transport::http) fn keep_records(&self, calls: Option<&OwnedCalls>) {
        if let Some(calls) = calls.filter(|_| self.is_forwarded) {
            calls.keep_records();
        }
    }
}

#[cfg(test)]
mod tests;
