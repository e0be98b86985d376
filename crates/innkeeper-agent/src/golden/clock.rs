//! A clock that jumps to the next event instead of waiting.

use std::collections::BTreeMap;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, SystemTime};

use futures_util::FutureExt as _;
use futures_util::future::BoxFuture;
use tokio::time::Instant;

use crate::timing::Timing;

/// The clock of a replay. Clones share the time.
///
/// The runtime of the replay calls [`Self::advance`] when no task can go on: the clock then jumps to
/// the end of the shortest sleep. So a run that took minutes takes milliseconds, with the same order
/// of events and the same durations.
#[derive(Clone, Default)]
pub(super) struct ReplayClock(Arc<Mutex<ClockState>>);

/// The end of a sleep, its order among those with the same end, and its number.
type SleepKey = (Duration, u64, u64);

#[derive(Default)]
struct ClockState {
    elapsed: Duration,
    next_id: u64,
    sleeps: BTreeMap<SleepKey, Option<Waker>>,
    is_stuck: bool,
    watcher: Option<Waker>,
}

impl ReplayClock {
    /// Returns the time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.lock().elapsed
    }

    /// Returns a timing over this clock, with a date for its start.
    pub(super) fn timing(
        &self,
        date: SystemTime,
        jitter: impl Fn() -> f64 + Send + Sync + 'static,
    ) -> Timing {
        let start = Instant::now();
        let [now, system_time, sleep] = [self.clone(), self.clone(), self.clone()];
        Timing {
            now: Arc::new(move || start + now.elapsed()),
            system_time: Arc::new(move || date + system_time.elapsed()),
            sleep: Arc::new(move |duration| sleep.sleep(duration)),
            jitter: Arc::new(jitter),
        }
    }

    /// Returns a future that completes after a duration.
    pub(super) fn sleep(&self, duration: Duration) -> BoxFuture<'static, ()> {
        self.sleep_until(self.elapsed().saturating_add(duration))
    }

    /// Returns a future that completes at a time since the start. The wait counts from here on, also if
    /// nothing polls it yet.
    pub(super) fn sleep_until(&self, end: Duration) -> BoxFuture<'static, ()> {
        self.sleep_in_order(end, 0)
    }

    /// Returns a future like [`Self::sleep_until`]; those with the same end complete in this order.
    pub(super) fn sleep_in_order(&self, end: Duration, order: u64) -> BoxFuture<'static, ()> {
        let mut state = self.lock();
        let key = (end, order, state.next_id);
        state.next_id += 1;
        state.sleeps.insert(key, None);
        let sleep = Sleep { clock: self.clone(), key };
        poll_fn(move |context| sleep.poll_end(context)).boxed()
    }

    /// Jumps to the end of the shortest sleep. Without one, nothing will ever happen again.
    pub(super) fn advance(&self) {
        let waker = {
            let mut state = self.lock();
            match state.sleeps.pop_first() {
                Some(((end, _, _), waker)) => {
                    state.elapsed = state.elapsed.max(end);
                    waker
                }
                None => {
                    state.is_stuck = true;
                    state.watcher.take()
                }
            }
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Completes when nothing will ever happen again.
    pub(super) async fn stuck(&self) {
        poll_fn(|context| {
            let mut state = self.lock();
            if state.is_stuck {
                return Poll::Ready(());
            }
            state.watcher = Some(context.waker().clone());
            Poll::Pending
        })
        .await;
    }

    fn lock(&self) -> MutexGuard<'_, ClockState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait of the replay.
struct Sleep {
    clock: ReplayClock,
    key: SleepKey,
}

impl Sleep {
    fn poll_end(&self, context: &mut Context<'_>) -> Poll<()> {
        match self.clock.lock().sleeps.get_mut(&self.key) {
            Some(waker) => {
                *waker = Some(context.waker().clone());
                Poll::Pending
            }
            None => Poll::Ready(()),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        self.clock.lock().sleeps.remove(&self.key);
    }
}
