//! Divides a limited resource among the clients of a gateway.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::principal::Principal;

/// The reason why a client gets no more of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The client has its share.
    Own,
    /// All clients together have the maximum.
    Total,
}

/// A maximum for all clients together. The local user can have all of it, since there are no other
/// clients; any other principal can have half of it.
#[derive(Debug)]
pub(crate) struct Quota {
    maximum: usize,
    used: Mutex<Used>,
}

#[derive(Debug, Default)]
struct Used {
    total: usize,
    by_principal: HashMap<Principal, usize>,
}

impl Quota {
    pub(crate) fn new(maximum: usize) -> Arc<Self> {
        Arc::new(Self { maximum, used: Mutex::default() })
    }

    fn used(&self) -> MutexGuard<'_, Used> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the maximum for all clients together.
    pub(crate) fn maximum(&self) -> usize {
        self.maximum
    }

    /// Returns the maximum for one client.
    pub(crate) fn share(&self, principal: &Principal) -> usize {
        if principal.shares_limits() { self.maximum.div_ceil(2) } else { self.maximum }
    }

    /// Returns what all clients use.
    pub(crate) fn total(&self) -> usize {
        self.used().total
    }

    /// Reserves an amount until the reservation is dropped.
    pub(crate) fn reserve(
        self: &Arc<Self>,
        principal: &Principal,
        amount: usize,
    ) -> Result<Reservation, QuotaExceeded> {
        let mut reservation =
            Reservation { quota: self.clone(), principal: principal.clone(), amount: 0 };
        reservation.grow(amount)?;
        Ok(reservation)
    }
}

/// What one client uses of a [`Quota`].
#[derive(Debug)]
pub(crate) struct Reservation {
    quota: Arc<Quota>,
    principal: Principal,
    amount: usize,
}

impl Reservation {
    /// Adds to the reservation; an error changes nothing.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), QuotaExceeded> {
        let maximum = self.quota.maximum;
        let share = self.quota.share(&self.principal);
        let mut used = self.quota.used();
        let own = used.by_principal.get(&self.principal).copied().unwrap_or_default();
        let (own, total) = (own.saturating_add(amount), used.total.saturating_add(amount));
        if total > maximum {
            return Err(QuotaExceeded::Total);
        }
        if own > share {
            return Err(QuotaExceeded::Own);
        }
        used.total = total;
        used.by_principal.insert(self.principal.clone(), own);
        drop(used);
        self.amount += amount;
        Ok(())
    }
}

impl Reservation {
    pub(crate) fn quota(&self) -> &Quota {
        &self.quota
    }

    pub(crate) fn amount(&self) -> usize {
        self.amount
    }

    /// Gives up what exceeds an amount.
    pub(crate) fn shrink_to(&mut self, amount: usize) {
        let excess = self.amount.saturating_sub(amount);
        self.amount -= excess;
        let mut used = self.quota.used();
        used.total = used.total.saturating_sub(excess);
        let Some(own) = used.by_principal.get_mut(&self.principal) else { return };
        *own = own.saturating_sub(excess);
        if *own == 0 {
            used.by_principal.remove(&self.principal);
        }
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.shrink_to(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client reserves all that it can | other clients get the other half |
    /// Isolation
    #[test]
    fn a_client_leaves_half_for_the_others() {
        let quota = Quota::new(4);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let mut held = quota.reserve(&ann, 1).unwrap();
        held.grow(2).unwrap_err();
        held.grow(1).unwrap();
        assert_eq!(held.grow(1), Err(QuotaExceeded::Own));
        held.shrink_to(1);
        held.grow(1).unwrap();
        assert_eq!(quota.reserve(&ann, 1).unwrap_err(), QuotaExceeded::Own);
        let other = quota.reserve(&ben, 2).unwrap();
        assert_eq!(quota.reserve(&Principal::new("cid"), 1).unwrap_err(), QuotaExceeded::Total);
        drop((held, other));
        assert!(quota.used().by_principal.is_empty(), "nothing stays of clients that left");
    }

    #[test]
    fn the_local_user_can_have_everything_and_no_more() {
        let quota = Quota::new(3);
        let held = quota.reserve(&Principal::local_user(), 3).unwrap();
        let one_more = quota.reserve(&Principal::local_user(), 1);
        assert_eq!(one_more.unwrap_err(), QuotaExceeded::Total);
        drop(held);
        assert!(quota.reserve(&Principal::local_user(), 3).is_ok());
    }
}
