//! Divides the servers that start at the same time among the principals.
//!
//! The hosts of a gateway share the slots of `host.concurrentStarts`, in the order of their starts. Without
//! turns, a client that starts many slow servers would have all slots, and its next starts would be first in
//! the queue.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use innkeeper_host::StartSlots;
use innkeeper_host::config::HostConfig;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::principal::Principal;

/// The servers that each principal starts at the same time: at most half of all, and at least one.
#[derive(Debug)]
pub(crate) struct StartTurns {
    /// All hosts share the slots.
    slots: StartSlots,
    share: usize,
    principals: Mutex<HashMap<Principal, Weak<Semaphore>>>,
}

impl Default for StartTurns {
    fn default() -> Self {
        Self::new(HostConfig::default().concurrent_starts)
    }
}

impl StartTurns {
    /// Divides this number of concurrent starts.
    pub(crate) fn new(concurrent_starts: usize) -> Self {
        let share = concurrent_starts.div_ceil(2).clamp(1, Semaphore::MAX_PERMITS);
        let slots = StartSlots::new(concurrent_starts);
        Self { slots, share, principals: Mutex::default() }
    }

    /// Returns the slots of all hosts together.
    pub(crate) fn slots(&self) -> StartSlots {
        self.slots.clone()
    }

    /// Waits until a principal can start a server. The local user does not wait. Dropping the future takes
    /// no turn.
    pub(crate) async fn acquire(&self, principal: &Principal) -> Option<StartTurn> {
        if !principal.shares_limits() {
            return None;
        }
        let turns = {
            let mut principals = self.principals.lock().unwrap_or_else(PoisonError::into_inner);
            let known = principals.get(principal).and_then(Weak::upgrade);
            known.unwrap_or_else(|| {
                principals.retain(|_, turns| turns.strong_count() > 0);
                let turns = Arc::new(Semaphore::new(self.share));
                principals.insert(principal.clone(), Arc::downgrade(&turns));
                turns
            })
        };
        turns.acquire_owned().await.ok().map(StartTurn)
    }
}

/// The turn of a principal, until the value is dropped.
#[derive(Debug)]
pub(crate) struct StartTurn(#[expect(dead_code, reason = "keeps the turn")] OwnedSemaphorePermit);

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    /// Attack: remote | a client starts many slow servers at once | half of the concurrent starts remain for
    /// other clients | Isolation
    #[test]
    fn a_client_starts_half_of_the_servers_that_start_at_the_same_time() {
        let turns = StartTurns::new(4);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let take = |principal: &Principal| turns.acquire(principal).now_or_never().flatten();
        let held = [take(&ann), take(&ann)];
        assert!(held.iter().all(Option::is_some));
        assert!(take(&ann).is_none() && take(&ben).is_some());
        drop(held);
        assert!(take(&ann).is_some());
        let known = turns.principals.lock().unwrap().len();
        assert_eq!(known, 1, "nothing stays of clients that start nothing");
        let local = Principal::local_user();
        assert!(turns.acquire(&local).now_or_never().is_some(), "the local user never waits");
    }
}
