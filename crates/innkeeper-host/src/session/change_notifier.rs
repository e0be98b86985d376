//! Change notifications of a server: invalidates caches and collects changed lists.

use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use indexmap::IndexSet;
use tokio::sync::{Notify, watch};

use super::Session;
use crate::cache::Cache;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct ListChanges {
    pub(crate) tools: bool,
    pub(crate) prompts: bool,
    pub(crate) resources: bool,
    /// Whether the server reported the change; false for lists that only expired.
    pub(crate) notified: bool,
}

impl ListChanges {
    fn from_flags(flags: u8) -> Self {
        Self {
            tools: flags & (TOOLS | TOOLS << RECHECK_SHIFT) != 0,
            prompts: flags & (PROMPTS | PROMPTS << RECHECK_SHIFT) != 0,
            resources: flags & (RESOURCES | RESOURCES << RECHECK_SHIFT) != 0,
            notified: flags & (TOOLS | PROMPTS | RESOURCES) != 0,
        }
    }
}

pub(super) const TOOLS: u8 = 1;
pub(super) const PROMPTS: u8 = 2;
pub(super) const RESOURCES: u8 = 4;
const UPDATED: u8 = 8;

/// Number of bits between the flags of changed lists and the flags of lists to check again.
const RECHECK_SHIFT: u8 = 4;

/// Maximum size in bytes of a recorded URI; a longer URI marks all resources as changed.
const MAX_URI_BYTES: usize = 8 << 10;

/// Maximum number of recorded URIs; more changes mark all resources as changed.
const MAX_UPDATED_URIS: usize = 1024;

/// Changes that were reported and not yet handled; the memory is bounded for any number of
/// notifications.
#[derive(Debug, Default)]
pub(crate) struct ChangeNotifier {
    flags: AtomicU8,
    updated: Mutex<IndexSet<String>>,
    changed: Notify,
    tool_changes: ToolChanges,
    /// Notified when the session was re-established.
    reinitialized: Notify,
    /// Last subscription request that the server acknowledged.
    acknowledged: watch::Sender<Option<u64>>,
    /// Cache whose entries a change invalidates.
    cache: OnceLock<Arc<Cache>>,
}

/// How many changes of the tools have come how far.
#[derive(Debug, Default)]
struct ToolChanges {
    /// Number of reported changes. The flag of a change is set before the change counts.
    reported: AtomicU64,
    /// Number of changes whose flags [`ChangeNotifier::next`] has returned.
    taken: AtomicU64,
    handled: watch::Sender<u64>,
}

impl ChangeNotifier {
    /// Marks all lists as changed.
    pub(super) fn mark_all_changed(&self) {
        self.mark_changed(TOOLS | PROMPTS | RESOURCES);
    }

    /// Records that the session was re-established.
    pub(super) fn mark_reinitialized(&self) {
        self.mark_all_changed();
        self.reinitialized.notify_one();
    }

    /// Records that the server acknowledged the subscription of this request.
    pub(super) fn acknowledge(&self, id: u64) {
        self.acknowledged.send_replace(Some(id));
    }

    /// Returns whether the subscription of this request is the last acknowledged subscription.
    pub(super) fn is_acknowledged(&self, id: u64) -> bool {
        *self.acknowledged.borrow() == Some(id)
    }

    /// Marks a resource as changed and invalidates its cache entry.
    pub(super) fn mark_updated(&self, uri: String) {
        if let Some(response_cache) = self.cache.get() {
            response_cache.invalidate_uri(&uri);
        }
        let mut updated = self.updated.lock().unwrap_or_else(PoisonError::into_inner);
        let too_many = updated.len() >= MAX_UPDATED_URIS || uri.len() > MAX_URI_BYTES;
        if !too_many {
            updated.insert(uri);
        }
        drop(updated);
        self.mark_changed(if too_many { UPDATED | RESOURCES } else { UPDATED });
    }

    /// Marks these lists as changed and invalidates the cache entries of their items.
    pub(super) fn mark_changed(&self, flags: u8) {
        if let Some(response_cache) = self.cache.get() {
            let changed = ListChanges::from_flags(flags);
            response_cache.invalidate_changed(changed.resources, changed.prompts);
        }
        self.set_flags(flags);
    }

    fn set_flags(&self, flags: u8) {
        self.flags.fetch_or(flags, Ordering::Release);
        if flags & TOOLS != 0 {
            self.tool_changes.reported.fetch_add(1, Ordering::Release);
        }
        self.changed.notify_one();
    }

    fn take_updated(&self) -> Vec<String> {
        let mut updated = self.updated.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut *updated).into_iter().collect()
    }

    async fn next(&self) -> ListChanges {
        loop {
            let notification = self.changed.notified();
            let reported = self.tool_changes.reported.load(Ordering::Acquire);
            let flags = self.flags.swap(0, Ordering::Acquire);
            if flags != 0 {
                self.tool_changes.taken.store(reported, Ordering::Release);
                return ListChanges::from_flags(flags);
            }
            notification.await;
        }
    }
}

impl Session {
    /// Sets the cache, whose entries are invalidated as soon as a notification is read, before any
    /// later response.
    pub(crate) fn set_cache(&self, cache: Arc<Cache>) {
        // A session has one cache during its lifetime.
        let _first = self.0.change_notifier.cache.set(cache);
    }

    /// Waits for changes and returns the lists that have changed since the last call.
    pub(crate) async fn changed(&self) -> ListChanges {
        self.0.change_notifier.next().await
    }

    /// Records that the tool changes of the last [`Self::changed`] are handled.
    pub(crate) fn mark_tool_changes_handled(&self) {
        let changes = &self.0.change_notifier.tool_changes;
        changes.handled.send_replace(changes.taken.load(Ordering::Acquire));
    }

    /// Waits until the tool changes that were reported before this call are handled, or the session
    /// is closed.
    pub(crate) async fn tool_changes_handled(&self) {
        let changes = &self.0.change_notifier.tool_changes;
        let reported = changes.reported.load(Ordering::Acquire);
        let mut handled = changes.handled.subscribe();
        tokio::select! {
            biased;
            // `self` holds the sender, so the wait cannot fail.
            _ = handled.wait_for(|count| *count >= reported) => {}
            _ = self.closed() => {}
        }
    }

    /// Returns the resources that have changed since the last call.
    pub(crate) fn take_updated(&self) -> Vec<String> {
        self.0.change_notifier.take_updated()
    }

    /// Waits until the session is re-established without the state of the old session.
    pub(crate) async fn reinitialized(&self) {
        self.0.change_notifier.reinitialized.notified().await;
    }

    /// Waits until the server acknowledges the subscription of this request.
    pub(crate) async fn acknowledged(&self, id: u64) {
        let mut acknowledged = self.0.change_notifier.acknowledged.subscribe();
        // `self` holds the sender, so the wait cannot fail.
        let _ = acknowledged.wait_for(|last| *last == Some(id)).await;
    }

    /// Requests a refresh of lists that may have changed; cached items stay.
    pub(crate) fn request_refresh(&self, lists: ListChanges) {
        let by = if lists.notified { 0 } else { RECHECK_SHIFT };
        let flags = (u8::from(lists.tools) * TOOLS)
            | (u8::from(lists.prompts) * PROMPTS)
            | (u8::from(lists.resources) * RESOURCES);
        self.0.change_notifier.set_flags(flags << by);
    }

    /// Marks all lists as changed.
    pub(crate) fn assume_changed(&self) {
        self.0.change_notifier.mark_all_changed();
    }
}

#[cfg(test)]
mod tests;
