//! Answers in the order of their last use, bounded in number and bytes.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::{Answer, Key};

/// A kept answer and how long it has been there.
#[derive(Debug)]
pub(super) struct Kept {
    pub(super) answer: Arc<Answer>,
    pub(super) age: Duration,
}

#[derive(Debug)]
struct Entry {
    answer: Arc<Answer>,
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
        Some(Kept { answer: entry.answer.clone(), age: now - entry.stored })
    }

    /// Keeps an answer instead of an older one; one that is larger than all may be is not kept.
    pub(super) fn put(
        &mut self,
        key: Arc<Key>,
        answer: Arc<Answer>,
        good_for: Duration,
        now: Instant,
    ) {
        self.remove(&key);
        let bytes = (key.bytes() + answer.result().get().len()) as u64;
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
        self.entries.insert(key, Entry { answer, stored: now, good_for, bytes, used });
    }

    pub(super) fn forget(&mut self, which: impl Fn(&Key) -> bool) {
        let gone: Vec<Arc<Key>> = self.entries.keys().filter(|key| which(key)).cloned().collect();
        for key in gone {
            self.remove(&key);
        }
    }

    /// Drops an answer, unless another one has taken its place.
    pub(super) fn drop_answer(&mut self, key: &Key, answer: &Arc<Answer>) {
        if self.entries.get(key).is_some_and(|entry| Arc::ptr_eq(&entry.answer, answer)) {
            self.remove(key);
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::value::RawValue;

    use super::*;

    /// What is done to a store: an answer of so many bytes put in, one taken out, or one dropped.
    #[derive(Clone, Debug)]
    enum Step {
        Put(u8, usize),
        Last(u8),
        Forget(u8),
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            3 => (0..8u8, 2..40usize).prop_map(|(key, bytes)| Step::Put(key, bytes)),
            3 => (0..8u8).prop_map(Step::Last),
            1 => (0..8u8).prop_map(Step::Forget),
        ];
        proptest::collection::vec(step, 0..60)
    }

    fn key(number: u8) -> Key {
        Key::resource(&number.to_string())
    }

    proptest! {
        #[test]
        fn a_store_does_what_a_list_in_the_order_of_use_would(
            steps in steps(), max_entries in 1..6usize, max_bytes in 1..100u64,
        ) {
            let mut store = Store::new(max_entries, max_bytes);
            // The longest unused first.
            let mut list: Vec<(u8, u64)> = Vec::new();
            let now = Instant::now();
            for step in steps {
                match step {
                    Step::Put(number, bytes) => {
                        let text = format!("\"{}\"", "x".repeat(bytes - 2));
                        let answer = Answer::new(RawValue::from_string(text).unwrap(), false);
                        let answer = Arc::new(answer);
                        store.put(Arc::new(key(number)), answer, Duration::MAX, now);
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
                    Step::Last(number) => {
                        let at = list.iter().position(|(kept, _)| *kept == number);
                        prop_assert_eq!(store.last(&key(number), now).is_some(), at.is_some());
                        if let Some(at) = at {
                            let used = list.remove(at);
                            list.push(used);
                        }
                    }
                    Step::Forget(number) => {
                        store.forget(|kept| *kept == key(number));
                        list.retain(|(kept, _)| *kept != number);
                    }
                }
                let bytes = list.iter().map(|(_, bytes)| bytes).sum();
                prop_assert_eq!(store.size(), (list.len(), bytes));
                let order: Vec<&Key> = store.uses.values().map(|key| &**key).collect();
                let expected: Vec<Key> = list.iter().map(|(number, _)| key(*number)).collect();
                prop_assert_eq!(order, expected.iter().collect::<Vec<_>>());
            }
        }
    }
}
