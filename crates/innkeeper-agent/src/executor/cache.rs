//! Caches results of calls that tools declare repeatable.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_toolcall::Json;
use serde::{Deserialize, Serialize};
use tokio::sync::OnceCell;
use tokio::time::Instant;

use crate::timing::Timing;
use crate::tools::{ToolAnnotations, ToolError, ToolOutput};

/// Limits of the result cache. Results of more than 256 KiB are not cached. A change of the tool list
/// clears the cache.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CacheSettings {
    /// The lifetime of a cached result. Default: 5 minutes.
    #[serde(rename = "ttl_ms", with = "crate::millis")]
    pub ttl: Duration,
    /// Maximum number of cached results. Default: 128.
    pub max_entries: usize,
}

impl Default for CacheSettings {
    fn default() -> Self {
        Self { ttl: Duration::from_secs(300), max_entries: 128 }
    }
}

/// Maximum number of bytes in a cached result, and in the arguments of its call. Together with the
/// maximum number of results, the limit bounds the memory.
const MAX_ENTRY_BYTES: usize = 256 << 10;

type CacheKey = (String, String);
type ResultCell = Arc<OnceCell<Arc<ToolOutput>>>;

/// Results of earlier calls, by tool and arguments.
pub(super) struct ResultCache {
    settings: CacheSettings,
    timing: Timing,
    entries: Mutex<HashMap<CacheKey, CacheEntry>>,
}

#[derive(Debug)]
struct CacheEntry {
    cell: ResultCell,
    inserted_at: Instant,
}

impl ResultCache {
    pub(super) fn new(settings: CacheSettings, timing: Timing) -> Self {
        Self { settings, timing, entries: Mutex::default() }
    }

    /// Returns the result of a call, and whether the result comes from an earlier call. Concurrent
    /// calls with equal arguments run once.
    ///
    /// A call of a tool that is not read-only may invalidate every earlier result, so the cache
    /// drops all results that were stored before the call or requested during the call. Failures
    /// are not cached.
    pub(super) async fn get_or_run(
        &self,
        tool: &str,
        hints: ToolAnnotations,
        arguments: &Json,
        run: impl Future<Output = Result<Arc<ToolOutput>, ToolError>>,
    ) -> (Result<Arc<ToolOutput>, ToolError>, bool) {
        let key = (tool.to_owned(), arguments.to_canonical_string());
        let keeps = (hints.read_only || hints.idempotent) && key.1.len() <= MAX_ENTRY_BYTES;
        let cached = keeps.then(|| self.lookup(&key)).flatten();
        let old = cached.is_some();
        let cell = cached.unwrap_or_default();
        if keeps && !old {
            self.insert(&key, &cell);
        }
        let mut has_run = false;
        let result = cell
            .get_or_try_init(|| {
                has_run = true;
                let guard = (!hints.read_only).then(|| InvalidationGuard::new(self, cell.clone()));
                async move {
                    let _guard = guard;
                    run.await
                }
            })
            .await
            .cloned();
        if has_run {
            self.discard_if_failed(&key, &cell, result.as_deref().ok());
        }
        (result, old && !has_run)
    }

    /// Removes all results. The results of running calls are not cached.
    pub(super) fn clear(&self) {
        self.entries().clear();
    }

    fn entries(&self) -> MutexGuard<'_, HashMap<CacheKey, CacheEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lookup(&self, key: &CacheKey) -> Option<ResultCell> {
        let mut entries = self.entries();
        let now = self.timing.now();
        entries.retain(|_, entry| {
            now.saturating_duration_since(entry.inserted_at) < self.settings.ttl
        });
        entries.get(key).map(|entry| entry.cell.clone())
    }

    fn insert(&self, key: &CacheKey, cell: &ResultCell) {
        let mut entries = self.entries();
        while entries.len() >= self.settings.max_entries {
            let oldest = entries.iter().min_by_key(|(_, entry)| entry.inserted_at);
            let Some(oldest) = oldest.map(|(key, _)| key.clone()) else { return };
            entries.remove(&oldest);
        }
        let inserted_at = self.timing.now();
        entries.insert(key.clone(), CacheEntry { cell: cell.clone(), inserted_at });
    }

    /// Removes the entry of a call that failed or returned too many bytes.
    fn discard_if_failed(&self, key: &CacheKey, cell: &ResultCell, output: Option<&ToolOutput>) {
        let is_cacheable =
            output.is_some_and(|it| !it.is_error() && it.raw().get().len() <= MAX_ENTRY_BYTES);
        let mut entries = self.entries();
        if !is_cacheable && entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.cell, cell)) {
            entries.remove(key);
        }
    }
}

/// Invalidates the results of other calls at the start and at the end of a call that is not
/// read-only.
struct InvalidationGuard<'c> {
    cache: &'c ResultCache,
    cell: ResultCell,
}

impl<'c> InvalidationGuard<'c> {
    fn new(cache: &'c ResultCache, cell: ResultCell) -> Self {
        let guard = Self { cache, cell };
        guard.invalidate();
        guard
    }

    fn invalidate(&self) {
        self.cache.entries().retain(|_, entry| Arc::ptr_eq(&entry.cell, &self.cell));
    }
}

/// Also runs when the call is cancelled: the tool may have run.
impl Drop for InvalidationGuard<'_> {
    fn drop(&mut self) {
        self.invalidate();
    }
}
