//! Memory held by results that were received and not yet taken by their callers.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::Notify;

/// Results below this are bounded well enough by the number of calls in flight.
const SMALL: usize = 16 << 10;

/// How long reading pauses for results to be taken before further ones are refused; longer than
/// any caller that polls its call at all.
const PATIENCE: Duration = Duration::from_secs(30);

#[derive(Debug)]
struct Account {
    limit: usize,
    held: AtomicUsize,
    freed: Notify,
}

/// The account of one session.
#[derive(Clone, Debug)]
pub(crate) struct Budget(Arc<Account>);

impl Budget {
    pub(super) fn new(limit: usize) -> Self {
        Self(Arc::new(Account { limit, held: AtomicUsize::new(0), freed: Notify::new() }))
    }

    /// Whether no more large results should be read for now.
    pub(super) fn is_full(&self) -> bool {
        self.0.held.load(Ordering::Relaxed) >= self.0.limit
    }

    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }

    /// Resolves when there is room again, or after a bounded time without.
    pub(super) async fn settle(&self) {
        let wait = async {
            loop {
                let freed = self.0.freed.notified();
                if !self.is_full() {
                    return;
                }
                freed.await;
            }
        };
        // When nobody takes results for so long, `hold` refuses further ones.
        drop(tokio::time::timeout(PATIENCE, wait).await);
    }

    /// Counts `value` until it is taken or dropped; `None` if the account is full.
    pub(super) fn hold<T>(&self, bytes: usize, value: impl FnOnce() -> T) -> Option<Held<T>> {
        if bytes < SMALL {
            return Some(Held { value: value(), share: None });
        }
        if self.is_full() {
            return None;
        }
        self.0.held.fetch_add(bytes, Ordering::Relaxed);
        Some(Held { value: value(), share: Some(Share { account: self.0.clone(), bytes }) })
    }
}

#[derive(Debug)]
struct Share {
    account: Arc<Account>,
    bytes: usize,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.account.held.fetch_sub(self.bytes, Ordering::Relaxed);
        self.account.freed.notify_one();
    }
}

/// A value that counts against a session's memory until it is taken.
#[derive(Debug)]
pub(crate) struct Held<T> {
    value: T,
    share: Option<Share>,
}

impl<T> Held<T> {
    /// The value; from here on it is the caller's memory.
    pub(crate) fn take(self) -> T {
        drop(self.share);
        self.value
    }
}
