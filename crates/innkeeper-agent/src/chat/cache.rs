//! Answers kept for calls that are made again, where the tool says that running it twice is the same.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_toolcall::Json;
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::tools::{Hints, Output, RunError};

/// How long and how many answers are kept. Only those of at most [`KEPT`] bytes are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CacheSettings {
    /// How long an answer is good for. Default: 5 minutes.
    pub ttl: Duration,
    /// The most answers. Default: 128.
    pub max_entries: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(300), max_entries: 128 }
    }
}

/// The longest answer that is kept, and the longest arguments it is kept for, in bytes: with the
/// number of answers, this bounds the memory.
pub(super) const KEPT: usize = 256 << 10;

type Key = (String, String);
type Cell = Arc<OnceCell<Arc<Output>>>;

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Cache {
    settings: CacheSettings,
    entries: Mutex<HashMap<Key, Entry>>,
}

#[derive(Debug)]
struct Entry {
    cell: Cell,
    since: Instant,
}

impl Cache {
    pub(super) fn new(settings: CacheSettings) -> Self {
        Self { settings, entries: Mutex::default() }
    }

    /// The answer of a call, and whether it is one from before. Equal calls at the same time are one.
    ///
    /// A call that may change something makes every answer before it doubtful, so none of them is
    /// kept: neither those from before it nor those asked for while it ran. Failures are not kept.
    pub(super) async fn answer(
        &self,
        tool: &str,
        hints: Hints,
        arguments: &Json,
        run: impl Future<Output = Result<Arc<Output>, RunError>>,
    ) -> (Result<Arc<Output>, RunError>, bool) {
        let key = (tool.to_owned(), canonical(arguments));
        let keeps = (hints.read_only || hints.idempotent) && key.1.len() <= KEPT;
        let found = keeps.then(|| self.found(&key)).flatten();
        let old = found.is_some();
        let cell = found.unwrap_or_default();
        let _changing = (!old && !hints.read_only).then(|| Changing::begin(self, cell.clone()));
        if keeps && !old {
            self.keep(&key, &cell);
        }
        let mut ran = false;
        let result = cell
            .get_or_try_init(|| {
                ran = true;
                run
            })
            .await
            .cloned();
        if ran {
            self.ran(&key, &cell, result.as_deref().ok());
        }
        (result, old && !ran)
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<Key, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn found(&self, key: &Key) -> Option<Cell> {
        let mut entries = self.entries();
        entries.retain(|_, entry| entry.since.elapsed() < self.settings.ttl);
        entries.get(key).map(|entry| entry.cell.clone())
    }

    fn keep(&self, key: &Key, cell: &Cell) {
        let mut entries = self.entries();
        while entries.len() >= self.settings.max_entries {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.since);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            entries.remove(&oldest);
        }
        entries.insert(key.clone(), Entry { cell: cell.clone(), since: Instant::now() });
    }

    /// A call has ended.
    fn ran(&self, key: &Key, cell: &Cell, output: Option<&Output>) {
        let good = output.is_some_and(|it| !it.is_error() && it.raw().get().len() <= KEPT);
        let mut entries = self.entries();
        let mine = |entry: &Entry| Arc::ptr_eq(&entry.cell, cell);
        if !good && entries.get(key).is_some_and(mine) {
            entries.remove(key);
        }
    }
}

/// A call under way that may change something.
struct Changing<'c> {
    cache: &'c Cache,
    cell: Cell,
}

impl<'c> Changing<'c> {
    fn begin(cache: &'c Cache, cell: Cell) -> Self {
        cache.entries().clear();
        Self { cache, cell }
    }
}

/// Also where the call is cancelled: it may have run.
impl Drop for Changing<'_> {
    fn drop(&mut self) {
        self.cache.entries().retain(|_, entry| Arc::ptr_eq(&entry.cell, &self.cell));
    }
}

/// Arguments as text in which the order of members makes no difference.
fn canonical(json: &Json) -> String {
    sorted(json).to_string()
}

fn sorted(json: &Json) -> Json {
    match json {
        Json::Array(items) => Json::Array(items.iter().map(sorted).collect()),
        Json::Object(members) => {
            let mut members: Vec<_> =
                members.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            Json::Object(members)
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => json.clone(),
    }
}
