//! The time limits of the shutdowns that the application awaits.

use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};

#[derive(Clone, Copy, Debug)]
pub(crate) struct ShutdownLimits {
    /// End of the wait for the calls in flight.
    pub(crate) drain_end: Instant,
    /// End of the grace periods of the servers; `None` for their `shutdownTimeout` alone.
    pub(crate) deadline: Option<Instant>,
}

/// The limits of all shutdowns that the application awaits. The earliest limits apply to all.
#[derive(Debug, Default)]
pub(crate) struct AwaitedShutdowns(watch::Sender<AwaitedLimits>);

#[derive(Debug, Default)]
struct AwaitedLimits {
    limits: Vec<(u64, ShutdownLimits)>,
    next_id: u64,
}

impl AwaitedLimits {
    fn drain_end(&self) -> Option<Instant> {
        self.limits.iter().map(|(_, limits)| limits.drain_end).min()
    }

    fn deadline(&self) -> Option<Instant> {
        self.limits.iter().filter_map(|(_, limits)| limits.deadline).min()
    }
}

impl AwaitedShutdowns {
    /// Adds the limits of a shutdown until the guard is dropped.
    pub(crate) fn add(&self, limits: ShutdownLimits) -> AwaitedShutdown<'_> {
        let mut id = 0;
        self.0.send_modify(|awaited| {
            id = awaited.next_id;
            awaited.next_id += 1;
            awaited.limits.push((id, limits));
        });
        AwaitedShutdown { awaited: self, id }
    }

    /// Waits until the earliest end of the wait for calls.
    pub(crate) async fn drain_ended(&self) {
        let mut changes = self.0.subscribe();
        loop {
            let Some(drain_end) = changes.borrow_and_update().drain_end() else { return };
            tokio::select! {
                () = sleep_until(drain_end) => return,
                // `self` holds the sender, so the wait cannot fail.
                _ = changes.changed() => {}
            }
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.0.borrow().deadline()
    }

    /// Waits until a shutdown has an earlier deadline than this deadline.
    pub(crate) async fn earlier_deadline(&self, current: Option<Instant>) {
        // `self` holds the sender, so the wait cannot fail.
        let _ = self
            .0
            .subscribe()
            .wait_for(|awaited| {
                awaited.deadline().is_some_and(|earliest| current.is_none_or(|end| earliest < end))
            })
            .await;
    }
}

#[derive(Debug)]
pub(crate) struct AwaitedShutdown<'a> {
    awaited: &'a AwaitedShutdowns,
    id: u64,
}

impl Drop for AwaitedShutdown<'_> {
    fn drop(&mut self) {
        self.awaited.0.send_modify(|awaited| awaited.limits.retain(|(id, _)| *id != self.id));
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_earliest_limits_apply_until_their_shutdown_is_dropped() {
        let (awaited, now) = (AwaitedShutdowns::default(), Instant::now());
        let after = |seconds| now + Duration::from_secs(seconds);
        let limits = |drain, end: Option<u64>| ShutdownLimits {
            drain_end: after(drain),
            deadline: end.map(after),
        };
        let _unlimited = awaited.add(limits(90, None));
        assert_eq!(awaited.deadline(), None);
        let _long = awaited.add(limits(60, Some(70)));
        let short = awaited.add(limits(1, Some(2)));
        assert_eq!(awaited.deadline(), Some(after(2)));
        drop(short);
        assert_eq!(awaited.deadline(), Some(after(70)));
        let add_later = async {
            sleep_until(after(10)).await;
            let shutdown = awaited.add(limits(20, Some(30)));
            awaited.earlier_deadline(Some(after(70))).await;
            shutdown
        };
        let (_shutdown, ()) = tokio::join!(add_later, awaited.drain_ended());
        assert_eq!(now.elapsed(), Duration::from_secs(20));
    }
}
