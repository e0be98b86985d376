//! Ids of work that the server may still process although no caller waits for it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;
use tokio::time::Instant;

/// Maximum number of remembered ids. With more, the work counts as open until the last of the
/// further ids expires.
pub(super) const MAX_OPEN_IDS: usize = 256;

/// Ids of work that the server may still process, each with the time at which it expires and with a
/// value that is held until then.
#[derive(Debug)]
pub(super) struct OpenIds<K, V = ()> {
    open_by_id: HashMap<K, (Instant, V), RandomState>,
    overflow_expiry: Option<Instant>,
}

impl<K, V> Default for OpenIds<K, V> {
    fn default() -> Self {
        Self { open_by_id: HashMap::default(), overflow_expiry: None }
    }
}

impl<K: Eq + Hash, V> OpenIds<K, V> {
    /// Adds an id. Returns the value if there are too many ids to remember it.
    #[must_use]
    pub(super) fn insert(&mut self, id: K, expiry: Instant, value: V) -> Option<V> {
        self.remove_expired();
        if self.open_by_id.len() < MAX_OPEN_IDS {
            self.open_by_id.insert(id, (expiry, value));
            None
        } else {
            self.overflow_expiry = self.overflow_expiry.max(Some(expiry));
            Some(value)
        }
    }

    /// Removes an id whose work has ended.
    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, id: &Q)
    where
        K: Borrow<Q>,
    {
        self.open_by_id.remove(id);
    }

    pub(super) fn remove_expired(&mut self) {
        let now = Instant::now();
        self.open_by_id.retain(|_, (expiry, _)| *expiry > now);
        self.overflow_expiry = self.overflow_expiry.filter(|expiry| *expiry > now);
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.remove_expired();
        self.open_by_id.is_empty() && self.overflow_expiry.is_none()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn ids_over_the_limit_expire_together_with_the_last_of_them() {
        let mut open = OpenIds::default();
        let expiry = Instant::now() + Duration::from_secs(10);
        let remembered = (0..MAX_OPEN_IDS as u64).all(|id| open.insert(id, expiry, id).is_none());
        assert!(remembered && open.overflow_expiry.is_none(), "the limit is not exceeded");
        assert_eq!(open.insert(1000, expiry + Duration::from_secs(1), 1000), Some(1000));
        assert_eq!(open.insert(1001, expiry, 1001), Some(1001));
        assert_eq!(open.open_by_id.len(), MAX_OPEN_IDS);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!open.is_empty(), "the work with the id 1000 is not expired");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(open.is_empty());
    }
}
