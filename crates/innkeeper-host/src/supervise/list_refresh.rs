//! Refreshes the lists of a server after change notifications.

use std::sync::Arc;
use std::time::Duration;

use innkeeper_protocol::Era;
use innkeeper_protocol::view::ServerCapabilities;
use tokio::time::{Instant, sleep};

use crate::backoff;
use crate::catalog::CatalogEntry;
use crate::connection::listing::{ListFailure, ServerListing};
use crate::connection::{listing, subscriptions};
use crate::error::{CallError, UnavailableReason};
use crate::event::HostEvent;
use crate::registry::Registry;
use crate::server::Server;
use crate::session::{ListChanges, Session};

/// Minimum interval between two refreshes.
const MIN_REFRESH_INTERVAL: Duration = Duration::from_millis(250);

/// Number of consecutive refreshes before the backoff starts to double: enough for a server that
/// completes its setup, too few for a server that sends a change after every refresh.
const REFRESHES_BEFORE_BACKOFF: u32 = 8;

/// Maximum backoff, so that later changes are still found within a few seconds.
const MAX_BACKOFF: Duration = Duration::from_secs(5);

/// Handles the change notifications of a server until its session closes.
pub(crate) async fn follow_changes(
    registry: Arc<Registry>,
    server: Arc<Server>,
    session: Session,
    capabilities: ServerCapabilities,
) {
    let Some(catalog_entry) = server.status().entry.clone() else { return };
    let connection = catalog_entry.connection.clone();
    drop(catalog_entry);
    tokio::select! {
        biased;
        _ = session.closed() => {}
        () = refresh_on_change(&registry, &server, &session, &capabilities) => {}
        () = async {
            match connection.negotiated.revision.era() {
                Era::Legacy => {
                    let limit = server.config().calls.timeout;
                    subscriptions::resubscribe(&connection, limit).await;
                }
                // The subscription was started before the lists were fetched.
                Era::Modern => std::future::pending().await,
            }
        } => {}
    }
}

/// The backoff after each refresh.
#[derive(Debug, Default)]
struct RefreshBackoff {
    consecutive_refreshes: u32,
}

impl RefreshBackoff {
    /// Returns the backoff after a refresh that followed a quiet period of this length.
    fn backoff(&mut self, quiet: Duration) -> Duration {
        let is_consecutive = quiet < MIN_REFRESH_INTERVAL;
        self.consecutive_refreshes =
            if is_consecutive { self.consecutive_refreshes.saturating_add(1) } else { 0 };
        let doublings = self.consecutive_refreshes.saturating_sub(REFRESHES_BEFORE_BACKOFF);
        backoff::doubled(MIN_REFRESH_INTERVAL, doublings, MAX_BACKOFF)
    }
}

/// Returns whether a backoff is between its minimum and its maximum, and so worth a warning.
fn is_growing(delay: Duration) -> bool {
    delay > MIN_REFRESH_INTERVAL && delay < MAX_BACKOFF
}

/// Maximum number of consecutive retries of a failed refresh, until the server reports the next
/// change.
const MAX_FAILURES: u32 = 5;

/// Backoff before the first retry; increases by this amount with each retry.
const FAILURE_BACKOFF: Duration = Duration::from_secs(1);

/// The number of consecutive retries of failed refreshes.
#[derive(Debug, Default)]
struct RefreshRetries(u32);

impl RefreshRetries {
    /// Returns the delay before a retry; `None` without a retry.
    fn next_delay(&mut self, outcome: &RefreshOutcome) -> Option<Duration> {
        let is_retried = matches!(outcome, RefreshOutcome::RetryLater) && self.0 < MAX_FAILURES;
        self.0 = if is_retried { self.0 + 1 } else { 0 };
        is_retried.then(|| FAILURE_BACKOFF * self.0)
    }
}

/// Refreshes a server's lists when it reports a change: the first time at once, then at most four
/// times a second, less often if changes continue, and never two refreshes concurrently. An expired
/// list makes a new catalog only if its items changed.
async fn refresh_on_change(
    registry: &Registry,
    server: &Server,
    session: &Session,
    capabilities: &ServerCapabilities,
) {
    let mut pace = RefreshBackoff::default();
    let mut retries = RefreshRetries::default();
    loop {
        let waiting = Instant::now();
        let change = session.changed().await;
        let started = Instant::now();
        let mut delay = MIN_REFRESH_INTERVAL;
        let Some(catalog_entry) = server.status().entry.clone() else { return };
        for uri in session.take_updated() {
            let server = server.name.clone();
            registry.events().publish(HostEvent::ResourceUpdated { server, uri });
        }
        if change != ListChanges::default() {
            let read = refresh_lists(registry, server, &catalog_entry, capabilities, change).await;
            session.mark_tool_changes_handled();
            delay = pace.backoff(started - waiting);
            if let Some(retry_delay) = retries.next_delay(&read) {
                // The cached lists are outdated.
                sleep(retry_delay).await;
                session.request_refresh(change);
            }
            if is_growing(delay) {
                let pause_s = delay.as_secs_f64();
                tracing::warn!(
                    server = &*server.name,
                    pause_s,
                    "lists change continuously; refresh throttled"
                );
            }
        }
        sleep(delay.saturating_sub(started.elapsed())).await;
    }
}

