//! Large results of tool calls, stored for their principals until they expire.

mod json_selection;
mod text_page;
mod text_search;

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ring::rand::{SecureRandom, SystemRandom};
use tokio::time::Instant;

use crate::principal::Principal;
use crate::sealed_state::replica_token;

pub(crate) use json_selection::{JsonSelection, select};
pub(crate) use text_page::text_page;
pub(crate) use text_search::TextPattern;

/// The start of the URI of every stored result. A URI of a server with this start is not reachable on
/// an endpoint that stores results.
pub(crate) const URI_PREFIX: &str = "innkeeper://results/";

/// Maximum number of bytes of the results of one principal: several results of the maximum size of a
/// message.
const MAX_PRINCIPAL_BYTES: usize = 64 << 20;

/// Maximum number of results of one principal.
const MAX_PRINCIPAL_RESULTS: usize = 64;

/// Maximum number of bytes of the results of all principals.
const MAX_BYTES: usize = 256 << 20;

/// Maximum number of results of all principals.
const MAX_RESULTS: usize = 1_024;

/// The text of a result: of a text block, or structured content as JSON text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct StoredResult {
    pub(crate) text: String,
    pub(crate) is_json: bool,
}

impl StoredResult {
    pub(crate) fn mime_type(&self) -> &'static str {
        if self.is_json { "application/json" } else { "text/plain" }
    }
}

#[derive(Debug)]
struct StoredEntry {
    uri: Box<str>,
    principal: Principal,
    result: Arc<StoredResult>,
    expires: Instant,
}

/// The results of a gateway, the oldest first.
#[derive(Debug)]
pub(crate) struct StoredResults {
    random: SystemRandom,
    /// The id of this replica, if there are several.
    replica: Option<Box<str>>,
    entries: Mutex<VecDeque<StoredEntry>>,
}

impl StoredResults {
    /// `replica` is the id of this replica, if there are several.
    pub(crate) fn new(replica: Option<&str>) -> Self {
        let replica = replica.map(Into::into);
        Self { random: SystemRandom::new(), replica, entries: Mutex::default() }
    }

    fn entries(&self) -> MutexGuard<'_, VecDeque<StoredEntry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a result for a principal and returns its URI. The result replaces the oldest results of
    /// the principal, then the oldest results of all principals, as far as the limits require. Returns
    /// `None` if the result alone is above the limit, or if the system has no random numbers.
    pub(crate) fn insert(
        &self,
        principal: &Principal,
        result: StoredResult,
        ttl: Duration,
    ) -> Option<String> {
        let bytes = result.text.len();
        if bytes > MAX_PRINCIPAL_BYTES {
            return None;
        }
        let mut id = [0; 16];
        self.random.fill(&mut id).ok()?;
        let id = match &self.replica {
            Some(replica) => replica_token(replica, &hex::encode(id)),
            None => hex::encode(id),
        };
        let uri = format!("{URI_PREFIX}{id}");
        let mut entries = self.entries();
        remove_expired(&mut entries);
        make_room(
            &mut entries,
            |entry| entry.principal == *principal,
            MAX_PRINCIPAL_RESULTS,
            MAX_PRINCIPAL_BYTES - bytes,
        );
        make_room(&mut entries, |_| true, MAX_RESULTS, MAX_BYTES - bytes);
        entries.push_back(StoredEntry {
            uri: uri.as_str().into(),
            principal: principal.clone(),
            result: Arc::new(result),
            expires: Instant::now() + ttl,
        });
        Some(uri)
    }

    /// Returns a result of a principal with its remaining time; `None` for a result that has expired,
    /// was replaced, or belongs to another principal.
    pub(crate) fn find(
        &self,
        principal: &Principal,
        uri: &str,
    ) -> Option<(Arc<StoredResult>, Duration)> {
        let entries = self.entries();
        let entry = entries.iter().find(|entry| *entry.uri == *uri)?;
        let remaining = entry.expires.checked_duration_since(Instant::now())?;
        let is_own = entry.principal == *principal && !remaining.is_zero();
        is_own.then(|| (entry.result.clone(), remaining))
    }

    /// Deletes the results whose time has passed.
    pub(crate) fn remove_expired(&self) {
        remove_expired(&mut self.entries());
    }
}

fn remove_expired(entries: &mut VecDeque<StoredEntry>) {
    let now = Instant::now();
    entries.retain(|entry| entry.expires > now);
}

/// Removes the oldest entries that count, until one more entry fits into `max_count`, and the entries
/// that count have at most `max_bytes`.
fn make_room(
    entries: &mut VecDeque<StoredEntry>,
    counts: impl Fn(&StoredEntry) -> bool,
    max_count: usize,
    max_bytes: usize,
) {
    let counted = entries.iter().filter(|entry| counts(entry));
    let (mut count, mut bytes) =
        counted.fold((0, 0), |(count, bytes), entry| (count + 1, bytes + entry.result.text.len()));
    entries.retain(|entry| {
        let is_removed = counts(entry) && (count >= max_count || bytes > max_bytes);
        if is_removed {
            count -= 1;
            bytes -= entry.result.text.len();
        }
        !is_removed
    });
}

#[cfg(test)]
mod tests;
