//! The limits of the open requests of one server: per principal, and in total.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};

/// Maximum number of concurrent requests for the model or the user of the application. A principal
/// has no such limit: its client orders the requests, and a request that the client abandoned must
/// not delay the next.
const MAX_CONCURRENT_REQUESTS: usize = 4;

/// Maximum number of queued requests; more requests indicate a faulty server. A principal has at most
/// as many open requests as run and wait without a principal.
const MAX_QUEUED_REQUESTS: usize = 16;

/// Maximum number of queued elicitations for the user of the application; further elicitations are
/// declined.
const MAX_QUEUED_ELICITATIONS: usize = 4;

/// Maximum number of open requests per server, for all principals: three principals with all their
/// requests, or sixteen with four each.
const MAX_OPEN_REQUESTS: usize = 64;

/// The limit that a request exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotError {
    TooManyRequests,
    TooManyElicitations,
}

/// The open requests of one server.
#[derive(Debug, Default)]
pub(super) struct RequestSlots {
    slots: Mutex<Slots>,
}

#[derive(Debug, Default)]
struct Slots {
    open_count: usize,
    /// Only principals with open requests. `None` has the requests without a principal.
    by_principal: HashMap<Option<Arc<str>>, PrincipalSlots>,
}

#[derive(Debug)]
struct PrincipalSlots {
    open_count: usize,
    elicitation_count: usize,
    permits: Arc<Permits>,
}

impl Default for PrincipalSlots {
    fn default() -> Self {
        let requests = Semaphore::new(MAX_CONCURRENT_REQUESTS);
        let permits = Arc::new(Permits { requests, elicitation: Semaphore::new(1) });
        Self { open_count: 0, elicitation_count: 0, permits }
    }
}

#[derive(Debug)]
struct Permits {
    requests: Semaphore,
    /// Permit for one elicitation at a time, because a user reads one at a time.
    elicitation: Semaphore,
}

impl RequestSlots {
    fn lock(&self) -> MutexGuard<'_, Slots> {
        self.slots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_busy(&self) -> bool {
        self.lock().open_count > 0
    }

    /// Counts a request of a principal as open until the slot is dropped. `asks_one_user` is whether
    /// the user of the application answers.
    pub(super) fn open(
        self: &Arc<Self>,
        principal: Option<Arc<str>>,
        is_elicitation: bool,
        asks_one_user: bool,
    ) -> Result<RequestSlot, SlotError> {
        let mut slots = self.lock();
        let Slots { open_count, by_principal } = &mut *slots;
        if let Some(own) = by_principal.get(&principal) {
            if asks_one_user && is_elicitation && own.elicitation_count > MAX_QUEUED_ELICITATIONS {
                return Err(SlotError::TooManyElicitations);
            }
            if own.open_count >= MAX_CONCURRENT_REQUESTS + MAX_QUEUED_REQUESTS {
                return Err(SlotError::TooManyRequests);
            }
        }
        if *open_count >= MAX_OPEN_REQUESTS {
            return Err(SlotError::TooManyRequests);
        }
        *open_count += 1;
        let of_principal = by_principal.entry(principal.clone()).or_default();
        of_principal.open_count += 1;
        of_principal.elicitation_count += usize::from(is_elicitation);
        let permits = of_principal.permits.clone();
        Ok(RequestSlot { slots: self.clone(), principal, is_elicitation, asks_one_user, permits })
    }
}

#[derive(Debug)]
pub(super) struct RequestSlot {
    slots: Arc<RequestSlots>,
    principal: Option<Arc<str>>,
    is_elicitation: bool,
    asks_one_user: bool,
    permits: Arc<Permits>,
}

impl RequestSlot {
    /// Waits until the application may handle the request.
    pub(super) async fn turn(&self) -> RequestTurn<'_> {
        if !self.asks_one_user {
            return RequestTurn { _user: None, _request: None };
        }
        let Permits { requests, elicitation } = &*self.permits;
        // The semaphores are never closed.
        let user = if self.is_elicitation { elicitation.acquire().await.ok() } else { None };
        RequestTurn { _user: user, _request: requests.acquire().await.ok() }
    }
}

