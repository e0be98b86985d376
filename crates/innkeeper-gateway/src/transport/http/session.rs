//! Sessions of clients of the legacy era.

use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use ring::rand::{SecureRandom, SystemRandom};
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio::time::Instant;

use crate::client::Client;
use crate::event_stream::{EventStream, StreamStore};
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::rejection::Rejection;
use crate::replicas::{OwnedKey, Ownership, Replicas, session_names};
use crate::sink::MessageSink;
use crate::subscribers::Subscription;

/// Number of random bytes in the id of a session.
const ID_BYTES: usize = 24;

/// Maximum number of streams of one session that can be resumed.
pub(crate) const MAX_RESUMABLE_STREAMS: usize = 64;

/// The number of the stream for messages that belong to no request.
pub(crate) const GENERAL_STREAM: u64 = 0;

/// Time after which a client can try again to get a session.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// Takes the streams with messages to store for other replicas.
type StreamQueue = mpsc::UnboundedSender<Arc<EventStream>>;

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

/// A session of a client.
#[derive(Debug)]
pub(crate) struct Session {
    /// The place of the session among all sessions.
    _slot: Reservation,
    pub(crate) id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) subscription: OnceLock<Arc<Subscription>>,
    pub(crate) general: Arc<EventStream>,
    /// The ownership with the store of the event streams; `None` without replicas.
    pub(crate) ownership: Option<Arc<Ownership>>,
    stream_queue: Option<StreamQueue>,
    /// When Redis was last told to keep the session.
    kept: Mutex<Instant>,
    /// Held while the record of the session is stored, so that no older record replaces a newer one.
    pub(crate) storing: tokio::sync::Mutex<()>,
    streams: Mutex<VecDeque<Arc<EventStream>>>,
    next_stream: AtomicU64,
    /// The open event streams and the requests in flight.
    active: AtomicUsize,
    last_used: Mutex<Instant>,
}

impl Session {
    fn streams(&self) -> MutexGuard<'_, VecDeque<Arc<EventStream>>> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Creates the stream of a request.
    pub(crate) fn new_stream(&self) -> Arc<EventStream> {
        Arc::new(EventStream::new(self.next_stream.fetch_add(1, Ordering::Relaxed)))
    }

    /// Remembers a stream, so that the client can resume it. `requests` are the ids of the requests
    /// of the stream.
    pub(crate) fn remember(&self, stream: &Arc<EventStream>, requests: &[Box<RawValue>]) {
        let requests = serde_json::to_string(requests).unwrap_or_default();
        self.store(stream, Some(requests.into()));
        let mut streams = self.streams();
        if streams.len() >= MAX_RESUMABLE_STREAMS {
            // The oldest finished stream, else the oldest one.
            let finished = streams.iter().position(|stream| stream.is_closed());
            streams.remove(finished.unwrap_or_default());
        }
        streams.push_back(stream.clone());
    }

    /// Stores the messages of a stream for other replicas.
    fn store(&self, stream: &Arc<EventStream>, requests: Option<Arc<str>>) {
        if let (Some(ownership), Some(queue)) = (&self.ownership, &self.stream_queue) {
            let session = (*self.id).into();
            let ownership = ownership.clone();
            let queue = queue.clone();
            stream.store_in(StreamStore { ownership, session, requests, queue });
        }
    }

    /// Returns how often the session had another replica before.
    pub(crate) fn moves(&self) -> u64 {
        self.ownership.as_ref().map_or(0, |ownership| ownership.moves)
    }

    /// Returns whether another replica can own the session.
    pub(crate) fn is_lost(&self) -> bool {
        self.ownership.as_ref().is_some_and(|ownership| ownership.is_lost())
    }

    /// Returns whether a stream was one of this replica.
    pub(crate) fn is_own_stream(&self, number: u64) -> bool {
        number == GENERAL_STREAM || number > first_number(self.moves())
    }

    /// Returns whether Redis must be told to keep the session, and counts as told.
    pub(crate) fn needs_keeping(&self, interval: Duration) -> bool {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = self.ownership.is_some() && kept.elapsed() >= interval;
        if is_due {
            *kept = Instant::now();
        }
        is_due
    }

