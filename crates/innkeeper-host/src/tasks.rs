//! Spawns all tasks; each task has an owner.

use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::task::{AbortHandle, JoinSet};

/// The background tasks of a host; they end when this is dropped or stopped.
#[derive(Clone, Debug, Default)]
pub(crate) struct BackgroundTasks(Arc<Mutex<TaskSet>>);

#[derive(Debug, Default)]
struct TaskSet {
    tasks: JoinSet<()>,
    /// Whether new tasks are rejected.
    stopped: bool,
}

impl BackgroundTasks {
    fn task_set(&self) -> MutexGuard<'_, TaskSet> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `future` until it completes or the tasks are stopped; does nothing after a stop.
    pub(crate) fn spawn(&self, future: impl Future<Output = ()> + Send + 'static) {
        let mut set = self.task_set();
        if set.stopped {
            return;
        }
        // Remove finished tasks, so that the set contains only running tasks.
        while set.tasks.try_join_next().is_some() {}
        let _ = set.tasks.spawn(future);
    }

    /// Aborts all tasks at their next await; does not wait and needs no runtime.
    pub(crate) fn stop(&self) {
        let mut set = self.task_set();
        set.stopped = true;
        set.tasks.abort_all();
    }

    /// Waits until every task has ended; the caller limits the wait.
    pub(crate) async fn join(&self) {
        let mut tasks = std::mem::take(&mut self.task_set().tasks);
        while tasks.join_next().await.is_some() {}
    }
}

/// Runs blocking work on a blocking thread; `None` if it panicked. Dropping the future does not
/// stop the work.
pub(crate) async fn run_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    tokio::task::spawn_blocking(work).await.ok()
}

/// Concurrent tasks that return their results to one owner; dropping the group aborts all tasks.
#[derive(Debug)]
pub(crate) struct TaskGroup<T>(JoinSet<T>);

impl<T: Send + 'static> TaskGroup<T> {
    pub(crate) fn new() -> Self {
        Self(JoinSet::new())
    }

    /// Spawns a task; the returned handle can abort it.
    pub(crate) fn spawn(
        &mut self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> AbortHandle {
        self.0.spawn(future)
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns the next result in order of completion; resumes the panic of a task. Cancel-safe.
    pub(crate) async fn next(&mut self) -> Option<T> {
        loop {
            match self.0.join_next().await? {
                Ok(value) => return Some(value),
                Err(error) => {
                    if let Ok(panic) = error.try_into_panic() {
                        std::panic::resume_unwind(panic);
                    }
                }
            }
        }
    }
}
