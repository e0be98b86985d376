//! The cached signing keys of an issuer.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::key_set::KeySet;
use crate::tasks::OwnedTask;

/// Age after which the keys are read again before their next use, so that a key that the issuer
/// withdrew is soon rejected.
pub(super) const REFRESH_AGE: Duration = Duration::from_mins(10);

/// Age up to which keys are used if the issuer cannot be reached.
pub(super) const MAX_KEY_AGE: Duration = Duration::from_hours(24);

/// Minimum time between two requests to the issuer, whatever clients send.
pub(super) const MIN_FETCH_INTERVAL: Duration = Duration::from_mins(1);

/// Maximum time of a request to the issuer.
pub(super) const FETCH_TIMEOUT: Duration = Duration::from_secs(10);

/// A function that reads the key set of an issuer.
pub(super) type FetchKeys =
    Arc<dyn Fn() -> BoxFuture<'static, Result<KeySet, String>> + Send + Sync>;

/// The keys cannot be read, and none in the cache are recent enough.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct KeysUnavailable {
    /// Time until the next attempt.
    pub(super) retry_after: Duration,
}

/// The cached keys with at most one request to the issuer at a time.
pub(super) struct KeyCache {
    fetch: FetchKeys,
    state: Arc<Mutex<CacheState>>,
}

#[derive(Debug, Default)]
struct CacheState {
    keys: Option<CachedKeys>,
    last_fetch: Option<Instant>,
    /// Whether the last request failed.
    has_failed: bool,
    running: Option<RunningFetch>,
}

#[derive(Debug)]
struct CachedKeys {
    keys: Arc<KeySet>,
    read_at: Instant,
}

/// A request to the issuer. The request continues without the client that caused the request: a
/// client that disconnects would otherwise consume the only request of a minute.
#[derive(Debug)]
struct RunningFetch {
    ended: watch::Receiver<()>,
    _task: OwnedTask,
}

impl KeyCache {
    pub(super) fn new(fetch: FetchKeys) -> Self {
        Self { fetch, state: Arc::default() }
    }

    /// Returns the keys. Reads the keys first if the keys are old or not sufficient, and if the last
    /// request was long enough ago.
    ///
    /// After a failed request, sufficient keys are returned without a wait for the next request: an
    /// issuer that does not respond would otherwise delay all clients once a minute.
    ///
    /// # Errors
    ///
    /// The keys were never read, or not for [`MAX_KEY_AGE`].
    pub(super) async fn keys(
        &self,
        is_sufficient: impl Fn(&KeySet) -> bool,
    ) -> Result<Arc<KeySet>, KeysUnavailable> {
        let ended = {
            let mut state = lock(&self.state);
            if let Some(cached) = &state.keys
                && cached.read_at.elapsed() < REFRESH_AGE
                && is_sufficient(&cached.keys)
            {
                return Ok(Arc::clone(&cached.keys));
            }
            let usable = state.keys.as_ref().filter(|cached| {
                state.has_failed
                    && cached.read_at.elapsed() < MAX_KEY_AGE
                    && is_sufficient(&cached.keys)
            });
            let usable = usable.map(|cached| Arc::clone(&cached.keys));
            let ended = self.running_fetch(&mut state);
            if let Some(keys) = usable {
                return Ok(keys);
            }
            ended
        };
        if let Some(mut ended) = ended {
            // The sender is dropped at the end of the request; an error is the end too.
            let _ = ended.changed().await;
        }
        let state = lock(&self.state);
        match &state.keys {
            Some(cached) if cached.read_at.elapsed() < MAX_KEY_AGE => Ok(Arc::clone(&cached.keys)),
            _ => {
                let since_last = state.last_fetch.map_or(MIN_FETCH_INTERVAL, |at| at.elapsed());
                let retry_after = MIN_FETCH_INTERVAL.saturating_sub(since_last);
                Err(KeysUnavailable { retry_after })
            }
        }
    }

    /// Returns the running request, or starts a request if the last one was long enough ago.
    fn running_fetch(&self, state: &mut CacheState) -> Option<watch::Receiver<()>> {
        if let Some(running) = &state.running
            && running.ended.has_changed().is_ok()
        {
            return Some(running.ended.clone());
        }
        if state.last_fetch.is_some_and(|at| at.elapsed() < MIN_FETCH_INTERVAL) {
            return None;
        }
        state.last_fetch = Some(Instant::now());
        let (end, ended) = watch::channel(());
        let fetch = (self.fetch)();
        let shared = Arc::downgrade(&self.state);
        let task = OwnedTask::spawn(async move {
            let result = timeout(FETCH_TIMEOUT, fetch).await;
            let result = result.unwrap_or_else(|_| Err("no response in time".to_owned()));
            if let Some(state) = shared.upgrade() {
                store(&mut lock(&state), result);
            }
            drop(end);
        });
        state.running = Some(RunningFetch { ended: ended.clone(), _task: task });
        Some(ended)
    }
}

impl fmt::Debug for KeyCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyCache").field("state", &self.state).finish_non_exhaustive()
    }
}

fn store(state: &mut CacheState, result: Result<KeySet, String>) {
    state.has_failed = result.is_err();
    match result {
        Ok(keys) => {
            state.keys = Some(CachedKeys { keys: Arc::new(keys), read_at: Instant::now() });
        }
        Err(reason) => tracing::warn!(reason, "failed to read the signing keys of the issuer"),
    }
}

fn lock(state: &Mutex<CacheState>) -> MutexGuard<'_, CacheState> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
