//! All sessions of a gateway.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, Mutex, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

use super::replicated::ReplicatedSession;
use super::streams::SessionStreams;
use super::{NewSession, Session, Usage, first_number};
use crate::client::Client;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::rejection::Rejection;
use crate::replicas::OwnedKey;
use crate::sink::MessageSink;

/// Number of random bytes in the id of a session.
const ID_BYTES: usize = 24;

/// Time after which a client can try again to get a session.
const RETRY_DELAY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: RwLock<HashMap<Box<str>, Arc<Session>>>,
    slots: Arc<Quota>,
    random: SystemRandom,
}

impl Sessions {
    pub(crate) fn new(maximum: usize) -> Self {
        Self { by_id: RwLock::default(), slots: Quota::new(maximum), random: SystemRandom::new() }
    }

    pub(crate) fn count(&self) -> usize {
        self.by_id.read().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Reserves the place of a session, and returns the place with an id that nobody can guess.
    pub(crate) fn reserve(
        &self,
        principal: &Principal,
    ) -> Result<(Reservation, Box<str>), Rejection> {
        let slot = self.slots.reserve(principal, 1).map_err(no_slot)?;
        let mut bytes = [0; ID_BYTES];
        let filled = self.random.fill(&mut bytes);
        filled.map_err(|_| unavailable("the system has no random numbers"))?;
        Ok((slot, URL_SAFE_NO_PAD.encode(bytes).into()))
    }

    pub(crate) fn create(&self, slot: Reservation, new: NewSession) -> Arc<Session> {
        let session = Self::build(slot, new);
        self.insert(&session);
        session
    }

    fn build(slot: Reservation, new: NewSession) -> Arc<Session> {
        let NewSession { id, principal, endpoint, ownership, general } = new;
        let replicated =
            ownership.map(|(ownership, queue)| ReplicatedSession::new(ownership, queue));
        let moves = replicated.as_ref().map_or(0, |replicated| replicated.ownership.moves);
        let first = first_number(moves);
        let streams = SessionStreams::new(general, first);
        let client = Client::new(principal, endpoint, MessageSink::Stream(streams.general.clone()));
        client.start_questions_after(first);
        let usage = Usage { active: AtomicUsize::new(0), last: Mutex::new(Instant::now()) };
        Arc::new(Session {
            _slot: slot,
            id,
            client: Arc::new(client),
            subscription: OnceLock::new(),
            streams,
            replicated,
            usage,
        })
    }

    /// Adds a session: requests find it from now on.
    pub(crate) fn insert(&self, session: &Arc<Session>) {
        session.store(&session.streams.general, None);
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(session.id.clone(), session.clone());
    }

    /// Creates a session that another replica had. No request finds it before [`Self::insert`].
    pub(crate) fn restore(&self, new: NewSession) -> Result<Arc<Session>, Rejection> {
        let slot = self.slots.reserve(&new.principal, 1).map_err(no_slot)?;
        Ok(Self::build(slot, new))
    }

    pub(crate) fn of_client(&self, client: u64) -> Option<Arc<Session>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.values().find(|session| session.client.number == client).cloned()
    }

    /// Removes and returns the sessions that other replicas can own.
    pub(crate) fn remove_lost(&self) -> Vec<Arc<Session>> {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        let lost = by_id.extract_if(|_, session| session.is_lost());
        lost.map(|(_, session)| session).collect()
    }

    /// Removes and returns the sessions without a request in flight. Streams for messages that belong
    /// to no request end.
    pub(crate) fn remove_inactive(&self) -> Vec<Arc<Session>> {
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        let inactive = by_id.extract_if(|_, session| {
            // A reader of the stream counts as active until it ends.
            session.streams.general.close();
            !session.is_active()
        });
        inactive.map(|(_, session)| session).collect()
    }

    /// Ends the streams for messages that belong to no request, of sessions without a request in flight.
    pub(crate) fn end_idle_streams(&self) {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let idle = by_id.values().filter(|session| !session.client.has_requests());
        idle.for_each(|session| session.streams.general.close());
    }

    /// Returns the sessions that Redis must be told to keep.
    pub(crate) fn to_keep(&self, interval: Duration) -> Vec<Arc<Session>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let due = by_id.values().filter(|session| {
            session.replicated.as_ref().is_some_and(|replicated| replicated.needs_keeping(interval))
        });
        due.cloned().collect()
    }

    /// Returns the keys of the sessions; none without replicas.
    pub(crate) fn keys(&self) -> HashSet<OwnedKey> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let owned = by_id.values().filter_map(|session| session.ownership());
        owned.map(|ownership| ownership.key.clone()).collect()
    }

    /// Returns the session with an id, if it belongs to this principal and endpoint.
    pub(crate) fn find(
        &self,
        id: &str,
        principal: &Principal,
        endpoint: usize,
    ) -> Option<Arc<Session>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let session = by_id.get(id)?;
        let belongs = session.client.principal == *principal && session.client.endpoint == endpoint;
        belongs.then(|| session.clone())
    }

    pub(crate) fn remove(&self, id: &str) -> Option<Arc<Session>> {
        self.by_id.write().unwrap_or_else(PoisonError::into_inner).remove(id)
    }

    /// Removes and returns the sessions without activity for `idle`.
    pub(crate) fn remove_idle(&self, idle: Duration) -> Vec<Arc<Session>> {
        let now = Instant::now();
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        let expired = by_id.extract_if(|_, session| {
            session.idle_since().is_some_and(|since| now.duration_since(since) >= idle)
        });
        expired.map(|(_, session)| session).collect()
    }
}

fn no_slot(exceeded: QuotaExceeded) -> Rejection {
    unavailable(match exceeded {
        QuotaExceeded::Own => {
            "this client has its share of `serve.limits.sessions`; end a session with DELETE"
        }
        QuotaExceeded::Total => {
            "the gateway has its maximum number of sessions (`serve.limits.sessions`); try again \
             later"
        }
    })
}

fn unavailable(message: &str) -> Rejection {
    Rejection::new(StatusCode::SERVICE_UNAVAILABLE, message).with_retry_after(RETRY_DELAY)
}

#[cfg(test)]
mod tests {
    use tokio::sync::mpsc;
    use tokio::time::advance;

    use super::*;
    use crate::event_stream::EventStream;
    use crate::replicas::Ownership;
    use crate::transport::http::session::GENERAL_STREAM;

    #[expect(clippy::disallowed_methods, reason = "the type of the queue; nothing is in it")]
    #[tokio::test(start_paused = true)]
    async fn redis_is_told_to_keep_a_session_once_per_interval() {
        let interval = Duration::from_secs(10);
        let sessions = Sessions::new(4);
        let (queue, _streams) = mpsc::unbounded_channel();
        let ownership = (Arc::new(Ownership::for_test()), queue);
        for ownership in [Some(ownership), None] {
            let principal = Principal::new("ada");
            let (slot, id) = sessions.reserve(&principal).unwrap();
            let general = EventStream::new(GENERAL_STREAM);
            sessions.create(slot, NewSession { id, principal, endpoint: 0, ownership, general });
        }
        assert!(sessions.to_keep(interval).is_empty(), "the sessions are new");
        advance(interval).await;
        let kept = sessions.to_keep(interval);
        assert_eq!(kept.len(), 1);
        assert!(kept[0].ownership().is_some(), "the other session has no replicas");
        assert!(sessions.to_keep(interval).is_empty(), "Redis has just been told");
    }
}
