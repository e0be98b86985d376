//! Ids of work that the server may still process although no caller waits for it.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::Hash;

use foldhash::quality::RandomState;
use tokio::time::Instant;

/// Maximum number of remembered ids. With more, the work counts as open until the last of the
/// further ids expires.
pub(super) const MAX_OPEN_IDS: usize = 256;

/// Ids of work that the server may still process, each with the time at which it expires.
#[derive(Debug)]
pub(super) struct OpenIds<K> {
    expiry_by_id: HashMap<K, Instant, RandomState>,
    overflow_expiry: Option<Instant>,
}

impl<K> Default for OpenIds<K> {
    fn default() -> Self {
        Self { expiry_by_id: HashMap::default(), overflow_expiry: None }
    }
}

impl<K: Eq + Hash> OpenIds<K> {
    pub(super) fn insert(&mut self, id: K, expiry: Instant) {
        self.remove_expired();
        if self.expiry_by_id.len() < MAX_OPEN_IDS {
            self.expiry_by_id.insert(id, expiry);
        } else {
            self.overflow_expiry = self.overflow_expiry.max(Some(expiry));
        }
    }

    /// Removes an id whose work has ended.
    pub(super) fn remove<Q: Eq + Hash + ?Sized>(&mut self, id: &Q)
    where
        K: Borrow<Q>,
    {
        self.expiry_by_id.remove(id);
    }

    fn remove_expired(&mut self) {
        let now = Instant::now();
        self.expiry_by_id.retain(|_, expiry| *expiry > now);
        self.overflow_expiry = self.overflow_expiry.filter(|expiry| *expiry > now);
    }

    pub(super) fn is_empty(&mut self) -> bool {
        self.remove_expired();
        self.expiry_by_id.is_empty() && self.overflow_expiry.is_none()
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
        (0..MAX_OPEN_IDS as u64).for_each(|id| open.insert(id, expiry));
        assert!(open.overflow_expiry.is_none(), "the limit is not exceeded");
        open.insert(1000, expiry + Duration::from_secs(1));
        open.insert(1001, expiry);
        assert_eq!(open.expiry_by_id.len(), MAX_OPEN_IDS);
        tokio::time::advance(Duration::from_secs(10)).await;
        assert!(!open.is_empty(), "the work with the id 1000 is not expired");
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(open.is_empty());
    }
}
