//! LRU store with limits for the number of entries and their bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{CacheKey, CachedResult};

/// A cached result and its age.
#[derive(Debug)]
pub(super) struct CacheHit {
    pub(super) result: Arc<CachedResult>,
    pub(super) age: Duration,
}

#[derive(Debug)]
struct CacheEntry {
    result: Arc<CachedResult>,
    stored_at: Instant,
    ttl: Duration,
    bytes: u64,
    last_use: u64,
}

/// Results by key. The least recently used entry is evicted first.
#[derive(Debug)]
pub(super) struct LruStore {
    max_entries: usize,
    max_bytes: u64,
    entries: HashMap<Arc<CacheKey>, CacheEntry>,
    /// The keys in the order of their last use.
    keys_by_last_use: BTreeMap<u64, Arc<CacheKey>>,
    bytes: u64,
    use_counter: u64,
}

impl LruStore {
    pub(super) fn new(max_entries: usize, max_bytes: u64) -> Self {
        Self {
            max_entries,
            max_bytes,
            entries: HashMap::new(),
            keys_by_last_use: BTreeMap::new(),
            bytes: 0,
            use_counter: 0,
        }
    }

    /// Returns the result if it has not expired.
    pub(super) fn get(&mut self, key: &CacheKey, now: Instant) -> Option<CacheHit> {
        let entry = self.entries.get(key)?;
        (now - entry.stored_at < entry.ttl).then_some(())?;
        self.get_stale(key, now)
    }

    /// Returns the result, expired or not.
    pub(super) fn get_stale(&mut self, key: &CacheKey, now: Instant) -> Option<CacheHit> {
        let entry = self.entries.get_mut(key)?;
        self.use_counter += 1;
        if let Some(key) = self.keys_by_last_use.remove(&entry.last_use) {
            self.keys_by_last_use.insert(self.use_counter, key);
        }
        entry.last_use = self.use_counter;
        Some(CacheHit { result: entry.result.clone(), age: now - entry.stored_at })
    }

    /// Stores a result in place of an older result. A result larger than `max_bytes` is not stored.
    pub(super) fn insert(
        &mut self,
        key: Arc<CacheKey>,
        result: Arc<CachedResult>,
        ttl: Duration,
        now: Instant,
    ) {
        self.remove(&key);
        let bytes = (key.size_bytes() + result.result().get().len()) as u64;
        if bytes > self.max_bytes {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + bytes > self.max_bytes {
            let Some((_, oldest)) = self.keys_by_last_use.pop_first() else { return };
            self.remove(&oldest);
        }
        self.use_counter += 1;
        let last_use = self.use_counter;
        self.bytes += bytes;
        self.keys_by_last_use.insert(last_use, key.clone());
        self.entries.insert(key, CacheEntry { result, stored_at: now, ttl, bytes, last_use });
    }

    pub(super) fn remove_where(&mut self, which: impl Fn(&CacheKey) -> bool) {
        let matching: Vec<Arc<CacheKey>> =
            self.entries.keys().filter(|key| which(key)).cloned().collect();
        for key in matching {
            self.remove(&key);
        }
    }

    /// Removes an entry, unless the entry now holds a different result.
    pub(super) fn remove_if_same(&mut self, key: &CacheKey, result: &Arc<CachedResult>) {
        if self.entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.result, result)) {
            self.remove(key);
        }
    }

    /// Returns the number of entries and their size in bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.entries.len(), self.bytes)
    }

    pub(super) fn remove(&mut self, key: &CacheKey) {
        if let Some(entry) = self.entries.remove(key) {
            self.keys_by_last_use.remove(&entry.last_use);
            self.bytes -= entry.bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// An operation on the store. `Insert` has the size of the result in bytes.
    #[derive(Clone, Debug)]
    enum StoreOperation {
        Insert(u8, usize),
        GetStale(u8),
        Remove(u8),
    }

    fn store_operations() -> impl Strategy<Value = Vec<StoreOperation>> {
        let operation = prop_oneof![
            3 => (0..8u8, 2..40usize).prop_map(|(key, bytes)| StoreOperation::Insert(key, bytes)),
            3 => (0..8u8).prop_map(StoreOperation::GetStale),
            1 => (0..8u8).prop_map(StoreOperation::Remove),
        ];
        proptest::collection::vec(operation, 0..60)
    }

    fn key(number: u8) -> CacheKey {
        CacheKey::resource(&number.to_string())
    }

    proptest! {
        #[test]
        fn a_store_does_what_a_list_in_the_order_of_use_would(
            steps in store_operations(), max_entries in 1..6usize, max_bytes in 1..100u64,
        ) {
            let mut store = LruStore::new(max_entries, max_bytes);
            // The least recently used entry is first.
            let mut list: Vec<(u8, u64)> = Vec::new();
            let now = Instant::now();
            for step in steps {
                match step {
                    StoreOperation::Insert(number, bytes) => {
                        let text = format!("\"{}\"", "x".repeat(bytes - 2));
                        let answer = CachedResult::new(RawValue::from_string(text).unwrap(), false);
                        let answer = Arc::new(answer);
                        store.insert(Arc::new(key(number)), answer, Duration::MAX, now);
                        list.retain(|(kept, _)| *kept != number);
                        list.push((number, bytes as u64 + 1));
                        if bytes as u64 + 1 > max_bytes {
                            list.pop();
                        }
                        while list.len() > max_entries
                            || list.iter().map(|(_, bytes)| bytes).sum::<u64>() > max_bytes
                        {
                            list.remove(0);
                        }
                    }
                    StoreOperation::GetStale(number) => {
                        let at = list.iter().position(|(kept, _)| *kept == number);
                        prop_assert_eq!(store.get_stale(&key(number), now).is_some(), at.is_some());
                        if let Some(at) = at {
                            let used = list.remove(at);
                            list.push(used);
                        }
                    }
                    StoreOperation::Remove(number) => {
                        store.remove_where(|kept| *kept == key(number));
                        list.retain(|(kept, _)| *kept != number);
                    }
                }
                let bytes = list.iter().map(|(_, bytes)| bytes).sum();
                prop_assert_eq!(store.size(), (list.len(), bytes));
                let order: Vec<&CacheKey> = store.keys_by_last_use.values().map(|key| &**key).collect();
                let expected: Vec<CacheKey> = list.iter().map(|(number, _)| key(*number)).collect();
                prop_assert_eq!(order, expected.iter().collect::<Vec<_>>());
            }
        }
    }
}
