//! The cache hints of the lists of a server (`ttlMs`, `cacheScope`), and the refresh of expired lists.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use innkeeper_protocol::skim;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use crate::cache::CacheScope;
use crate::connection::Connection;
use crate::deadline::MAX_REQUEST_TIMEOUT;
use crate::session::ListChanges;

/// Minimum interval between two refreshes of an expired list: short enough for a user, and long
/// enough for a server that reports one millisecond.
const MIN_TTL: Duration = Duration::from_secs(1);

/// Share of the interval by which a refresh is at most late, so that the refreshes of many servers
/// with one time to live spread (the specification requires jitter of a client that polls).
const MAX_JITTER: f64 = 0.1;

/// The cache hints of one list, from its pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListCacheHint {
    /// Time for which the list is fresh from now; zero if the list is expired or its server reports
    /// no time to live. At most one year.
    pub remaining: Duration,
    /// Scope of the list; private if a page is private or has no scope.
    pub scope: CacheScope,
}

/// The cache hints of the lists of one server. A list that was not read has no hint: its server does
/// not declare or implement the list, or the list is [missing](crate::ServerListing::missing).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ListCacheHints {
    /// Hint of `tools/list`.
    pub tools: Option<ListCacheHint>,
    /// Hint of `prompts/list`.
    pub prompts: Option<ListCacheHint>,
    /// Hint of `resources/list`.
    pub resources: Option<ListCacheHint>,
    /// Hint of `resources/templates/list`.
    pub resource_templates: Option<ListCacheHint>,
}

/// The cache hints that the pages of a list report.
#[derive(Clone, Copy, Debug)]
pub(super) struct ReportedHints {
    /// Shortest reported time to live.
    ttl: Option<Duration>,
    /// End of the freshness of the first page that expires.
    fresh_until: Instant,
    scope: CacheScope,
}

impl ReportedHints {
    /// Reads the hints of a page that the host has just received.
    pub(super) fn from_page(page: &RawValue) -> Self {
        let ttl = result_ttl(page).map(|ttl| ttl.min(MAX_REQUEST_TIMEOUT));
        let fresh_until = Instant::now() + ttl.unwrap_or_default();
        Self { ttl, fresh_until, scope: CacheScope::from_result(page) }
    }

    /// Returns the hints of a list with the pages of both.
    pub(super) fn merge(self, other: Self) -> Self {
        Self {
            ttl: min_ttl(self.ttl, other.ttl),
            fresh_until: self.fresh_until.min(other.fresh_until),
            scope: self.scope.max(other.scope),
        }
    }

    fn to_hint(self) -> ListCacheHint {
        let remaining = self.fresh_until.saturating_duration_since(Instant::now());
        ListCacheHint { remaining, scope: self.scope }
    }
}

/// The lists of a server, in the order of [`ListTtls::record_refresh`].
#[derive(Debug, Default)]
struct RecordedLists {
    tools: RecordedList,
    prompts: RecordedList,
    resources: RecordedList,
    resource_templates: RecordedList,
}

#[derive(Clone, Copy, Debug, Default)]
struct RecordedList {
    hints: Option<ReportedHints>,
    refresh: Option<NextRefresh>,
}

/// The next refresh of a list that expires.
#[derive(Clone, Copy, Debug)]
struct NextRefresh {
    at: Instant,
    /// Delay of the refresh after the next, if the next fails.
    backoff: Duration,
}

impl RecordedList {
    fn new(hints: ReportedHints) -> Self {
        // A time to live of zero would cause endless refreshes.
        let ttl = hints.ttl.filter(|ttl| !ttl.is_zero());
        let refresh = ttl.map(|ttl| {
            let interval = ttl.max(MIN_TTL);
            let at = hints.fresh_until.max(Instant::now() + MIN_TTL) + jitter(interval);
            NextRefresh { at, backoff: interval.saturating_mul(2) }
        });
        Self { hints: Some(hints), refresh }
    }

    fn is_expired(&self, now: Instant) -> bool {
        self.refresh.is_some_and(|refresh| refresh.at <= now)
    }

