//! The resource subscriptions of an application.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexSet;
use innkeeper_protocol::method;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::log_level;
use crate::backoff::ReopenBackoff;
use crate::connection::Connection;
use crate::error::CallErrorKind;

/// Maximum number of subscribed resources per server.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1024;

/// The set of subscribed resources.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    uris: Mutex<IndexSet<String>>,
    changed: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SubscribeOutcome {
    /// The subscription changed.
    Changed,
    /// The subscription was already in this state.
    Unchanged,
    /// The limit is reached; the subscription did not change.
    TooMany,
}

impl Subscriptions {
    fn uris(&self) -> MutexGuard<'_, IndexSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or removes a resource.
    pub(crate) fn set(&self, uri: &str, subscribed: bool) -> SubscribeOutcome {
        let mut uris = self.uris();
        let anew = match subscribed {
            true if uris.len() >= MAX_SUBSCRIPTIONS && !uris.contains(uri) => {
                return SubscribeOutcome::TooMany;
            }
            true => uris.insert(uri.to_owned()),
            false => uris.shift_remove(uri),
        };
        if !anew {
            return SubscribeOutcome::Unchanged;
        }
        self.changed.notify_one();
        SubscribeOutcome::Changed
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.uris().iter().cloned().collect()
    }

    fn has(&self, uri: &str) -> bool {
        self.uris().contains(uri)
    }

    /// Waits until a subscription was added or removed since the last call.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Renews the log level and all subscriptions whenever the session with a server of the legacy era is re-established;
/// each request may take `limit`.
pub(crate) async fn resubscribe(connection: &Connection, limit: Duration) {
    let mut backoff = ReopenBackoff::default();
    let mut remaining = Vec::new();
    let mut started = Instant::now();
    loop {
        if remaining.is_empty() {
            connection.session.reinitialized().await;
            log_level::renew(connection);
            remaining = connection.freshness.subscriptions.all();
            remaining.reverse();
        }
        backoff.record_attempt(started.elapsed());
        started = Instant::now();
        while let Some(uri) = remaining.pop() {
            // The application may have unsubscribed in the meantime.
            if !connection.freshness.subscriptions.has(&uri) {
                continue;
            }
            let params = json!({ "uri": uri });
            let result =
                connection.request_internal(method::RESOURCES_SUBSCRIBE, &params, limit).await;
            let kind = result.as_ref().map_or_else(|error| Some(error.kind()), |_| None);
            // A rejected subscription would be rejected again; on an unavailable server all would
            // fail.
            if matches!(kind, Some(CallErrorKind::Unavailable | CallErrorKind::Timeout)) {
                remaining.push(uri);
                break;
            }
        }
        sleep(backoff.delay()).await;
    }
}

#[cfg(test)]
mod tests;
