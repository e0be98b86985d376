//! The permits for concurrent calls of one server (`maxConcurrent`), shared among remote clients.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foldhash::quality::RandomState;
use tokio::sync::oneshot;
use tokio::time::{Instant, timeout_at};

use crate::session::Caller;

/// A principal with a limited share has at most this many times the permits that are free, so that a
/// principal without a call finds one: three quarters of all permits for one principal alone, three
/// sevenths for each of two.
const MAX_SHARE_OF_FREE: usize = 3;

/// The permits of a server. The next permit goes to the principal with the fewest calls; among equal
/// principals, to each in turn.
#[derive(Debug)]
pub(crate) struct CallPermits(Mutex<PermitTable>);

#[derive(Debug)]
struct PermitTable {
    free: usize,
    without_principal: PrincipalCalls,
    principals: HashMap<Arc<str>, PrincipalCalls, RandomState>,
    /// The number of the last ticket or grant.
    last_number: u64,
}

/// The calls of one principal, or of the application itself.
#[derive(Debug, Default)]
struct PrincipalCalls {
    running: usize,
    /// The number of the last permit that a call waited for.
    last_granted: u64,
    /// The calls that wait, by ticket: in their order.
    waiting: BTreeMap<u64, WaitingCall>,
}

#[derive(Debug)]
struct WaitingCall {
    has_limited_share: bool,
    granted: oneshot::Sender<()>,
}

impl PermitTable {
    /// Returns whether a principal with this many calls may start another.
    fn is_permitted(&self, running: usize, has_limited_share: bool) -> bool {
        let Some(free_then) = self.free.checked_sub(1) else { return false };
        !has_limited_share || running == 0 || running < MAX_SHARE_OF_FREE.saturating_mul(free_then)
    }

    /// Gives free permits to waiting calls.
    fn grant(&mut self) {
        loop {
            let principals =
                self.principals.iter().map(|(principal, calls)| (Some(principal), calls));
            let waiting = principals.chain([(None, &self.without_principal)]).filter_map(
                |(principal, calls)| {
                    let (ticket, first) = calls.waiting.first_key_value()?;
                    let permitted = self.is_permitted(calls.running, first.has_limited_share);
                    permitted.then_some(((calls.running, calls.last_granted, *ticket), principal))
                },
            );
            let next = waiting.min_by_key(|(order, _)| *order);
            let Some(((_, _, ticket), principal)) =
                next.map(|(order, next)| (order, next.cloned()))
            else {
                return;
            };
            let grant_number = self.next_number();
            let Some(calls) = self.calls_mut(principal.as_ref()) else { return };
            let Some(call) = calls.waiting.remove(&ticket) else { return };
            calls.running += 1;
            calls.last_granted = grant_number;
            self.free -= 1;
            // A call that ended in the meantime finds its ticket gone, and returns the permit.
            let _ = call.granted.send(());
        }
    }

    fn next_number(&mut self) -> u64 {
        self.last_number += 1;
        self.last_number
    }

    /// Returns the calls of a principal that has some, or those without a principal.
    fn calls_mut(&mut self, principal: Option<&Arc<str>>) -> Option<&mut PrincipalCalls> {
        match principal {
            None => Some(&mut self.without_principal),
            Some(principal) => self.principals.get_mut(principal),
        }
    }

    /// Like [`Self::calls_mut`], for a call to be added.
    fn entry(&mut self, principal: Option<&Arc<str>>) -> &mut PrincipalCalls {
        match principal {
            None => &mut self.without_principal,
            Some(principal) => self.principals.entry(principal.clone()).or_default(),
        }
    }

    fn release(&mut self, principal: Option<&Arc<str>>) {
        self.free += 1;
        if let Some(calls) = self.calls_mut(principal) {
            calls.running = calls.running.saturating_sub(1);
        }
        self.remove_unused(principal);
        self.grant();
    }

    fn remove_unused(&mut self, principal: Option<&Arc<str>>) {
        let Some(principal) = principal else { return };
        if let Some(calls) = self.principals.get(principal)
            && calls.running == 0
            && calls.waiting.is_empty()
        {
            self.principals.remove(principal);
        }
    }
}

impl CallPermits {
    pub(crate) fn new(maximum: usize) -> Self {
        Self(Mutex::new(PermitTable {
            free: maximum,
            without_principal: PrincipalCalls::default(),
            principals: HashMap::default(),
            last_number: 0,
        }))
    }

    fn table(&self) -> MutexGuard<'_, PermitTable> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a permit until the deadline.
    pub(super) async fn acquire(
        &self,
        caller: Option<&Caller>,
        deadline: Instant,
    ) -> Option<RequestPermit<'_>> {
        let principal = caller.and_then(|caller| caller.principal.clone());
        let has_limited_share = caller.is_some_and(|caller| caller.has_limited_share);
        let (mut waiting, granted) = {
            let mut table = self.table();
            let running = table.calls_mut(principal.as_ref()).map_or(0, |calls| calls.running);
            // A call that waits may not start now, so nothing is overtaken.
            if table.is_permitted(running, has_limited_share) {
                table.free -= 1;
                table.entry(principal.as_ref()).running += 1;
                return Some(RequestPermit { permits: self, principal, waited: false });
            }
            let (granted, receiver) = oneshot::channel();
            let ticket = table.next_number();
            let calls = table.entry(principal.as_ref());
            calls.waiting.insert(ticket, WaitingCall { has_limited_share, granted });
            let waiting =
                Ticket { permits: self, principal: principal.clone(), ticket: Some(ticket) };
            (waiting, receiver)
        };
        timeout_at(deadline, granted).await.ok()?.ok()?;
        waiting.ticket = None;
        Some(RequestPermit { permits: self, principal, waited: true })
    }

    #[cfg(test)]
    pub(super) fn available(&self) -> usize {
        self.table().free
    }
}

/// The place of a call that waits. The end of the wait frees the place, or the permit that the call
/// got meanwhile.
struct Ticket<'a> {
    permits: &'a CallPermits,
    principal: Option<Arc<str>>,
    /// `None` once the call uses its permit.
    ticket: Option<u64>,
}

impl Drop for Ticket<'_> {
    fn drop(&mut self) {
        let Some(ticket) = self.ticket else { return };
        let mut table = self.permits.table();
        let calls = table.calls_mut(self.principal.as_ref());
        match calls.and_then(|calls| calls.waiting.remove(&ticket)) {
            Some(_) => {
                table.remove_unused(self.principal.as_ref());
                // The next call of the principal may have another share.
                table.grant();
            }
            None => table.release(self.principal.as_ref()),
        }
    }
}

/// A permit for one concurrent request to the server.
pub(super) struct RequestPermit<'a> {
    permits: &'a CallPermits,
    principal: Option<Arc<str>>,
    /// Whether the request had to wait.
    pub(super) waited: bool,
}

impl Drop for RequestPermit<'_> {
    fn drop(&mut self) {
        self.permits.table().release(self.principal.as_ref());
    }
}

#[cfg(test)]
mod tests;
