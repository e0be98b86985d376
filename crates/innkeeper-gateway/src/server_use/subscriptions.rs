//! The subscriptions of all clients at one server.
//!
//! The server has one subscription for each resource, from its first subscriber to its last. Requests
//! for one resource wait for each other; those for other resources don't, so a server that takes long
//! for one client's resource keeps no other client waiting.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub(crate) struct ResourceSubscriptions(Mutex<HashMap<Box<str>, Resource>>);

#[derive(Debug, Default)]
struct Resource {
    subscribers: Arc<tokio::sync::Mutex<usize>>,
    /// The requests in progress.
    users: usize,
}

#[derive(Debug)]
pub(crate) struct ResourceUse<'a> {
    owner: &'a ResourceSubscriptions,
    uri: &'a str,
    /// The number of subscribers; locked while the server is asked.
    pub(crate) subscribers: Arc<tokio::sync::Mutex<usize>>,
}

impl ResourceSubscriptions {
    fn all(&self) -> MutexGuard<'_, HashMap<Box<str>, Resource>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns whether no resource has a subscriber, and none is about to get one.
    pub(crate) fn is_empty(&self) -> bool {
        self.all().is_empty()
    }

    pub(crate) fn uris(&self) -> Vec<Box<str>> {
        self.all().keys().cloned().collect()
    }

    /// Starts a request for a resource.
    pub(crate) fn resource<'a>(&'a self, uri: &'a str) -> ResourceUse<'a> {
        let mut all = self.all();
        let resource = all.entry(uri.into()).or_default();
        resource.users += 1;
        ResourceUse { owner: self, uri, subscribers: resource.subscribers.clone() }
    }
}

impl Drop for ResourceUse<'_> {
    fn drop(&mut self) {
        let mut all = self.owner.all();
        let Some(resource) = all.get_mut(self.uri) else { return };
        resource.users -= 1;
        let is_unused = resource.users == 0
            && resource.subscribers.try_lock().is_ok_and(|subscribers| *subscribers == 0);
        if is_unused {
            all.remove(self.uri);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// Attack: remote | a client subscribes to a resource for which the server takes long | requests of
    /// others for other resources don't wait | Isolation
    #[tokio::test]
    async fn requests_for_different_resources_do_not_wait_for_each_other() {
        let subscriptions = ResourceSubscriptions::default();
        let slow = subscriptions.resource("x://slow");
        let _asking = slow.subscribers.lock().await;
        let other = subscriptions.resource("x://other");
        assert!(other.subscribers.lock().now_or_never().is_some());
        let same = subscriptions.resource("x://slow");
        assert!(same.subscribers.lock().now_or_never().is_none(), "one request after the other");
    }

    #[tokio::test]
    async fn a_resource_without_subscribers_and_requests_leaves_nothing() {
        let subscriptions = ResourceSubscriptions::default();
        let first = subscriptions.resource("x://a");
        *first.subscribers.lock().await = 1;
        drop(first);
        assert_eq!(subscriptions.uris(), [Box::<str>::from("x://a")]);
        let (last, cancelled) = (subscriptions.resource("x://a"), subscriptions.resource("x://b"));
        *last.subscribers.lock().await = 0;
        drop((last, cancelled));
        assert!(subscriptions.is_empty());
    }
}
