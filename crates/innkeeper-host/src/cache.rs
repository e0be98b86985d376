//! Cache for the resources and prompts of one server.
//!
//! An expired entry stays until the cache needs the space. While the server is unavailable, the
//! host returns the expired entry, marked as stale.
//!
//! Concurrent callers with the same key share one request. The first caller is the leader and sends
//! the request; the other callers are followers and wait. If the request fails, each follower sends
//! its own request. If the leader drops its future, the next follower becomes the leader. So no
//! caller sends more than one request, and no caller fails because of another caller's error.
//!
//! A result is shared by the calls of one principal, and by all calls if its `cacheScope` is
//! `public`. The scope is known only with the result, so a call never waits for the request of
//! another principal.

mod key;
mod scope;
mod stale;
mod store;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_config::CacheConfig as Policy;
use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use tokio::sync::SetOnce;
use tokio::time::{Instant, timeout_at};

use crate::deadline::MAX_REQUEST_TIMEOUT;
pub(crate) use key::CacheKey;
pub use scope::CacheScope;
use store::{CacheHit, LruStore};

/// The reason why a read returns no result.
#[derive(Debug, PartialEq)]
pub(crate) enum CacheReadError<E> {
    /// The timeout expired while the caller waited for another caller's request.
    Timeout,
    /// The caller's own request failed.
    Failed(E),
}

#[derive(Debug)]
pub(crate) enum CacheRead {
    /// A result that the caller's own request fetched.
    Fetched(Box<RawValue>),
    /// A cached result or the result of another caller's request, with its age.
    Cached(Arc<CachedResult>, Duration),
}

/// A result of a server, shared by all callers that can receive the result.
#[derive(Debug)]
pub(crate) struct CachedResult {
    result: Box<RawValue>,
    clean: AtomicBool,
}

impl CachedResult {
    fn new(result: Box<RawValue>, clean: bool) -> Self {
        Self { result, clean: clean.into() }
    }

    /// Returns the result as the server sent it.
    pub(crate) fn result(&self) -> &RawValue {
        &self.result
    }

    /// Returns the result with a stale mark.
    pub(crate) fn to_stale(&self, age: Duration) -> Box<RawValue> {
        stale::mark_stale(&self.result, age)
    }

    /// Returns whether a scanner scanned the result without a finding.
    ///
    /// A result that was stored while scanning was off, or that has findings in mode `flag`, is not
    /// clean.
    pub(crate) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Relaxed)
    }

    /// Marks the result as scanned without a finding.
    pub(crate) fn mark_clean(&self) {
        self.clean.store(true, Ordering::Relaxed);
    }
}

#[derive(Debug)]
pub(crate) struct FetchedResult {
    pub(crate) result: Box<RawValue>,
    /// Whether the result is valid for other calls of the same principal with the same key. A result that contains a
    /// user's input from a round trip is not cacheable.
    pub(crate) cacheable: bool,
    /// Whether a scanner scanned the result without a finding.
    pub(crate) clean: bool,
}

impl From<Box<RawValue>> for FetchedResult {
    fn from(result: Box<RawValue>) -> Self {
        Self { result, cacheable: true, clean: false }
    }
}

/// The outcome of a request that other callers wait for.
#[derive(Debug)]
enum FlightOutcome {
    Result(Arc<CachedResult>),
    Failed,
    /// The caller of the request dropped its future.
    Abandoned,
}

type InFlight = Arc<SetOnce<FlightOutcome>>;

/// The cache of one launch of a server. A new launch starts with an empty cache.
#[derive(Debug)]
pub(crate) struct Cache {
    policy: Policy,
    state: Mutex<CacheState>,
}

#[derive(Debug)]
struct CacheState {
    store: LruStore,
    /// The running requests whose results the cache will store.
    in_flight: HashMap<Arc<CacheKey>, InFlight>,
}

enum CacheLookup<'a> {
    Hit(CacheHit),
    Leader(FlightLeader<'a>),
    Follower(InFlight),
}

impl Cache {
    pub(crate) fn new(policy: Policy) -> Self {
        let store = LruStore::new(policy.max_entries, policy.max_bytes);
        Self { policy, state: Mutex::new(CacheState { store, in_flight: HashMap::new() }) }
    }