enum RefreshOutcome {
    Complete,
    /// The refresh failed and can be retried.
    RetryLater,
    /// The lists are not accessible, and a retry cannot help.
    Blocked,
}

async fn refresh_lists(
    registry: &Registry,
    server: &Server,
    entry: &CatalogEntry,
    capabilities: &ServerCapabilities,
    change: ListChanges,
) -> RefreshOutcome {
    let mut excluded = Vec::new();
    let before = entry.full_listing();
    let mut server_listing = before.clone();
    let connection = &entry.connection;
    let limit = server.config().calls.timeout;
    let read = listing::refresh(
        connection,
        capabilities,
        change,
        limit,
        &mut server_listing,
        &mut excluded,
    );
    match read.await {
        Ok(failures)
            if (!change.notified || !failures.is_empty())
                && server_listing.has_same_items(&before) =>
        {
            refresh_outcome(&server.name, &before, &failures)
        }
        Ok(failures) => {
            let next = CatalogEntry::new(
                connection.clone(),
                &server.config(),
                entry.introduction.clone(),
                server_listing,
                &mut excluded,
            );
            listing::report_quarantined(registry.events(), &server.name, &excluded);
            registry.listing_changed(server, next);
            refresh_outcome(&server.name, &before, &failures)
        }
        Err(error) => {
            // An automatic retry must not ask the user to sign in again.
            let person = matches!(
                &error,
                CallError::Unavailable { reason: UnavailableReason::Unauthorized(_), .. }
            );
            let error: &dyn std::error::Error = &error;
            tracing::warn!(server = &*server.name, error, "list refresh failed");
            if person { RefreshOutcome::Blocked } else { RefreshOutcome::RetryLater }
        }
    }
}

/// Reports the lists that could not be read. A list that was missing before needs no retry.
fn refresh_outcome(
    server: &str,
    before: &ServerListing,
    failures: &[ListFailure],
) -> RefreshOutcome {
    let mut outcome = RefreshOutcome::Complete;
    for ListFailure { list, error } in failures {
        let error: &dyn std::error::Error = error;
        if before.missing.iter().any(|missing| missing.list == *list) {
            tracing::debug!(server, list, error, "list still not read");
        } else {
            tracing::warn!(server, list, error, "list refresh failed");
            outcome = RefreshOutcome::RetryLater;
        }
    }
    outcome
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::connection::listing::MissingList;

    /// Fault 39.
    #[test]
    fn the_backoff_grows_while_a_server_changes_its_lists_without_end_and_not_before() {
        let mut pace = RefreshBackoff::default();
        let mut delays = |quiet: u64, count: usize| -> Vec<u128> {
            let quiet = Duration::from_millis(quiet);
            (0..count).map(|_| pace.backoff(quiet).as_millis()).collect()
        };
        assert_eq!(delays(60_000, 1), [250]);
        assert_eq!(delays(0, 8), [250; 8]);
        assert_eq!(delays(249, 7), [500, 1000, 2000, 4000, 5000, 5000, 5000]);
        assert_eq!(delays(0, 40)[39], 5000);
        assert_eq!(delays(250, 1), [250], "a quiet moment and all is as before");
    }

    #[test]
    fn a_backoff_is_reported_while_it_grows() {
        let millisecond = Duration::from_millis(1);
        for (delay, expected) in [
            (MIN_REFRESH_INTERVAL, false),
            (MIN_REFRESH_INTERVAL + millisecond, true),
            (MAX_BACKOFF - millisecond, true),
            (MAX_BACKOFF, false),
        ] {
            assert_eq!(is_growing(delay), expected, "{delay:?}");
        }
    }

    #[test]
    fn a_refresh_is_retried_five_times_in_a_row_after_growing_delays() {
        let mut retries = RefreshRetries::default();
        let mut delays = |outcomes: &mut dyn Iterator<Item = RefreshOutcome>| -> Vec<Option<u64>> {
            outcomes.map(|outcome| Some(retries.next_delay(&outcome)?.as_secs())).collect()
        };
        let failures = |count| std::iter::repeat_with(|| RefreshOutcome::RetryLater).take(count);
        let all = [Some(1), Some(2), Some(3), Some(4), Some(5), None, Some(1)];
        assert_eq!(delays(&mut failures(7)), all);
        for end in [RefreshOutcome::Complete, RefreshOutcome::Blocked] {
            assert_eq!(delays(&mut std::iter::once(end)), [None]);
            assert_eq!(delays(&mut failures(1)), [Some(1)]);
        }
    }

    #[test]
    fn a_list_that_was_missing_before_needs_no_retry_and_another_does() {
        let missing = MissingList { list: "prompts/list", reason: "no".to_owned() };
        let before = ServerListing { missing: vec![missing], ..ServerListing::default() };
        let outcome = |lists: &[&'static str]| {
            let error = || CallError::Timeout {
                server: "fx".into(),
                item: "list".into(),
                timeout: Duration::from_secs(1),
                is_total: false,
            };
            let failures = lists.iter().map(|list| ListFailure { list, error: error() });
            refresh_outcome("fx", &before, &failures.collect::<Vec<_>>())
        };
        let is_complete = |lists| matches!(outcome(lists), RefreshOutcome::Complete);
        assert!(is_complete(&[]) && is_complete(&["prompts/list"]));
        assert!(!is_complete(&["tools/list"]) && !is_complete(&["prompts/list", "tools/list"]));
    }
}
