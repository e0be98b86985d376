//! Divides limited resources among the clients of a gateway.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::principal::{LOCAL_ID, Principal};

/// The reason why a client gets no more of a resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum QuotaExceeded {
    /// The client has its share.
    Own,
    /// All clients together have the maximum.
    Total,
}

/// A maximum for all clients together. The local user can have all of it, and is also the owner of
/// what all clients share; any other principal can have half of what the local user leaves.
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

impl Used {
    fn amount(&self, principal: &str) -> usize {
        self.by_principal.get(principal).copied().unwrap_or_default()
    }

    fn share(&self, principal: &Principal, maximum: usize) -> usize {
        match principal.shares_limits() {
            true => maximum.saturating_sub(self.amount(LOCAL_ID)).div_ceil(2),
            false => maximum,
        }
    }
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

    /// Returns the maximum for one client now.
    pub(crate) fn share(&self, principal: &Principal) -> usize {
        self.used().share(principal, self.maximum)
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
    /// Adds to the reservation; an error changes nothing. A client that has its share learns so even if all
    /// clients together have the maximum, which it cannot change.
    pub(crate) fn grow(&mut self, amount: usize) -> Result<(), QuotaExceeded> {
        let maximum = self.quota.maximum;
        let mut used = self.quota.used();
        let own = used.amount(self.principal.id()).saturating_add(amount);
        let total = used.total.saturating_add(amount);
        if self.principal.shares_limits() && own > used.share(&self.principal, maximum) {
            return Err(QuotaExceeded::Own);
        }
        if total > maximum {
            return Err(QuotaExceeded::Total);
        }
        used.total = total;
        used.by_principal.insert(self.principal.clone(), own);
        drop(used);
        self.amount += amount;
        Ok(())
    }

    pub(crate) fn quota(&self) -> &Quota {
        &self.quota
    }

    /// Returns the maximum for the client now.
    pub(crate) fn share(&self) -> usize {
        self.quota.share(&self.principal)
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

/// Returns the position of what makes room in a list that goes from the oldest to the newest: the oldest
/// item of the owner with the most items. So no owner displaces what belongs to others.
pub(crate) fn oldest_of_most<K: Eq + Hash>(owners: impl Iterator<Item = K>) -> Option<usize> {
    let mut by_owner: HashMap<K, (usize, usize)> = HashMap::new();
    for (position, owner) in owners.enumerate() {
        by_owner.entry(owner).or_insert((0, position)).0 += 1;
    }
    let most = by_owner.into_values().max_by_key(|(count, oldest)| (*count, Reverse(*oldest)))?;
    Some(most.1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_owner_with_the_most_makes_room_with_its_oldest() {
        assert_eq!(oldest_of_most(["b", "a", "b", "a", "a"].into_iter()), Some(1));
        assert_eq!(oldest_of_most(["b", "a", "a", "b"].into_iter()), Some(0), "the older of two");
        assert_eq!(oldest_of_most(std::iter::empty::<u8>()), None);
    }

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
        assert_eq!(
            quota.reserve(&ann, 1).unwrap_err(),
            QuotaExceeded::Own,
            "also while all is used"
        );
        assert_eq!(quota.reserve(&Principal::new("cid"), 1).unwrap_err(), QuotaExceeded::Total);
        drop((held, other));
        assert!(quota.used().by_principal.is_empty(), "nothing stays of clients that left");
    }

    /// Attack: remote | a client reserves all that the local user leaves | it gets half of that, and other
    /// clients the other half | Isolation
    #[test]
    fn a_client_has_half_of_what_the_local_user_leaves() {
        let quota = Quota::new(7);
        let shared = quota.reserve(&Principal::local_user(), 4).unwrap();
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let _held = quota.reserve(&ann, 2).unwrap();
        assert_eq!(quota.reserve(&ann, 1).unwrap_err(), QuotaExceeded::Own);
        let _other = quota.reserve(&ben, 1).unwrap();
        drop(shared);
        assert!(quota.reserve(&ann, 2).is_ok(), "more is left");
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
