//! What one server answered, kept for a while: its resources and prompts, and nothing else.
//!
//! A copy that is too old for a hit stays as long as there is room, and is given with a mark when the
//! server is away.
//! Requests for the same thing at the same time are one: who comes later waits for the first. If
//! that one fails, each of them asks for itself; if its caller goes away, the next takes over. So
//! nobody sends more than one request, and nobody fails for another.

mod stale;
mod store;

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use tokio::sync::SetOnce;
use tokio::time::{Instant, timeout_at};

use crate::config::Cache as Policy;
use crate::server::connection::LONGEST;
use crate::server::session::Change;
use store::{Kept, Store};

/// What an answer is kept under.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Key {
    /// The URI.
    Resource(Box<str>),
    /// The public name, and the arguments in an order of their own.
    Prompt(Box<str>, Box<str>),
}

impl Key {
    pub(crate) fn resource(uri: &str) -> Self {
        Self::Resource(uri.into())
    }

    pub(crate) fn prompt(name: &str, arguments: &Map<String, Value>) -> Self {
        let sorted: BTreeMap<&String, &Value> = arguments.iter().collect();
        // Names with values are always written.
        let sorted = serde_json::to_string(&sorted).unwrap_or_default();
        Self::Prompt(name.into(), sorted.into())
    }

    /// The URI, or the name of the prompt.
    pub(crate) fn item(&self) -> &str {
        match self {
            Self::Resource(item) | Self::Prompt(item, _) => item,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Self::Resource(uri) => uri.len(),
            Self::Prompt(name, arguments) => name.len() + arguments.len(),
        }
    }
}

/// Why there is no answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Missed<E> {
    /// The time ran out while another caller's request was waited for.
    Late,
    /// The caller's own request failed.
    Failed(E),
}

/// Where an answer comes from.
#[derive(Debug)]
pub(crate) enum Found {
    /// A request of the caller's own.
    Asked(Box<RawValue>),
    /// The answer to another one, and its age.
    Copy(Arc<Answer>, Duration),
}

/// What a server answered, as others are given it.
#[derive(Debug)]
pub(crate) struct Answer {
    result: Box<RawValue>,
    clean: AtomicBool,
}

impl Answer {
    fn new(result: Box<RawValue>, clean: bool) -> Self {
        Self { result, clean: clean.into() }
    }

    /// As the server sent it.
    pub(crate) fn result(&self) -> &RawValue {
        &self.result
    }

    /// With the mark of an old copy.
    pub(crate) fn stale(&self, age: Duration) -> Box<RawValue> {
        stale::marked(&self.result, age)
    }

    /// Whether it was looked at and nothing was found. What was kept while nothing was looked at, and
    /// what was only flagged, is not.
    pub(crate) fn is_clean(&self) -> bool {
        self.clean.load(Ordering::Relaxed)
    }

    /// It was looked at now, and nothing was found.
    pub(crate) fn cleared(&self) {
        self.clean.store(true, Ordering::Relaxed);
    }
}

/// What a server answered.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) result: Box<RawValue>,
    /// Whether it holds for whoever asks the same: not what a user said in between.
    pub(crate) keep: bool,
    /// Whether it was looked at and nothing was found.
    pub(crate) clean: bool,
}

impl From<Box<RawValue>> for Reply {
    fn from(result: Box<RawValue>) -> Self {
        Self { result, keep: true, clean: false }
    }
}

/// What has come of a request that others wait for.
#[derive(Debug)]
enum Landed {
    Result(Arc<Answer>),
    Failed,
    /// Its caller went away.
    Gone,
}

type Flight = Arc<SetOnce<Landed>>;

/// The kept answers of one launch of a server; another launch begins with none.
#[derive(Debug)]
pub(crate) struct Cache {
    policy: Policy,
    shelves: Mutex<Shelves>,
}

#[derive(Debug)]
struct Shelves {
    store: Store,
    /// The requests under way whose answers will be kept.
    flights: HashMap<Arc<Key>, Flight>,
}

enum Turn<'a> {
    Kept(Kept),
    Lead(Lead<'a>),
    Follow(Flight),
}

impl Cache {
    pub(crate) fn new(policy: Policy) -> Self {
        let store = Store::new(policy.max_entries, policy.max_bytes);
        Self { policy, shelves: Mutex::new(Shelves { store, flights: HashMap::new() }) }
    }

