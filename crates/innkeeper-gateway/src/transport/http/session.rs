//! Sessions of clients of the legacy era.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

use crate::client::Client;
use crate::event_stream::EventStream;
use crate::principal::Principal;
use crate::quota::{Quota, QuotaExceeded, Reservation};
use crate::rejection::Rejection;
use crate::sink::MessageSink;
use crate::subscribers::Subscription;

/// Number of random bytes in the id of a session.
const ID_BYTES: usize = 24;

/// Maximum number of streams of one session that can be resumed.
pub(crate) const MAX_RESUMABLE_STREAMS: usize = 64;

/// The number of the stream for messages that belong to no request.
const GENERAL_STREAM: u64 = 0;

/// Time after which a client can try again to get a session.
const RETRY_DELAY: Duration = Duration::from_secs(10);

/// A session of a client.
#[derive(Debug)]
pub(crate) struct Session {
    /// The place of the session among all sessions.
    _slot: Reservation,
    pub(crate) id: Box<str>,
    pub(crate) client: Arc<Client>,
    pub(crate) subscription: OnceLock<Arc<Subscription>>,
    pub(crate) general: Arc<EventStream>,
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

    /// Remembers a stream, so that the client can resume it.
    pub(crate) fn remember(&self, stream: &Arc<EventStream>) {
        let mut streams = self.streams();
        if streams.len() >= MAX_RESUMABLE_STREAMS {
            // The oldest finished stream, else the oldest one.
            let finished = streams.iter().position(|stream| stream.is_closed());
            streams.remove(finished.unwrap_or_default());
        }
        streams.push_back(stream.clone());
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

    /// Creates a session.
    pub(crate) fn create(
        &self,
        principal: Principal,
        endpoint: usize,
    ) -> Result<Arc<Session>, Rejection> {
        let (slot, id) = self.reserve(&principal)?;
        let general = Arc::new(EventStream::new(GENERAL_STREAM));
        let sink = MessageSink::Stream(general.clone());
        let session = Arc::new(Session {
            _slot: slot,
            id: id.clone(),
            client: Arc::new(Client::new(principal, endpoint, sink)),
            subscription: OnceLock::new(),
            general,
            streams: Mutex::default(),
            next_stream: AtomicU64::new(GENERAL_STREAM + 1),
            active: AtomicUsize::new(0),
            last_used: Mutex::new(Instant::now()),
        });
        let mut by_id = self.by_id.write().unwrap_or_else(PoisonError::into_inner);
        by_id.insert(id, session.clone());
        Ok(session)
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
