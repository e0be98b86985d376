//! Sessions of clients of the legacy era.

mod replicated;
mod streams;
mod table;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use serde_json::value::RawValue;
use tokio::time::Instant;

use crate::client::Client;
use crate::event_stream::{EventStream, StreamStore};
use crate::principal::Principal;
use crate::quota::Reservation;
use crate::replicas::{Ownership, Replicas, session_names};
use crate::subscribers::Subscription;

use replicated::ReplicatedSession;
use streams::{SessionStreams, StreamQueue};
pub(crate) use table::Sessions;

/// The number of the stream for messages that belong to no request.
pub(crate) const GENERAL_STREAM: u64 = 0;

/// Returns the number before the first stream of the owner after so many others.
fn first_number(moves: u64) -> u64 {
    moves << 32
}

/// What a session starts with.
#[derive(Debug)]
pub(crate) struct NewSession {
    pub(crate) id: Box<str>,
    pub(crate) principal: Principal,
    pub(crate) endpoint: usize,
    /// `None` without replicas.
    pub(crate) ownership: Option<(Arc<Ownership>, StreamQueue)>,
    /// The stream for messages that belong to no request.
    pub(crate) general: EventStream,
}

#[derive(Debug)]
pub(crate) struct Session {
    /// The place of the session among all sessions.
    _slot: Reservation,
    pub(crate) id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) subscription: OnceLock<Arc<Subscription>>,
    pub(super) streams: SessionStreams,
    /// `None` without replicas.
    pub(super) replicated: Option<ReplicatedSession>,
    usage: Usage,
}

#[derive(Debug)]
struct Usage {
    /// The open event streams and the requests in flight.
    active: AtomicUsize,
    last: Mutex<Instant>,
}

impl Session {
    /// Remembers a stream, so that the client can resume it. `requests` are the ids of the requests
    /// of the stream.
    pub(crate) fn remember(&self, stream: &Arc<EventStream>, requests: &[Box<RawValue>]) {
        let requests = serde_json::to_string(requests).unwrap_or_default();
        self.store(stream, Some(requests.into()));
        self.streams.remember(stream);
    }

    /// Stores the messages of a stream for other replicas.
    fn store(&self, stream: &Arc<EventStream>, requests: Option<Arc<str>>) {
        if let Some(ReplicatedSession { ownership, queue, .. }) = &self.replicated {
            let session = (*self.id).into();
            let ownership = ownership.clone();
            let queue = queue.clone();
            stream.store_in(StreamStore { ownership, session, requests, queue });
        }
    }

    /// Returns what makes this replica the owner; `None` without replicas.
    pub(super) fn ownership(&self) -> Option<&Arc<Ownership>> {
        self.replicated.as_ref().map(|replicated| &replicated.ownership)
    }

    /// Returns how often the session had another replica before.
    pub(crate) fn moves(&self) -> u64 {
        self.ownership().map_or(0, |ownership| ownership.moves)
    }

    /// Returns whether another replica can own the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.ownership().is_some_and(|ownership| ownership.is_lost())
    }

    pub(crate) fn is_own_stream(&self, number: u64) -> bool {
        number == GENERAL_STREAM || number > first_number(self.moves())
    }

    /// Tells Redis to keep the session. Without a response, the next time does.
    pub(crate) async fn keep(&self, replicas: &Replicas) {
        let Some(ownership) = self.ownership() else { return };
        if let Err(error) = replicas.keep(ownership, &session_names(&self.id)).await {
            tracing::warn!(%error, "session not kept");
        }
    }

    /// Counts as active until the guard is dropped.
    pub(crate) fn activity(self: &Arc<Self>) -> Activity {
        self.usage.active.fetch_add(1, Ordering::Relaxed);
        Activity(self.clone())
    }

    fn is_active(&self) -> bool {
        self.usage.active.load(Ordering::Relaxed) > 0
    }

    fn idle_since(&self) -> Option<Instant> {
        let last_used = *self.usage.last.lock().unwrap_or_else(PoisonError::into_inner);
        (!self.is_active()).then_some(last_used)
    }
}

/// A request or an event stream of a session.
#[derive(Debug)]
pub(crate) struct Activity(Arc<Session>);

impl Activity {
    pub(crate) fn principal(&self) -> &Principal {
        &self.0.client.principal
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        let usage = &self.0.usage;
        *usage.last.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        usage.active.fetch_sub(1, Ordering::Relaxed);
    }
}
