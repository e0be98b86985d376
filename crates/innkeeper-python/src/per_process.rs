//! State of one process, which its children after `fork` do not share.
//!
//! A child has a copy of its parent's memory and none of its parent's threads. A lock that such a
//! thread held stays locked in the child, so the child must not touch it: it makes state of its own
//! and forgets the copy. To drop the copy would end the parent's servers.

use std::sync::Arc;

use arc_swap::ArcSwapOption;

/// A value of the current process, made at its first use there. Waits for no lock.
pub(crate) struct PerProcess<T>(ArcSwapOption<Owned<T>>);

struct Owned<T> {
    pid: u32,
    value: Arc<T>,
}

impl<T: Default> PerProcess<T> {
    pub(crate) const fn new() -> Self {
        Self(ArcSwapOption::const_empty())
    }

    /// Returns the value, and makes one if this process has none.
    pub(crate) fn get(&self) -> Arc<T> {
        let pid = std::process::id();
        loop {
            let known = self.0.load();
            if let Some(own) = known.as_ref().filter(|known| known.pid == pid) {
                return own.value.clone();
            }
            let new = Arc::new(Owned { pid, value: Arc::new(T::default()) });
            // Another thread may be faster: the next round returns the first one's value.
            let previous = self.0.compare_and_swap(&known, Some(new));
            if let Some(of_parent) = previous.as_ref().filter(|previous| previous.pid != pid) {
                std::mem::forget(of_parent.clone());
            }
        }
    }
}