    fn lock_state(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns a cached result that the principal of the key can receive, or calls `fetch` with the
    /// remaining part of `limit`.
    ///
    /// With `fresh`, the cache always calls `fetch` and stores the result.
    pub(crate) async fn read<E, R, F>(
        &self,
        key: &CacheKey,
        fresh: bool,
        limit: Duration,
        fetch: impl FnOnce(Duration) -> F,
    ) -> Result<CacheRead, CacheReadError<E>>
    where
        R: Into<FetchedResult>,
        F: Future<Output = Result<R, E>>,
    {
        if self.policy.ttl.is_zero() {
            let FetchedResult { result, .. } =
                fetch(limit).await.map_err(CacheReadError::Failed)?.into();
            return Ok(CacheRead::Fetched(result));
        }
        let deadline = Instant::now() + limit.min(MAX_REQUEST_TIMEOUT);
        let mut remaining = limit;
        let mut join = !fresh;
        loop {
            match self.lookup(key, fresh, join) {
                CacheLookup::Hit(CacheHit { result: hit, age }) => {
                    return Ok(CacheRead::Cached(hit, age));
                }
                CacheLookup::Leader(lead) => {
                    let reply: Result<FetchedResult, E> = fetch(remaining).await.map(Into::into);
                    let cached = reply.as_ref().ok().filter(|reply| reply.cacheable);
                    let cached =
                        cached.map(|reply| CachedResult::new(reply.result.clone(), reply.clean));
                    lead.complete(cached);
                    let FetchedResult { result, .. } = reply.map_err(CacheReadError::Failed)?;
                    return Ok(CacheRead::Fetched(result));
                }
                CacheLookup::Follower(flight) => {
                    let outcome = timeout_at(deadline, flight.wait()).await;
                    match outcome.map_err(|_| CacheReadError::Timeout)? {
                        FlightOutcome::Result(shared) => {
                            return Ok(CacheRead::Cached(shared.clone(), Duration::ZERO));
                        }
                        FlightOutcome::Failed => join = false,
                        FlightOutcome::Abandoned => {}
                    }
                    remaining = deadline.saturating_duration_since(Instant::now());
                    if remaining.is_zero() {
                        return Err(CacheReadError::Timeout);
                    }
                }
            }
        }
    }

    /// Returns the cached result with its age, expired or not.
    pub(crate) fn get_stale(&self, key: &CacheKey) -> Option<(Arc<CachedResult>, Duration)> {
        let mut state = self.lock_state();
        let now = Instant::now();
        let own = state.store.get_stale(key, now);
        let shared = state.store.get_stale(&key.of_everyone(), now);
        let CacheHit { result, age } = own.into_iter().chain(shared).min_by_key(|hit| hit.age)?;
        Some((result, age))
    }

    /// Removes an entry, unless the entry now holds a different result.
    pub(crate) fn remove_if_same(&self, key: &CacheKey, result: &Arc<CachedResult>) {
        let mut state = self.lock_state();
        state.store.remove_if_same(key, result);
        state.store.remove_if_same(&key.of_everyone(), result);
    }

    fn lookup(&self, key: &CacheKey, fresh: bool, join: bool) -> CacheLookup<'_> {
        let mut state = self.lock_state();
        if fresh {
            // Requests of other principals are older than the fresh result.
            state.in_flight.retain(|other, _| !other.has_same_item(key));
        } else {
            let now = Instant::now();
            let own = state.store.get(key, now);
            if let Some(hit) = own.or_else(|| state.store.get(&key.of_everyone(), now)) {
                return CacheLookup::Hit(hit);
            }
        }
        if join && let Some(flight) = state.in_flight.get(key) {
            return CacheLookup::Follower(flight.clone());
        }
        let key = Arc::new(key.clone());
        let flight = InFlight::default();
        // The followers of the replaced flight still wait for that flight, but the cache does not
        // store its result.
        state.in_flight.insert(key.clone(), flight.clone());
        CacheLookup::Leader(FlightLeader { cache: self, key, flight })
    }

    /// Removes the entries that the server reported as changed, and does not store the results of
    /// running requests for them.
    pub(crate) fn invalidate_changed(&self, resources: bool, prompts: bool) {
        self.invalidate_where(|key| if key.is_resource() { resources } else { prompts });
    }

    /// Removes the entry of one resource.
    pub(crate) fn invalidate_uri(&self, uri: &str) {
        self.invalidate_where(|key| key.is_uri(uri));
    }

    fn invalidate_where(&self, which: impl Fn(&CacheKey) -> bool) {
        let mut state = self.lock_state();
        state.store.remove_where(&which);
        state.in_flight.retain(|key, _| !which(key));
    }

    /// Returns the number of entries and their size in bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        self.lock_state().store.size()
    }
}

/// The request that other callers wait for. A leader dropped without a result hands over to the
/// next follower.
struct FlightLeader<'a> {
    cache: &'a Cache,
    key: Arc<CacheKey>,
    flight: InFlight,
}

impl FlightLeader<'_> {
    fn complete(self, result: Option<CachedResult>) {
        self.finish(
            result.map_or(FlightOutcome::Failed, |result| FlightOutcome::Result(Arc::new(result))),
        );
    }

    fn finish(&self, outcome: FlightOutcome) {
        let mut state = self.cache.lock_state();
        // A flight that was invalidated or replaced in the meantime may be older than the
        // replacement.
        if state.in_flight.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            state.in_flight.remove(&self.key);
            if let FlightOutcome::Result(result) = &outcome {
                let ttl = effective_ttl(result.result(), self.cache.policy.ttl);
                let own = self.key.clone();
                let shared = Arc::new(self.key.of_everyone());
                let (key, replaced) = match CacheScope::from_result(result.result()) {
                    CacheScope::Private => (own, shared),
                    CacheScope::Public => (shared, own),
                };
                state.store.remove(&replaced);
                state.store.insert(key, result.clone(), ttl, Instant::now());
            }
        }
        drop(state);
        // The outcome is already set when `drop` runs after `complete`.
        let _ = self.flight.set(outcome);
    }
}

impl Drop for FlightLeader<'_> {
    fn drop(&mut self) {
        self.finish(FlightOutcome::Abandoned);
    }
}

/// Returns the TTL of a result. The server's `ttlMs` can shorten the configured TTL but not extend
/// it; an invalid `ttlMs` has no effect.
fn effective_ttl(result: &RawValue, ttl: Duration) -> Duration {
    let hint = skim::member(result.get(), "ttlMs").and_then(|hint| hint.parse().ok());
    hint.map_or(ttl, |millis| Duration::from_millis(millis).min(ttl))
}

#[cfg(test)]
mod tests;
