//! What a server says has changed: kept copies go at once, lists are noted for who reads them again.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexSet;
use tokio::sync::{Notify, watch};

use super::Session;
use crate::cache::Cache;

/// Which lists a server says have changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// Whether it was told. Else they are only old enough to be looked at.
    pub(crate) told: bool,
}

impl Change {
    fn of(flags: u8) -> Self {
        Self {
            tools: flags & (TOOLS | TOOLS << LOOK) != 0,
            prompts: flags & (PROMPTS | PROMPTS << LOOK) != 0,
            resources: flags & (RESOURCES | RESOURCES << LOOK) != 0,
            told: flags & (TOOLS | PROMPTS | RESOURCES) != 0,
        }
    }
}

pub(super) const TOOLS: u8 = 1;
pub(super) const PROMPTS: u8 = 2;
pub(super) const RESOURCES: u8 = 4;
const UPDATED: u8 = 8;

/// How far the flags of lists that are to be looked at are from those of lists that have changed.
const LOOK: u8 = 4;

/// The longest URI that is remembered so; longer ones count as all of them.
const LONGEST_URI: usize = 8 << 10;

/// Resources that are remembered as changed; beyond that all of them count as changed.
const UPDATES: usize = 1024;

/// Changes told and not yet looked at; any number of notifications takes bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    flags: AtomicU8,
    updated: Mutex<IndexSet<String>>,
    told: Notify,
    /// The server has begun anew.
    renewed: Notify,
    /// The last request that the server said it tells of changes under.
    acknowledged: watch::Sender<Option<u64>>,
    /// The copies that a change makes old.
    kept: OnceLock<Arc<Cache>>,
}

impl Changes {
    /// Says that everything may have changed.
    pub(super) fn tell_all(&self) {
        self.tell(TOOLS | PROMPTS | RESOURCES);
    }

    /// Says that the server has begun anew.
    pub(super) fn renew(&self) {
        self.tell_all();
        self.renewed.notify_one();
    }

    /// Says that the server tells of changes from here on, under this request.
    pub(super) fn acknowledge(&self, id: u64) {
        self.acknowledged.send_replace(Some(id));
    }

    /// Says that a resource has changed. Whoever reads it after this is not given the old copy.
    pub(super) fn update(&self, uri: String) {
        if let Some(kept) = self.kept.get() {
            kept.forget_uri(&uri);
        }
        let mut updated = self.updated.lock().unwrap_or_else(PoisonError::into_inner);
        let many = updated.len() >= UPDATES || uri.len() > LONGEST_URI;
        if !many {
            updated.insert(uri);
        }
        drop(updated);
        self.tell(if many { UPDATED | RESOURCES } else { UPDATED });
    }

    /// Says that these lists have changed. Whoever reads one of their items after this is not given
    /// the old copy.
    pub(super) fn tell(&self, flags: u8) {
        if let Some(kept) = self.kept.get() {
            kept.changed(Change::of(flags));
        }
        self.note(flags);
    }

    fn note(&self, flags: u8) {
        self.flags.fetch_or(flags, Ordering::Release);
        self.told.notify_one();
    }

    fn take_updated(&self) -> Vec<String> {
        let mut updated = self.updated.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *updated).into_iter().collect()
    }

    async fn next(&self) -> Change {
        loop {
            let told = self.told.notified();
            let flags = self.flags.swap(0, Ordering::Acquire);
            if flags != 0 {
                return Change::of(flags);
            }
            told.await;
        }
    }
}

impl Session {
    /// Has copies dropped in the moment in which the server says that they are old: an answer that
    /// it sends after that is never taken before.
    pub(crate) fn keeps(&self, cache: Arc<Cache>) {
        // A session has one cache for as long as it lives.
        let _first = self.0.changes.kept.set(cache);
    }

    /// What the server said has changed since last asked; waits until there is something.
    pub(crate) async fn changed(&self) -> Change {
        self.0.changes.next().await
    }

    /// The resources that were said to have changed since last asked.
    pub(crate) fn take_updated(&self) -> Vec<String> {
        self.0.changes.take_updated()
    }

    /// Resolves when the server has begun anew, in a session that knows nothing of the last one, since
    /// this was last asked.
    pub(crate) async fn renewed(&self) {
        self.0.changes.renewed.notified().await;
    }

    /// Resolves once the server has said that it tells of changes under this request.
    pub(crate) async fn acknowledged(&self, id: u64) {
        let mut acknowledged = self.0.changes.acknowledged.subscribe();
        // The sender lives in self, so the wait cannot fail.
        drop(acknowledged.wait_for(|last| *last == Some(id)).await);
    }

    /// Has lists read again that may have changed; what is kept of their items stays.
    pub(crate) fn look_at(&self, lists: Change) {
        let by = if lists.told { 0 } else { LOOK };
        let flag = |wanted, flag: u8| if wanted { flag << by } else { 0 };
        let flags = flag(lists.tools, TOOLS)
            | flag(lists.prompts, PROMPTS)
            | flag(lists.resources, RESOURCES);
        self.0.changes.note(flags);
    }

    /// Takes every list for changed.
    pub(crate) fn assume_changed(&self) {
        self.0.changes.tell_all();
    }
}

#[cfg(test)]
mod tests;