    fn shelves(&self) -> MutexGuard<'_, Shelves> {
        self.shelves.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives what is kept, or has `ask` get it in what is left of `limit`. A `fresh` answer is
    /// asked for in any case, and kept.
    pub(crate) async fn read<E, R, F>(
        &self,
        key: &Key,
        fresh: bool,
        limit: Duration,
        ask: impl FnOnce(Duration) -> F,
    ) -> Result<Found, Missed<E>>
    where
        R: Into<Reply>,
        F: Future<Output = Result<R, E>>,
    {
        if self.policy.ttl.is_zero() {
            let Reply { result, .. } = ask(limit).await.map_err(Missed::Failed)?.into();
            return Ok(Found::Asked(result));
        }
        let deadline = Instant::now() + limit.min(LONGEST);
        let (mut left, mut join) = (limit, !fresh);
        loop {
            match self.turn(key, fresh, join) {
                Turn::Kept(Kept { answer, age }) => return Ok(Found::Copy(answer, age)),
                Turn::Lead(lead) => {
                    let reply: Result<Reply, E> = ask(left).await.map(Into::into);
                    let kept = reply.as_ref().ok().filter(|reply| reply.keep);
                    let kept = kept.map(|reply| Answer::new(reply.result.clone(), reply.clean));
                    lead.land(kept);
                    let Reply { result, .. } = reply.map_err(Missed::Failed)?;
                    return Ok(Found::Asked(result));
                }
                Turn::Follow(flight) => {
                    let landed = timeout_at(deadline, flight.wait()).await;
                    match landed.map_err(|_| Missed::Late)? {
                        Landed::Result(answer) => {
                            return Ok(Found::Copy(answer.clone(), Duration::ZERO));
                        }
                        Landed::Failed => join = false,
                        Landed::Gone => {}
                    }
                    left = deadline.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return Err(Missed::Late);
                    }
                }
            }
        }
    }

    /// Gives what is kept, however old, and its age.
    pub(crate) fn last(&self, key: &Key) -> Option<(Arc<Answer>, Duration)> {
        let Kept { answer, age } = self.shelves().store.last(key, Instant::now())?;
        Some((answer, age))
    }

    /// Drops an answer, unless another one has taken its place.
    pub(crate) fn drop_answer(&self, key: &Key, answer: &Arc<Answer>) {
        self.shelves().store.drop_answer(key, answer);
    }

    fn turn(&self, key: &Key, fresh: bool, join: bool) -> Turn<'_> {
        let mut shelves = self.shelves();
        if !fresh && let Some(kept) = shelves.store.get(key, Instant::now()) {
            return Turn::Kept(kept);
        }
        if join && let Some(flight) = shelves.flights.get(key) {
            return Turn::Follow(flight.clone());
        }
        let (key, flight) = (Arc::new(key.clone()), Flight::default());
        // One that was under way before is waited for by those it has, and not kept.
        shelves.flights.insert(key.clone(), flight.clone());
        Turn::Lead(Lead { cache: self, key, flight })
    }

    /// Drops what the server says has changed; answers under way to older questions too.
    pub(crate) fn changed(&self, change: Change) {
        self.forget(|key| match key {
            Key::Resource(_) => change.resources,
            Key::Prompt(..) => change.prompts,
        });
    }

    /// Drops one resource.
    pub(crate) fn forget_uri(&self, uri: &str) {
        self.forget(|key| matches!(key, Key::Resource(kept) if **kept == *uri));
    }

    fn forget(&self, which: impl Fn(&Key) -> bool) {
        let mut shelves = self.shelves();
        shelves.store.forget(&which);
        shelves.flights.retain(|key, _| !which(key));
    }

    /// How many answers are kept, and their bytes.
    pub(crate) fn size(&self) -> (usize, u64) {
        self.shelves().store.size()
    }
}

/// The one request that others wait for; dropped without an answer it hands over to the next.
struct Lead<'a> {
    cache: &'a Cache,
    key: Arc<Key>,
    flight: Flight,
}

impl Lead<'_> {
    fn land(self, answer: Option<Answer>) {
        self.end(answer.map_or(Landed::Failed, |answer| Landed::Result(Arc::new(answer))));
    }

    fn end(&self, landed: Landed) {
        let mut shelves = self.cache.shelves();
        // Not if it was forgotten or replaced meanwhile: it may be older than what replaced it.
        if shelves.flights.get(&self.key).is_some_and(|flight| Arc::ptr_eq(flight, &self.flight)) {
            shelves.flights.remove(&self.key);
            if let Landed::Result(answer) = &landed {
                let good_for = good_for(answer.result(), self.cache.policy.ttl);
                shelves.store.put(self.key.clone(), answer.clone(), good_for, Instant::now());
            }
        }
        drop(shelves);
        // It has landed before if this is the drop after it.
        drop(self.flight.set(landed));
    }
}

impl Drop for Lead<'_> {
    fn drop(&mut self) {
        self.end(Landed::Gone);
    }
}

/// The server's own hint can shorten the time, never prolong it; a hint that is none has no effect.
fn good_for(result: &RawValue, ttl: Duration) -> Duration {
    let hint = skim::member(result.get(), "ttlMs").and_then(|hint| hint.parse().ok());
    hint.map_or(ttl, |millis| Duration::from_millis(millis).min(ttl))
}

#[cfg(test)]
mod tests;