    /// Tells Redis to keep the session. Without a response, the next time does.
    pub(crate) async fn keep(&self, replicas: &Replicas) {
        let Some(ownership) = &self.ownership else { return };
        if let Err(error) = replicas.keep(ownership, &session_names(&self.id)).await {
            tracing::warn!(%error, "session not kept");
        }
    }

    /// Returns a stream by its number.
    pub(crate) fn stream(&self, number: u64) -> Option<Arc<EventStream>> {
        if number == GENERAL_STREAM {
            return Some(self.general.clone());
        }
        self.streams().iter().find(|stream| stream.number == number).cloned()
    }

    /// Counts as active until the guard is dropped.
    pub(crate) fn activity(self: &Arc<Self>) -> Activity {
        self.active.fetch_add(1, Ordering::Relaxed);
        Activity(self.clone())
    }

    fn idle_since(&self) -> Option<Instant> {
        let is_active = self.active.load(Ordering::Relaxed) > 0;
        let last_used = *self.last_used.lock().unwrap_or_else(PoisonError::into_inner);
        (!is_active).then_some(last_used)
    }
}

/// A request or an event stream of a session.
#[derive(Debug)]
pub(crate) struct Activity(Arc<Session>);

impl Activity {
    /// Returns the principal of the session.
    pub(crate) fn principal(&self) -> &Principal {
        &self.0.client.principal
    }
}

impl Drop for Activity {
    fn drop(&mut self) {
        *self.0.last_used.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
        self.0.active.fetch_sub(1, Ordering::Relaxed);
    }
}

/// All sessions by id.
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

    /// Returns the number of sessions.
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

    /// Creates a session with a reserved place.
    pub(crate) fn create(&self, slot: Reservation, new: NewSession) -> Arc<Session> {
        let session = Self::build(slot, new);
        self.insert(&session);
        session
    }

    fn build(slot: Reservation, new: NewSession) -> Arc<Session> {
        let NewSession { id, principal, endpoint, ownership, general } = new;
        let (ownership, stream_queue) = ownership.unzip();
        let moves = ownership.as_ref().map_or(0, |ownership: &Arc<Ownership>| ownership.moves);
        let first = first_number(moves);
        let general = Arc::new(general);
        let client = Client::new(principal, endpoint, MessageSink::Stream(general.clone()));
        client.start_questions_after(first);
        Arc::new(Session {
            _slot: slot,
            id,
            client: Arc::new(client),
            subscription: OnceLock::new(),
            general,
            ownership,
            stream_queue,
            kept: Mutex::new(Instant::now()),
            storing: tokio::sync::Mutex::default(),
            streams: Mutex::default(),
            next_stream: AtomicU64::new(first + 1),
            active: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
        })
    }

    /// Adds a session: requests find it from now on.
    pub(crate) fn insert(&self, session: &Arc<Session>) {
        session.store(&session.general, None);
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(session.id.clone(), session.clone());
    }

    /// Creates a session that another replica had. No request finds it before [`Self::insert`].
    pub(crate) fn restore(&self, new: NewSession) -> Result<Arc<Session>, Rejection> {
        let slot = self.slots.reserve(&new.principal, 1).map_err(no_slot)?;
        Ok(Self::build(slot, new))
    }

    /// Returns the session of a client.
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
            session.general.close();
            session.active.load(Ordering::Relaxed) == 0
        });
        inactive.map(|(_, session)| session).collect()
    }

    /// Ends the streams for messages that belong to no request, of sessions without a request in flight.
    pub(crate) fn end_idle_streams(&self) {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let idle = by_id.values().filter(|session| !session.client.has_requests());
        idle.for_each(|session| session.general.close());
    }

    /// Returns the sessions that Redis must be told to keep.
    pub(crate) fn to_keep(&self, interval: Duration) -> Vec<Arc<Session>> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        by_id.values().filter(|session| session.needs_keeping(interval)).cloned().collect()
    }

    /// Returns the keys of the sessions; none without replicas.
    pub(crate) fn keys(&self) -> HashSet<OwnedKey> {
        let by_id = self.by_id.read().unwrap_or_else(PoisonError::into_inner);
        let owned = by_id.values().filter_map(|session| session.ownership.as_ref());
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

    /// Removes a session.
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
