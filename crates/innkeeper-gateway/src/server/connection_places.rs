//! Limits the open connections of each principal.
//!
//! Who sends over a connection is known at its first request, and a proxy sends the requests of many
//! principals over one connection. A connection therefore counts for each principal of its requests,
//! from its first request to the end of the connection.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use http::StatusCode;
use tokio::sync::SetOnce;

use crate::principal::Principal;
use crate::rejection::Rejection;

/// Maximum number of principals for which one connection counts: the last ones, so that the memory of
/// a proxy's connection has a bound.
const MAX_PRINCIPALS: usize = 64;

/// The number of open connections by principal.
#[derive(Debug)]
pub(crate) struct PrincipalLimit {
    maximum: usize,
    open: Mutex<HashMap<Principal, usize>>,
}

impl PrincipalLimit {
    /// Creates the limit for a server with `max_connections` in all, of which one principal can have
    /// half.
    pub(super) fn new(max_connections: usize) -> Arc<Self> {
        Arc::new(Self { maximum: max_connections.div_ceil(2), open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<Principal, usize>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a connection. Returns whether the principal has a place for it.
    fn add(&self, principal: &Principal) -> bool {
        let mut open = self.open();
        let count = open.entry(principal.clone()).or_default();
        // Without authentication there is only one principal.
        if principal.shares_limits() && *count >= self.maximum {
            return false;
        }
        *count += 1;
        true
    }

    fn remove(&self, principal: &Principal) {
        let mut open = self.open();
        let Some(count) = open.get_mut(principal) else { return };
        *count = count.saturating_sub(1);
        if *count == 0 {
            open.remove(principal);
        }
    }
}

/// The principals for which one connection counts. Clones share them; the last one ends the count.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPlaces(Arc<Places>);

#[derive(Debug)]
struct Places {
    limit: Arc<PrincipalLimit>,
    /// The principal of the latest first request is the last.
    principals: Mutex<VecDeque<Principal>>,
    /// Set when the only principal of the connection has no place.
    is_refused: SetOnce<()>,
}

impl ConnectionPlaces {
    pub(super) fn new(limit: &Arc<PrincipalLimit>) -> Self {
        let is_refused = SetOnce::new();
        Self(Arc::new(Places { limit: limit.clone(), principals: Mutex::default(), is_refused }))
    }

    /// Counts the connection for the principal of a request.
    ///
    /// # Errors
    ///
    /// Returns the response to the request if the principal has its maximum of connections.
    pub(crate) fn count(&self, principal: &Principal) -> Result<(), Rejection> {
        let Places { limit, principals, is_refused } = &*self.0;
        let mut principals = principals.lock().unwrap_or_else(PoisonError::into_inner);
        if principals.contains(principal) {
            return Ok(());
        }
        if !limit.add(principal) {
            if principals.is_empty() {
                // A second refusal finds the cell set.
                let _ = is_refused.set(());
            }
            let message = format!(
                "this client has {} open connections, its maximum; close one, or send more requests \
                 over each",
                limit.maximum
            );
            return Err(Rejection::new(StatusCode::SERVICE_UNAVAILABLE, message).with_close());
        }
        principals.push_back(principal.clone());
        if principals.len() > MAX_PRINCIPALS
            && let Some(oldest) = principals.pop_front()
        {
            limit.remove(&oldest);
        }
        Ok(())
    }

    /// Waits until the connection has no use: its only principal has no place.
    pub(super) async fn refused(&self) {
        self.0.is_refused.wait().await;
    }
}

impl Drop for Places {
    fn drop(&mut self) {
        let principals = self.principals.get_mut().unwrap_or_else(PoisonError::into_inner);
        for principal in principals.drain(..) {
            self.limit.remove(&principal);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Attack: remote | a client opens connections until none is left | its requests over more than
    /// half of them are refused, and other clients have the rest | Isolation
    #[test]
    fn a_principal_has_at_most_half_of_the_connections() {
        let limit = PrincipalLimit::new(4);
        let connection = || ConnectionPlaces::new(&limit);
        let (ann, ben) = (Principal::new("ann"), Principal::new("ben"));
        let (first, second, third) = (connection(), connection(), connection());
        first.count(&ann).unwrap();
        first.count(&ann).unwrap();
        second.count(&ann).unwrap();
        let refused = third.count(&ann).unwrap_err();
        assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(refused.headers()["connection"], "close");
        assert!(refused.message().contains("2 open connections"), "{}", refused.message());
        assert!(third.0.is_refused.initialized());
        let of_proxy = connection();
        of_proxy.count(&ben).unwrap();
        of_proxy.count(&ann).unwrap_err();
        assert!(!of_proxy.0.is_refused.initialized(), "another client uses the connection");
        let local = [connection(), connection(), connection(), connection()];
        assert!(local.iter().all(|one| one.count(&Principal::local_user()).is_ok()));
        let request = first.clone();
        drop(first);
        third.count(&ann).unwrap_err();
        drop(request);
        third.count(&ann).unwrap();
        drop((second, third, of_proxy, local));
        assert!(limit.open().is_empty(), "nothing stays of clients that left");
    }

    #[test]
    fn a_connection_of_a_proxy_counts_for_its_last_principals() {
        let limit = PrincipalLimit::new(2);
        let (first, second) = (ConnectionPlaces::new(&limit), ConnectionPlaces::new(&limit));
        for number in 0..=MAX_PRINCIPALS {
            first.count(&Principal::new(number.to_string())).unwrap();
        }
        assert_eq!(limit.open().len(), MAX_PRINCIPALS);
        second.count(&Principal::new("0")).unwrap();
        second.count(&Principal::new("1")).unwrap_err();
    }
}
