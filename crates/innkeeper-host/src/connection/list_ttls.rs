//! Refreshes lists after the time to live that their server reports.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::connection::Connection;
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::session::ListChanges;

/// Minimum interval between two refreshes of an expired list: short enough for a user, and long
/// enough for a server that reports one millisecond.
const MIN_TTL: Duration = Duration::from_secs(1);

/// The expiry time of each list, as far as the server reports one.
#[derive(Debug, Default)]
pub(crate) struct ListTtls {
    expiries: Mutex<ListExpiries>,
    refreshed: Notify,
}

#[derive(Debug, Default)]
struct ListExpiries {
    tools: Option<ListExpiry>,
    prompts: Option<ListExpiry>,
    resources: Option<ListExpiry>,
}

#[derive(Clone, Copy, Debug)]
struct ListExpiry {
    ttl: Duration,
    expires_at: Instant,
}

impl ListExpiry {
    /// Treats a time to live of zero as absent, because it would cause endless refreshes.
    fn from_ttl(reported_ttl: Option<Duration>) -> Option<Self> {
        let reported_ttl = reported_ttl.filter(|reported_ttl| !reported_ttl.is_zero())?;
        let reported_ttl = reported_ttl.clamp(MIN_TTL, MAX_REQUEST_TIMEOUT);
        Some(Self { ttl: reported_ttl, expires_at: Instant::now() + reported_ttl })
    }
}

/// Returns the shorter time to live; `None` means not reported.
pub(super) fn min_ttl(left: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (left, other) {
        (Some(left), Some(other)) => Some(left.min(other)),
        (left, other) => left.or(other),
    }
}

/// Returns the time to live of a result (`ttlMs`).
pub(super) fn result_ttl(result: &RawValue) -> Option<Duration> {
    let hint = skim::member(result.get(), "ttlMs")?;
    hint.parse().ok().map(Duration::from_millis)
}

impl ListTtls {
    fn expiries(&self) -> MutexGuard<'_, ListExpiries> {
        self.expiries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that these lists were fetched now, with their times to live.
    pub(super) fn record_refresh(&self, read: ListChanges, ttl: [Option<Duration>; 3]) {
        let mut lists = self.expiries();
        let ListExpiries { tools, prompts, resources } = &mut *lists;
        let expiries_by_list =
            [(read.tools, tools), (read.prompts, prompts), (read.resources, resources)];
        for ((was_read, age), ttl) in expiries_by_list.into_iter().zip(ttl) {
            if was_read {
                *age = ListExpiry::from_ttl(ttl);
            }
        }
        drop(lists);
        self.refreshed.notify_one();
    }

    fn next_expiry(&self) -> Option<Instant> {
        let lists = self.expiries();
        let all = [lists.tools, lists.prompts, lists.resources];
        all.into_iter().flatten().map(|age| age.expires_at).min()
    }

    /// Returns the expired lists and resets their expiry, so that a failed refresh is followed by
    /// another.
    fn take_expired(&self) -> ListChanges {
        let now = Instant::now();
        let mut lists = self.expiries();
        let old = |age: &mut Option<ListExpiry>| match age {
            Some(age) if age.expires_at <= now => {
                age.expires_at = now + age.ttl;
                true
            }
            Some(_) | None => false,
        };
        ListChanges {
            tools: old(&mut lists.tools),
            prompts: old(&mut lists.prompts),
            resources: old(&mut lists.resources),
            notified: false,
        }
    }
}

/// Requests a refresh of each list that expires.
pub(super) async fn refresh_expired(connection: &Connection) {
    let Connection { list_ttls, session, .. } = connection;
    loop {
        let Some(expiry) = list_ttls.next_expiry() else {
            list_ttls.refreshed.notified().await;
            continue;
        };
        tokio::select! {
            () = sleep_until(expiry) => session.request_refresh(list_ttls.take_expired()),
            () = list_ttls.refreshed.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: ListChanges =
        ListChanges { tools: true, prompts: true, resources: true, notified: true };

    fn millis(millis: u64) -> Option<Duration> {
        Some(Duration::from_millis(millis))
    }

    #[tokio::test(start_paused = true)]
    async fn a_list_expires_after_its_ttl_and_a_second_at_least_and_never_without_one() {
        let ages = ListTtls::default();
        ages.record_refresh(ALL, [None, millis(0), None]);
        assert_eq!(ages.next_expiry(), None);
        ages.record_refresh(ALL, [millis(1), millis(5000), millis(u64::MAX)]);
        assert_eq!(ages.next_expiry(), Some(Instant::now() + MIN_TTL));
        assert_eq!(ages.take_expired(), ListChanges::default());
        tokio::time::advance(MIN_TTL).await;
        let tools = ListChanges { tools: true, ..ListChanges::default() };
        assert_eq!((ages.take_expired(), ages.take_expired()), (tools, ListChanges::default()));
        tokio::time::advance(Duration::from_secs(4)).await;
        assert_eq!(ages.take_expired(), ListChanges { prompts: true, ..tools });
        ages.record_refresh(ListChanges { tools: true, ..ListChanges::default() }, [None; 3]);
        assert_eq!(
            ages.next_expiry(),
            Some(Instant::now() + Duration::from_secs(5)),
            "of the prompts"
        );
    }

    #[test]
    fn the_shortest_ttl_of_several_pages_counts() {
        let hint_of = |text: &str| result_ttl(&RawValue::from_string(text.to_owned()).unwrap());
        assert_eq!(hint_of(r#"{"ttlMs":300,"tools":[]}"#), millis(300));
        for none in [r#"{"tools":[]}"#, r#"{"ttlMs":-1}"#, r#"{"ttlMs":"300"}"#] {
            assert_eq!(hint_of(none), None, "{none}");
        }
        assert_eq!(min_ttl(millis(300), millis(200)), millis(200));
        assert_eq!([min_ttl(None, millis(200)), min_ttl(None, None)], [millis(200), None]);
    }
}