    /// Schedules the refresh after the one that starts now: after a failed refresh, each delay is
    /// twice the previous delay.
    fn postpone_refresh(&mut self, now: Instant) {
        if let Some(refresh) = &mut self.refresh {
            let delay = refresh.backoff.min(MAX_REQUEST_TIMEOUT);
            let at = now + delay + jitter(delay);
            *refresh = NextRefresh { at, backoff: delay.saturating_mul(2) };
        }
    }
}

fn jitter(interval: Duration) -> Duration {
    interval.mul_f64(MAX_JITTER * fastrand::f64())
}

/// The cache hints of each list and the times of the refreshes.
#[derive(Debug, Default)]
pub(crate) struct ListTtls {
    lists: Mutex<RecordedLists>,
    refreshed: Notify,
}

/// Returns the shorter time to live; `None` means not reported.
fn min_ttl(left: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (left, other) {
        (Some(left), Some(other)) => Some(left.min(other)),
        (left, other) => left.or(other),
    }
}

/// Returns the time to live of a result (`ttlMs`).
fn result_ttl(result: &RawValue) -> Option<Duration> {
    let hint = skim::member(result.get(), "ttlMs")?;
    hint.parse().ok().map(Duration::from_millis)
}

impl ListTtls {
    fn lists(&self) -> MutexGuard<'_, RecordedLists> {
        self.lists.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the hints of the tools, prompts, resources and templates that were read; `None` for a
    /// list that was not read.
    pub(super) fn record_refresh(&self, read: [Option<ReportedHints>; 4]) {
        let mut lists = self.lists();
        let RecordedLists { tools, prompts, resources, resource_templates } = &mut *lists;
        for (list, hints) in [tools, prompts, resources, resource_templates].into_iter().zip(read) {
            if let Some(hints) = hints {
                *list = RecordedList::new(hints);
            }
        }
        drop(lists);
        self.refreshed.notify_one();
    }

    /// Returns the hints of all lists at this moment.
    pub(crate) fn hints(&self) -> ListCacheHints {
        let lists = self.lists();
        ListCacheHints {
            tools: lists.tools.hints.map(ReportedHints::to_hint),
            prompts: lists.prompts.hints.map(ReportedHints::to_hint),
            resources: lists.resources.hints.map(ReportedHints::to_hint),
            resource_templates: lists.resource_templates.hints.map(ReportedHints::to_hint),
        }
    }

    fn next_refresh(&self) -> Option<Instant> {
        let lists = self.lists();
        let all = [lists.tools, lists.prompts, lists.resources, lists.resource_templates];
        all.into_iter().filter_map(|list| list.refresh).map(|refresh| refresh.at).min()
    }

    /// Returns the expired lists and schedules their next refresh.
    fn take_expired(&self) -> ListChanges {
        let now = Instant::now();
        let mut lists = self.lists();
        let RecordedLists { tools, prompts, resources, resource_templates } = &mut *lists;
        ListChanges {
            tools: take_if_expired(&mut [tools], now),
            prompts: take_if_expired(&mut [prompts], now),
            // One refresh reads both lists.
            resources: take_if_expired(&mut [resources, resource_templates], now),
            notified: false,
        }
    }
}

/// Returns whether one of the lists has expired, and then schedules the next refresh of all.
fn take_if_expired(lists: &mut [&mut RecordedList], now: Instant) -> bool {
    let is_expired = lists.iter().any(|list| list.is_expired(now));
    if is_expired {
        lists.iter_mut().for_each(|list| list.postpone_refresh(now));
    }
    is_expired
}

/// Requests a refresh of each list that expires, also of a list whose changes the server reports.
pub(super) async fn refresh_expired(connection: &Connection) {
    let list_ttls = &connection.freshness.list_ttls;
    loop {
        let Some(refresh) = list_ttls.next_refresh() else {
            list_ttls.refreshed.notified().await;
            continue;
        };
        tokio::select! {
            () = sleep_until(refresh) => connection.session.request_refresh(list_ttls.take_expired()),
            () = list_ttls.refreshed.notified() => {}
        }
    }
}

#[cfg(test)]
mod tests;