impl Drop for RequestSlot {
    fn drop(&mut self) {
        let mut slots = self.slots.lock();
        slots.open_count -= 1;
        let Some(of_principal) = slots.by_principal.get_mut(&self.principal) else { return };
        of_principal.open_count -= 1;
        of_principal.elicitation_count -= usize::from(self.is_elicitation);
        if of_principal.open_count == 0 {
            slots.by_principal.remove(&self.principal);
        }
    }
}

/// The permits of a request that the application handles.
#[derive(Debug)]
pub(super) struct RequestTurn<'a> {
    _user: Option<SemaphorePermit<'a>>,
    _request: Option<SemaphorePermit<'a>>,
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn open(slots: &Arc<RequestSlots>, principal: &str, count: usize) -> Vec<RequestSlot> {
        (0..count)
            .map(|_| slots.open(Some(principal.into()), false, false))
            .collect::<Result<_, _>>()
            .unwrap()
    }

    #[test]
    fn a_principal_has_twenty_open_requests_and_the_server_sixty_four() {
        let slots = Arc::<RequestSlots>::default();
        let mut open_slots = open(&slots, "a", 20);
        let error = slots.open(Some("a".into()), false, false).unwrap_err();
        assert_eq!(error, SlotError::TooManyRequests);
        for (principal, count) in [("b", 20), ("c", 20), ("d", 4)] {
            open_slots.extend(open(&slots, principal, count));
        }
        for principal in [None, Some("d".into())] {
            let error = slots.open(principal, false, false).unwrap_err();
            assert_eq!(error, SlotError::TooManyRequests);
        }
        open_slots.truncate(20);
        open(&slots, "b", 20);
        drop(open_slots);
        assert!(!slots.is_busy());
        assert!(slots.lock().by_principal.is_empty(), "a principal without requests is forgotten");
    }

    #[test]
    fn the_application_has_four_turns_and_one_elicitation_and_a_principal_has_all_at_once() {
        let slots = Arc::<RequestSlots>::default();
        let now = |slot: &'_ RequestSlot| slot.turn().now_or_never().is_some();
        let open = |is_elicitation| slots.open(None, is_elicitation, true);
        let elicitations: Vec<_> = (0..5).map(|_| open(true).unwrap()).collect();
        assert_eq!(open(true).unwrap_err(), SlotError::TooManyElicitations);
        let others: Vec<_> = (0..4).map(|_| open(false).unwrap()).collect();
        let of_principal = || slots.open(Some("b".into()), true, false).unwrap();
        let of_principal: Vec<_> = (0..20).map(|_| of_principal()).collect();
        let mut turns = vec![elicitations[0].turn().now_or_never().unwrap()];
        assert!(!now(&elicitations[1]), "a user reads one elicitation at a time");
        turns.extend(others[..3].iter().map(|slot| slot.turn().now_or_never().unwrap()));
        assert!(!now(&others[3]), "four requests run");
        turns.extend(of_principal.iter().map(|slot| slot.turn().now_or_never().unwrap()));
        let error = slots.open(Some("b".into()), true, false).unwrap_err();
        assert_eq!(error, SlotError::TooManyRequests);
        drop(turns);
        assert!(now(&elicitations[1]) && now(&others[3]));
    }

    #[test]
    fn a_request_of_an_unknown_client_does_not_wait_for_the_user_of_the_application() {
        let slots = Arc::<RequestSlots>::default();
        let open = || slots.open(None, true, false);
        let open: Vec<_> = (0..20).map(|_| open().unwrap()).collect();
        let turns: Vec<_> = open.iter().filter_map(|slot| slot.turn().now_or_never()).collect();
        assert_eq!(turns.len(), 20);
    }

    #[test]
    fn an_elicitation_that_ended_counts_no_more_while_other_requests_are_open() {
        let slots = Arc::<RequestSlots>::default();
        let _other = slots.open(None, false, true).unwrap();
        for _ in 0..2 * MAX_QUEUED_ELICITATIONS {
            let _ = slots.open(None, true, true).unwrap();
        }
        let open: Vec<_> =
            (0..=MAX_QUEUED_ELICITATIONS).map(|_| slots.open(None, true, true)).collect();
        assert!(open.iter().all(Result::is_ok));
        assert_eq!(slots.open(None, true, true).unwrap_err(), SlotError::TooManyElicitations);
    }
}
