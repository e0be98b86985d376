//! The only place that spawns a task; each task has an owner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::JoinSet;

/// The background tasks of a gateway. The tasks end when the last clone is dropped.
#[derive(Clone, Debug, Default)]
pub(crate) struct GatewayTasks(Arc<Mutex<JoinSet<()>>>);

impl GatewayTasks {
    fn tasks(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` until its end or the end of its owner.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut tasks = self.tasks();
        // Remove finished tasks, so that the set contains only running tasks.
        while tasks.try_join_next().is_some() {}
        drop(tasks.spawn(future));
    }

    /// Waits for the end of all tasks that run now.
    pub(crate) async fn join(&self) {
        let mut running = std::mem::take(&mut *self.tasks());
        while running.join_next().await.is_some() {}
    }
}

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
