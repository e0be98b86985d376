//! Spawns all tasks; each task has an owner.

use std::future::Future;

use tokio::task::JoinSet;

/// A task that is aborted when the handle is dropped.
#[derive(Debug)]
pub(crate) struct OwnedTask {
    _running: JoinSet<()>,
}

impl OwnedTask {
    /// Spawns a task on the current runtime.
    pub(crate) fn spawn(future: impl Future<Output = ()> + Send + 'static) -> Self {
        let mut running = JoinSet::new();
        running.spawn(future);
        Self { _running: running }
    }
}
