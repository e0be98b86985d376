//! Bounds the number of servers that start at the same time.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The slots of servers that start. Clones share the slots, so that several hosts together start no
/// more servers at the same time than one ([`HostBuilder::start_slots`](crate::HostBuilder::start_slots)).
#[derive(Clone, Debug)]
pub struct StartSlots(Arc<Semaphore>);

impl StartSlots {
    /// Creates this number of slots, and at least one.
    pub fn new(count: usize) -> Self {
        Self(Arc::new(Semaphore::new(count.clamp(1, Semaphore::MAX_PERMITS))))
    }

    /// Waits for a slot, in the order of the calls. Dropping the future takes no slot.
    pub(crate) async fn acquire(&self) -> StartSlot {
        // Nothing closes the semaphore.
        StartSlot(self.0.clone().acquire_owned().await.ok())
    }
}

/// The slot of a server that starts, until the value is dropped.
#[derive(Debug)]
pub(crate) struct StartSlot(
    #[expect(dead_code, reason = "keeps the slot")] Option<OwnedSemaphorePermit>,
);
