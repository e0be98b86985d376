//! The only place that spawns a task; each task has an owner.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
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

    /// Aborts all tasks at their next await.
    pub(crate) fn abort(&self) {
        self.tasks().abort_all();
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

/// Maximum number of computations at one time: more do not finish earlier on a few processors.
const MAX_COMPUTATIONS: usize = 4;

/// Runs computations that take too long for a thread of the runtime's tasks.
#[derive(Debug)]
pub(crate) struct Computations(Arc<Semaphore>);

impl Default for Computations {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(MAX_COMPUTATIONS)))
    }
}

impl Computations {
    /// Runs a computation of bounded time when fewer than [`MAX_COMPUTATIONS`] run. Returns `None` if
    /// the runtime ends or the computation panics. Dropping the future does not end a computation
    /// that has started.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        computation: impl FnOnce() -> T + Send + 'static,
    ) -> Option<T> {
        let permit = self.0.clone().acquire_owned().await.ok()?;
        let running = tokio::task::spawn_blocking(move || {
            let _permit = permit;
            computation()
        });
        running.await.ok()
    }
}
