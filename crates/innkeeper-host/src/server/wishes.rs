//! The resources whose changes an application wants to hear of, and asking for them anew.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indexmap::IndexSet;
use innkeeper_protocol::method;
use serde_json::json;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::connection::Connection;
use crate::error::CallKind;

/// Resources whose changes an application may wish to hear of at a time, per server.
pub(crate) const WISHES: usize = 1024;

/// The pause after everything was asked for anew; doubles while sessions do not last.
const PAUSE: Duration = Duration::from_secs(1);

/// The longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// A session that lasted for so long is no cause for a longer pause.
const STABLE: Duration = Duration::from_secs(60);

/// The resources whose changes the application wants to hear of.
#[derive(Debug, Default)]
pub(crate) struct Wishes {
    uris: Mutex<IndexSet<String>>,
    changed: Notify,
}

/// What setting a wish came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wished {
    /// It is otherwise than before.
    Anew,
    /// It was so before.
    Already,
    /// There are too many, and nothing has changed.
    TooMany,
}

impl Wishes {
    fn uris(&self) -> MutexGuard<'_, IndexSet<String>> {
        self.uris.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds or removes a resource.
    pub(crate) fn set(&self, uri: &str, wanted: bool) -> Wished {
        let mut uris = self.uris();
        let anew = match wanted {
            true if uris.len() >= WISHES && !uris.contains(uri) => return Wished::TooMany,
            true => uris.insert(uri.to_owned()),
            false => uris.shift_remove(uri),
        };
        if !anew {
            return Wished::Already;
        }
        self.changed.notify_one();
        Wished::Anew
    }

    pub(super) fn all(&self) -> Vec<String> {
        self.uris().iter().cloned().collect()
    }

    fn has(&self, uri: &str) -> bool {
        self.uris().contains(uri)
    }

    /// Resolves when a wish was added or removed since this was last asked.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

/// Subscribes anew to everything that is wished for whenever a server of the legacy era has begun
/// anew; each request may take `limit`.
pub(super) async fn subscribe_anew(connection: &Connection, limit: Duration) {
    let mut pause = PAUSE;
    let mut left = Vec::new();
    let mut began = Instant::now();
    loop {
        if left.is_empty() {
            connection.session.renewed().await;
            left = connection.wishes.all();
            left.reverse();
        }
        pause = if began.elapsed() >= STABLE { PAUSE } else { (pause * 2).min(LONGEST_PAUSE) };
        began = Instant::now();
        while let Some(uri) = left.pop() {
            // It may have been taken back meanwhile.
            if !connection.wishes.has(&uri) {
                continue;
            }
            let params = json!({ "uri": uri });
            let asked = connection.fetch(method::RESOURCES_SUBSCRIBE, &params, limit).await;
            let kind = asked.as_ref().map_or_else(|error| Some(error.kind()), |_| None);
            // What it refuses it would refuse again; where it is away, the others fail as well.
            if matches!(kind, Some(CallKind::Unavailable | CallKind::Timeout)) {
                left.push(uri);
                break;
            }
        }
        sleep(pause).await;
    }
}

#[cfg(test)]
mod tests;
