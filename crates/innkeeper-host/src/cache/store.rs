//! Answers in the order of their last use, bounded in number and bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::time::Instant;

use super::Key;

/// A kept answer and how long it has been there.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) result: Arc<RawValue>,
    pub(super) age: Duration,
}

#[derive(Debug)]
struct Entry {
    result: Arc<RawValue>,
    stored: Instant,
    good_for: Duration,
    bytes: u64,
    used: u64,
}

/// Answers by key; the one unused for longest goes first.
#[derive(Debug)]
pub(super) struct Store {
    max_entries: usize,
    max_bytes: u64,
    entries: HashMap<Arc<Key>, Entry>,
    /// The keys by their last use.
    uses: BTreeMap<u64, Arc<Key>>,
    bytes: u64,
    clock: u64,
}

impl Store {
    pub(super) fn new(max_entries: usize, max_bytes: u64) -> Self {
        let (entries, uses) = (HashMap::new(), BTreeMap::new());
        Self { max_entries, max_bytes, entries, uses, bytes: 0, clock: 0 }
    }

    /// An answer that is still good.
    pub(super) fn get(&mut self, key: &Key, now: Instant) -> Option<Kept> {
        let entry = self.entries.get(key)?;
        (now - entry.stored < entry.good_for).then_some(())?;
        self.last(key, now)
    }

    /// An answer however old it is.
    pub(super) fn last(&mut self, key: &Key, now: Instant) -> Option<Kept> {
        let entry = self.entries.get_mut(key)?;
        self.clock += 1;
        if let Some(key) = self.uses.remove(&entry.used) {
            self.uses.insert(self.clock, key);
        }
        entry.used = self.clock;
        Some(Kept { result: entry.result.clone(), age: now - entry.stored })
    }

    /// Keeps an answer instead of an older one; one that is larger than all may be is not kept.
    pub(super) fn put(
        &mut self,
        key: Arc<Key>,
        result: Arc<RawValue>,
        good_for: Duration,
        now: Instant,
    ) {
        self.remove(&key);
        let bytes = (key.bytes() + result.get().len()) as u64;
        if bytes > self.max_bytes {
            return;
        }
        while self.entries.len() >= self.max_entries || self.bytes + bytes > self.max_bytes {
            let Some((_, oldest)) = self.uses.pop_first() else { return };
            self.remove(&oldest);
        }
        self.clock += 1;
        let used = self.clock;
        self.bytes += bytes;
        self.uses.insert(used, key.clone());
        self.entries.insert(key, Entry { result, stored: now, good_for, bytes, used });
    }

    pub(super) fn forget(&mut self, which: impl Fn(&Key) -> bool) {
        let gone: Vec<Arc<Key>> = self.entries.keys().filter(|key| which(key)).cloned().collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// The number of entries and their bytes.
    pub(super) fn size(&self) -> (usize, u64) {
        (self.entries.len(), self.bytes)
    }

    fn remove(&mut self, key: &Key) {
        if let Some(entry) = self.entries.remove(key) {
            self.uses.remove(&entry.used);
            self.bytes -= entry.bytes;
        }
    }
}
