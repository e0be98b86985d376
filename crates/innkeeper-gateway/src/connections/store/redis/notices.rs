//! Wakes readers when Redis says that a connection has changed.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;
use tokio::sync::futures::Notified;

use super::keys::NOTICE_CHANNEL;
use crate::connections::state::ConnectionId;
use crate::redis_client::{RedisClient, deliver_notices};

#[derive(Debug, Default)]
pub(super) struct Waiters(Mutex<HashMap<ConnectionId, WaitingReaders>>);

#[derive(Debug, Default)]
struct WaitingReaders {
    number: usize,
    changed: Arc<Notify>,
}

/// A reader that waits; dropping the value ends the wait.
#[derive(Debug)]
pub(super) struct Waiter<'a> {
    waiters: &'a Waiters,
    id: ConnectionId,
    changed: Arc<Notify>,
}

impl Waiters {
    fn by_id(&self) -> MutexGuard<'_, HashMap<ConnectionId, WaitingReaders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn register(&self, id: ConnectionId) -> Waiter<'_> {
        let mut by_id = self.by_id();
        let waiting = by_id.entry(id).or_default();
        waiting.number += 1;
        Waiter { waiters: self, id, changed: waiting.changed.clone() }
    }

    fn wake(&self, id: ConnectionId) {
        if let Some(waiting) = self.by_id().get(&id) {
            waiting.changed.notify_waiters();
        }
    }

    fn wake_all(&self) {
        for waiting in self.by_id().values() {
            waiting.changed.notify_waiters();
        }
    }
}

impl Waiter<'_> {
    /// Waits for a notice after this call.
    pub(super) fn notice(&self) -> Notified<'_> {
        self.changed.notified()
    }
}

impl Drop for Waiter<'_> {
    fn drop(&mut self) {
        let mut by_id = self.waiters.by_id();
        if let Some(waiting) = by_id.get_mut(&self.id) {
            waiting.number -= 1;
            if waiting.number == 0 {
                by_id.remove(&self.id);
            }
        }
    }
}

/// Wakes readers until the future is dropped.
pub(super) async fn deliver(redis: Arc<RedisClient>, waiters: Arc<Waiters>) {
    deliver_notices(redis, NOTICE_CHANNEL, move |id| match id.map(str::parse) {
        Some(Ok(id)) => waiters.wake(id),
        Some(Err(_)) => {}
        None => waiters.wake_all(),
    })
    .await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_notice_wakes_all_readers_of_its_connection_and_dropped_readers_are_forgotten() {
        let (waiters, id) = (Waiters::default(), ConnectionId::random());
        let (first, second) = (waiters.register(id), waiters.register(id));
        let other = waiters.register(ConnectionId::random());
        let (mut woken, mut asleep) = (Box::pin(first.notice()), Box::pin(other.notice()));
        assert!(!woken.as_mut().enable() && !asleep.as_mut().enable());
        waiters.wake(id);
        waiters.wake(ConnectionId::random());
        assert!(woken.as_mut().enable() && !asleep.as_mut().enable());
        drop((woken, asleep));
        drop(first);
        let mut woken = Box::pin(second.notice());
        assert!(!woken.as_mut().enable());
        waiters.wake(id);
        assert!(woken.as_mut().enable());
        drop(woken);
        drop((second, other));
        assert!(waiters.by_id().is_empty());
    }
}
